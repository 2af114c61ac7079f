//go:build cgo && linux

package driver_test

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
)

// library compiles a stand-in for libcuda.so.1.
func library(t testing.TB, k clib.Kind, defines ...string) string {
	t.Helper()
	if _, err := exec.LookPath(clib.Compiler()); err != nil {
		testutil.SkipOrFail(t, "no C compiler: %v", err)
	}
	path, err := clib.Build(t.TempDir(), k, defines...)
	require.NoError(t, err)
	return path
}

// without is a library that lacks some symbols.
type without struct {
	driver.Library
	names map[string]bool
}

func (w without) Symbol(name string) (unsafe.Pointer, error) {
	if w.names[name] {
		return nil, fmt.Errorf("symbol %s in %s: %w", name, w.Path(), dl.ErrNoSymbol)
	}
	return w.Library.Symbol(name)
}

// openSoft opens a device over a simulated one that goes with the test.
func openSoft(t testing.TB, o sim.Options, missing ...string) (*driver.Device, error) {
	t.Helper()
	soft, err := softcuda.Add(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, soft.Remove()) })
	names := map[string]bool{}
	for _, n := range missing {
		names[n] = true
	}
	d, err := driver.Open(driver.Options{Library: without{softcuda.Library{}, names}, Device: soft.Ordinal()})
	if err == nil {
		t.Cleanup(func() { require.NoError(t, d.Close()) })
	}
	return d, err
}

func TestOpenSaysWhyThereIsNoDriver(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "libcuda.so.1")
	for _, c := range []struct {
		name, path string
		is         []error
		says       string
	}{
		{"library missing", missing, []error{dl.ErrNoLibrary}, "library missing: no such library: \"" + missing},
		{"stub library", library(t, clib.Stub), []error{cuda.ErrStubLibrary}, "is the stub that a CUDA toolkit brings"},
		{"no device", library(t, clib.NoOp, "KVG_DEVICES=0"), []error{cuda.ErrNoDevice}, "knows no device"},
		{"no device, and it says so later", library(t, clib.NoOp, "KVG_DEVICES=0", "KVG_INIT=0"), []error{cuda.ErrNoDevice}, "knows no device"},
		{"too old", library(t, clib.NoOp, "KVG_VERSION=11040"), []error{cuda.ErrUnsupportedPTX},
			"it supports CUDA 11.4 with PTX ISA 7.4, this module's PTX is ISA 7.8 and needs CUDA 11.8"},
		{"too old to have all symbols", library(t, clib.NoOp, "KVG_VERSION=10000", "KVG_WITHOUT_cuDevicePrimaryCtxRelease_v2"),
			[]error{cuda.ErrUnsupportedPTX}, "it supports CUDA 10.0"},
		{"symbol missing", library(t, clib.NoOp, "KVG_WITHOUT_cuStreamIsCapturing"), []error{dl.ErrNoSymbol},
			"lacks cuStreamIsCapturing, which came with CUDA 10.0"},
		{"does not start", library(t, clib.NoOp, "KVG_INIT=999"), []error{cuda.ErrUnknown}, "does not start: CUDA_ERROR_UNKNOWN"},
		{"no library at all", "/dev/null", []error{dl.ErrBadLibrary}, "library unusable: dl: library can not be loaded: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := driver.Open(driver.Options{Path: c.path})
			require.Nil(t, d)
			require.ErrorIs(t, err, cuda.ErrNoDriver)
			for _, is := range c.is {
				require.ErrorIs(t, err, is)
			}
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, c.path)
		})
	}
}

func TestOpenNoOpLibrary(t *testing.T) {
	path := library(t, clib.NoOp)
	d, err := driver.Open(driver.Options{Path: path})
	require.NoError(t, err)
	require.Equal(t, path, d.Library())
	i := d.Info()
	require.Equal(t, "no-op device", i.Name)
	require.Equal(t, "driver", i.Backend)
	require.True(t, i.Simulated, "what is no hardware says so")
	require.Equal(t, 12040, i.Driver)
	require.NoError(t, d.Close())
	_, err = driver.Open(driver.Options{Path: path, Device: 1})
	require.ErrorIs(t, err, cuda.ErrInvalidDevice)
	_, err = driver.Open(driver.Options{Path: path, Device: -1})
	require.ErrorIs(t, err, cuda.ErrInvalidDevice)
}

