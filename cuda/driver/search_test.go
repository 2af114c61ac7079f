//go:build cgo && linux

package driver_test

import (
	"path/filepath"
	"strings"
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
)

// A library that can't be used does not end the search, whatever is wrong with
// it, and the error says of each what is.
func TestSearchGoesOn(t *testing.T) {
	good := library(t, clib.NoOp)
	missing := filepath.Join(t.TempDir(), "libcuda.so.1")
	for _, c := range []struct {
		name, path string
		is         error
		says       string
	}{
		{"not there", missing, dl.ErrNoLibrary, "library missing: no such library: \"" + missing + "\""},
		{"no library", "/dev/null", dl.ErrBadLibrary, "library unusable: "},
		{"a stub", library(t, clib.Stub), cuda.ErrStubLibrary, "is the stub that a CUDA toolkit brings"},
		{"knows no device", library(t, clib.NoOp, "KVG_DEVICES=0"), cuda.ErrNoDevice, "knows no device: CUDA_ERROR_NO_DEVICE"},
		{"of another version", library(t, clib.NoOp, "KVG_INIT=803"), cuda.ErrDriverMismatch,
			"does not start: CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
		{"compatible with other devices", library(t, clib.NoOp, "KVG_INIT=804"), cuda.ErrCompatUnsupported,
			"does not start: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
		{"not ready", library(t, clib.NoOp, "KVG_INIT=802"), cuda.ErrSystemNotReady, "does not start: CUDA_ERROR_SYSTEM_NOT_READY"},
		{"somebody else's", library(t, clib.NoOp, "KVG_INIT=46"), cuda.ErrDeviceUnavailable, "does not start: CUDA_ERROR_DEVICE_UNAVAILABLE"},
		{"lacks cuInit", library(t, clib.NoOp, "KVG_WITHOUT_cuInit"), dl.ErrNoSymbol, "lacks cuInit, which came with CUDA 2.0"},
		{"lacks another", library(t, clib.NoOp, "KVG_WITHOUT_cuStreamIsCapturing"), dl.ErrNoSymbol, "lacks cuStreamIsCapturing"},
		{"too old", library(t, clib.NoOp, "KVG_VERSION=11040"), cuda.ErrUnsupportedPTX, "is too old: it supports CUDA 11.4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			restore := driver.SearchIn(c.path, good)
			d, err := driver.Open(driver.Options{})
			restore()
			require.NoError(t, err)
			require.Equal(t, good, d.Library())
			require.NoError(t, d.Close())

			stub := library(t, clib.Stub)
			defer driver.SearchIn(c.path, stub)()
			_, err = driver.Open(driver.Options{})
			require.ErrorIs(t, err, cuda.ErrNoDriver)
			require.ErrorIs(t, err, c.is)
			require.ErrorIs(t, err, cuda.ErrStubLibrary)
			require.ErrorContains(t, err, c.says)
			require.ErrorContains(t, err, c.path)
			require.ErrorContains(t, err, stub+" is the stub")
			require.Equal(t, 1, strings.Count(err.Error(), "no usable CUDA driver"), err)
			require.NotContains(t, err.Error(), "\n")
		})
	}
	// A driver that is there is not passed over for a device that is not.
	defer driver.SearchIn(good, library(t, clib.NoOp, "KVG_DEVICES=8"))()
	_, err := driver.Open(driver.Options{Device: 5})
	require.ErrorIs(t, err, cuda.ErrInvalidDevice)
	require.NotErrorIs(t, err, cuda.ErrNoDriver)
}

// Where none is there the message names each place, and no more.
func TestSearchFindsNothing(t *testing.T) {
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	defer driver.SearchIn(a, b)()
	_, err := driver.Open(driver.Options{})
	require.EqualError(t, err, `cuda/driver: no usable CUDA driver: library missing: no such library: "`+a+`", "`+b+`"`)
}

// Containers of NVIDIA's runtime, of Kubernetes' device plugin and WSL keep it
// where the loader may not look.
func TestSearchedPlaces(t *testing.T) {
	require.Equal(t, "libcuda.so.1", driver.Searched()[0], "the loader's own choice comes first")
	require.Subset(t, driver.Searched(), []string{"/usr/local/nvidia/lib64/libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1"})
}

// nothing is a library that has no address for some symbols, and no error.
type nothing struct {
	driver.Library
	name string
}

func (n nothing) Symbol(name string) (unsafe.Pointer, error) {
	if name == n.name {
		return nil, nil
	}
	return n.Library.Symbol(name)
}

// A symbol without an address is one that is missing.
func TestSymbolsWithoutAnAddress(t *testing.T) {
	soft, err := softcuda.Add(sim.Options{Real: true, Memory: 1 << 28})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, soft.Remove()) })
	for _, s := range abi.Symbols() {
		if !s.InDriver() {
			continue
		}
		d, err := driver.Open(driver.Options{Library: nothing{softcuda.Library{}, s.Name}, Device: soft.Ordinal()})
		if s.Need == abi.Required {
			require.ErrorIs(t, err, cuda.ErrNoDriver, s.Name)
			require.ErrorIs(t, err, dl.ErrNoSymbol)
			require.ErrorContains(t, err, "lacks "+s.Name)
			continue
		}
		require.NoError(t, err, s.Name)
		require.NoError(t, d.Close())
	}
}
