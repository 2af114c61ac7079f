//go:build cgo && linux

package driver_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/abi"
)

func TestHostMemoryWithoutTheSymbols(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true}, "cuMemAllocManaged", "cuMemHostRegister_v2", "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2")
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	p, err := d.Alloc(64, cuda.AllocOptions{})
	require.NoError(t, err)
	for symbol, call := range map[string]func() error{
		"cuMemAllocManaged":    func() error { _, err := d.AllocManaged(64, cuda.AllocOptions{}); return err },
		"cuMemHostRegister_v2": func() error { _, err := d.RegisterHost(make([]byte, 64)); return err },
		"cuMemcpyHtoDAsync_v2": func() error { return d.CopyIn(s, p, make([]byte, 64)) },
		"cuMemcpyDtoHAsync_v2": func() error { return d.CopyOut(s, make([]byte, 64), p) },
	} {
		err := call()
		require.ErrorIs(t, err, cuda.ErrNotSupported)
		require.ErrorContains(t, err, symbol)
	}
}

// Of two symbols that a call needs the error names the one that is missing.
func TestTheMissingSymbolIsNamed(t *testing.T) {
	for _, symbols := range [][]string{
		{"cuMemHostRegister_v2", "cuMemHostUnregister"},
		{"cuCtxGetFlags", "cuCtxSetFlags"},
	} {
		for _, missing := range [][]string{symbols[:1], symbols[1:], symbols} {
			// Without the attribute of a range, the context needs the flag.
			d, err := openSoft(t, sim.Options{Real: true}, append([]string{"cuPointerSetAttribute"}, missing...)...)
			require.NoError(t, err)
			switch symbols[0] {
			case "cuMemHostRegister_v2":
				_, err = d.RegisterHost(make([]byte, 64))
			default:
				p, e := d.Alloc(64, cuda.AllocOptions{})
				require.NoError(t, e)
				_, err = d.PrepareRDMA(p, 64)
			}
			require.ErrorIs(t, err, cuda.ErrNotSupported)
			for _, s := range symbols {
				if slices.Contains(missing, s) {
					require.ErrorContains(t, err, s)
				} else {
					require.NotContains(t, err.Error(), s)
				}
			}
		}
	}
}

func TestManagedMemoryIsNotForTheHostMeanwhile(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true, ExclusiveManaged: true})
	require.NoError(t, err)
	require.False(t, d.Info().ConcurrentManaged)
	d, err = openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	require.True(t, d.Info().ConcurrentManaged)
}

// What is left of each kind of memory goes with the device.
func TestCloseGivesBackHostMemory(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	m, err := d.AllocManaged(64, cuda.AllocOptions{})
	require.NoError(t, err)
	_, err = d.RegisterHost(m.Host)
	require.ErrorIs(t, err, cuda.ErrHostRegistered)
	h, err := d.AllocPinned(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NotEmpty(t, h.Host)
	require.NoError(t, d.Close())
	_, err = d.AllocManaged(64, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
}

// Whatever a driver lacks, no error names a symbol that is there.
func TestNoErrorNamesASymbolThatIsThere(t *testing.T) {
	for _, s := range abi.Symbols() {
		if !s.InDriver() || s.Need == abi.Required {
			continue
		}
		d, err := openSoft(t, sim.Options{Real: true, Memory: 1 << 28}, s.Name)
		require.NoError(t, err)
		st, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		p, err := d.Alloc(4096, cuda.AllocOptions{})
		require.NoError(t, err)
		m, err := d.LoadModule(image(t))
		require.NoError(t, err)
		f, err := d.Function(m, "fill_index")
		require.NoError(t, err)
		submit := func(build func(b *cuda.Batch)) error {
			var b cuda.Batch
			build(&b)
			return d.Submit(&b)
		}
		said := 0
		look := func(err error) {
			if err == nil || !strings.Contains(err.Error(), "the driver lacks the symbol") {
				return
			}
			said++
			require.ErrorIs(t, err, cuda.ErrNotSupported)
			require.ErrorContains(t, err, s.Name)
			for _, other := range abi.Symbols() {
				if other.Name != s.Name && !strings.HasPrefix(s.Name, other.Name) {
					require.NotContains(t, err.Error(), other.Name)
				}
			}
		}
		h, err := d.RegisterHost(make([]byte, 4096))
		look(err)
		if err == nil {
			look(d.UnregisterHost(h))
		}
		managed, err := d.AllocManaged(64, cuda.AllocOptions{})
		look(err)
		if err == nil {
			look(d.FreeManaged(managed))
		}
		look(d.CopyIn(st, p, make([]byte, 64)))
		look(d.CopyOut(st, make([]byte, 64), p))
		look(d.FillRows(st, p, 64, 1, 4, 4))
		_, err = d.PrepareRDMA(p, 64)
		look(err)
		look(d.FlushRDMA())
		handle, err := d.ExportMemory(p)
		look(err)
		_, err = d.OpenMemory(handle)
		look(err)
		look(submit(func(b *cuda.Batch) { b.WriteWord(st, p, 1) }))
		look(submit(func(b *cuda.Batch) { b.WaitWord(st, p, 1) }))
		fn, err := d.NewSignal()
		look(err)
		if err == nil {
			look(submit(func(b *cuda.Batch) { b.Signal(st, fn, 0) }))
		}
		_, err = d.StreamPriority(st)
		look(err)
		look(d.AllowShared(f, 64<<10))
		if err := d.BeginCapture(st, cuda.CaptureRelaxed); err != nil {
			look(err)
		} else {
			look(submit(func(b *cuda.Batch) { b.Fill8(st, p, 1, 64) }))
			g, err := d.EndCapture(st)
			look(err)
			_, err = d.GraphSize(g)
			look(err)
			e, err := d.Instantiate(g)
			look(err)
			look(submit(func(b *cuda.Batch) { b.LaunchGraph(st, e) }))
		}
		require.NoError(t, d.Sync(t.Context()))
		t.Logf("%s: %d calls name it", s.Name, said)
	}
}