// Each symbol is taken away in turn: without a required one nothing opens and
// the error names it; without an optional one everything else works.
func TestWithoutEachSymbol(t *testing.T) {
	for _, s := range abi.Symbols() {
		if !s.InDriver() {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			d, err := openSoft(t, sim.Options{Real: true, Memory: 1 << 28}, s.Name)
			if s.Need == abi.Required {
				require.ErrorIs(t, err, cuda.ErrNoDriver)
				require.ErrorIs(t, err, dl.ErrNoSymbol)
				require.ErrorContains(t, err, "lacks "+s.Name+", which came with CUDA "+abi.CUDA(s.Since).String())
				return
			}
			require.NoError(t, err)
			requireWorks(t, d)
		})
	}
}

// What needs an optional symbol says which, and the rest works. The library is
// one that was compiled without it.
func TestOptionalSymbolIsNamed(t *testing.T) {
	whole := library(t, clib.NoOp)
	for symbol, use := range map[string]func(d *driver.Device, s cuda.Stream, f cuda.Function, p cuda.DevicePtr) error{
		"cuStreamWriteValue32_v2": func(d *driver.Device, s cuda.Stream, _ cuda.Function, p cuda.DevicePtr) error {
			var b cuda.Batch
			b.WriteWord(s, p, 1)
			return d.Submit(&b)
		},
		"cuStreamWaitValue32_v2": func(d *driver.Device, s cuda.Stream, _ cuda.Function, p cuda.DevicePtr) error {
			var b cuda.Batch
			b.WaitWord(s, p, 1)
			return d.Submit(&b)
		},
		"cuLaunchHostFunc": func(d *driver.Device, _ cuda.Stream, _ cuda.Function, _ cuda.DevicePtr) error {
			_, err := d.NewSignal()
			return err
		},
		"cuStreamGetPriority": func(d *driver.Device, s cuda.Stream, _ cuda.Function, _ cuda.DevicePtr) error {
			_, err := d.StreamPriority(s)
			return err
		},
		"cuFuncSetAttribute": func(d *driver.Device, _ cuda.Stream, f cuda.Function, _ cuda.DevicePtr) error {
			return d.AllowShared(f, 64<<10)
		},
	} {
		t.Run(symbol, func(t *testing.T) {
			for _, there := range []bool{true, false} {
				path := whole
				if !there {
					path = library(t, clib.NoOp, "KVG_WITHOUT_"+symbol)
				}
				d, err := driver.Open(driver.Options{Path: path})
				require.NoError(t, err)
				s, err := d.NewStream(cuda.StreamOptions{})
				require.NoError(t, err)
				m, err := d.LoadModule([]byte("an image"))
				require.NoError(t, err)
				f, err := d.Function(m, "k")
				require.NoError(t, err)
				p, err := d.Alloc(256, cuda.AllocOptions{})
				require.NoError(t, err)
				err = use(d, s, f, p)
				if there {
					require.NoError(t, err)
				} else {
					require.ErrorIs(t, err, cuda.ErrNotSupported)
					require.ErrorContains(t, err, symbol)
					require.ErrorContains(t, err, "the driver lacks the symbol ("+path+")")
				}
				require.NoError(t, d.SyncStream(context.Background(), s))
				require.NoError(t, d.Close())
			}
		})
	}
}

// A stand-in that was loaded by its path is not what the system's library is
// taken to be from then on.
func TestStandInIsNotTakenForTheSystemsLibrary(t *testing.T) {
	path := library(t, clib.NoOp)
	d, err := driver.Open(driver.Options{Path: path})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	d, err = driver.Open(driver.Options{})
	if err != nil {
		require.ErrorIs(t, err, cuda.ErrNoDriver)
		return
	}
	require.NotEqual(t, "no-op device", d.Info().Name)
	require.NoError(t, d.Close())
}
