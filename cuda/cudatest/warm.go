package cudatest

import (
	"errors"
	"fmt"
	"testing"

	"github.com/kvgate/kvgate/cuda"
)

// Warm does once what behaviours do while they hold a stream: a driver loads the
// code of a fill, of a copy or of a kernel when it is first used, may allocate
// for the first launch of a graph, and waits for all streams then. A stream that
// is held would be waited for until it is released. [Environment] has kernels
// loaded with their module. Where a device shares its context with those that are
// opened later, as GPUs do, call Warm before [Run], and keep the device open until
// the table has been run: the code stays with the context.
//
// What the device can't do is left out. The error says what it failed to do: some
// behaviour will, too.
func Warm(t *testing.T, d cuda.Device) error {
	x := newBench(t, d)
	const n = 4096
	var errs []error
	do := func(what string, f func() error) {
		if err := f(); err != nil && !errors.Is(err, cuda.ErrNotSupported) {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	s, err := d.NewStream(cuda.StreamOptions{})
	if err != nil {
		return err
	}
	p, err := d.Alloc(4*n, cuda.AllocOptions{Name: "warm-up"})
	if err != nil {
		return err
	}
	run := func(what string, build func(b *cuda.Batch)) {
		do(what, func() error {
			x.b.Reset()
			build(&x.b)
			if err := d.Submit(&x.b); err != nil {
				return err
			}
			return d.SyncStream(x.ctx, s)
		})
	}
	half := func(b *cuda.Batch) {
		b.Fill8(s, p, 0, n/2)
		b.Commands()[b.Len()-1].Flags = 1
	}
	for _, count := range []uint64{3, n} {
		run("fill with bytes", func(b *cuda.Batch) { b.Fill8(s, p, 1, count) })
		run("fill with words", func(b *cuda.Batch) { b.Fill32(s, p, 1, count) })
	}
	run("fill with half words", half)
	run("copy", func(b *cuda.Batch) { b.Copy(s, p+n, p, n) })
	do("pinned memory", func() error {
		h, err := d.AllocPinned(2*n, cuda.AllocOptions{Name: "warm-up"})
		if err != nil {
			return err
		}
		run("copies of pinned memory", func(b *cuda.Batch) {
			b.Copy(s, p, h.Device, n)
			b.Copy(s, h.Device, p, n)
			b.Copy(s, h.Device+n, h.Device, n)
			b.Fill32(s, h.Device, 0, 1)
		})
		run("a word", func(b *cuda.Batch) {
			b.WriteWord(s, h.Device, 1)
			b.WaitWord(s, h.Device, 1)
		})
		return d.FreePinned(h)
	})
	run("a word in device memory", func(b *cuda.Batch) {
		b.WriteWord(s, p, 1)
		b.WaitWord(s, p, 1)
	})
	do("host functions", func() error {
		f, err := d.NewSignal()
		if err != nil {
			return err
		}
		run("a host function", func(b *cuda.Batch) { b.Signal(s, f, 0) })
		return d.DestroyHostFunc(f)
	})
	kernels := func(b *cuda.Batch) {}
	do("kernels", func() error {
		m, err := d.LoadModule(image)
		if err != nil {
			return err
		}
		fill, err := d.Function(m, "fill_index")
		if err != nil {
			return err
		}
		kernels = func(b *cuda.Batch) { fillIndex(b, s, fill, p, 16, 0) }
		run("a kernel", kernels)
		return nil
	})
	if g, ok := d.(cuda.Grapher); ok {
		do("graph", func() error { return x.warmGraph(g, s, p, n, kernels) })
	}
	if h, ok := d.(cuda.HostMemory); ok {
		do("copy of pageable memory", func() error {
			return errors.Join(h.CopyIn(s, p, make([]byte, n)), h.CopyOut(s, make([]byte, n), p))
		})
	}
	do("read and write", func() error { return errors.Join(d.Write(p, make([]byte, n)), d.Read(make([]byte, n), p)) })
	return errors.Join(errs...)
}

// warmGraph launches a graph with a node of each kind, twice.
func (x *bench) warmGraph(g cuda.Grapher, s cuda.Stream, p cuda.DevicePtr, n uint64, kernels func(b *cuda.Batch)) error {
	if err := g.BeginCapture(s, cuda.CaptureRelaxed); err != nil {
		return err
	}
	x.b.Reset()
	x.b.Fill8(s, p, 1, n)
	x.b.Fill32(s, p, 1, n/4)
	x.b.Copy(s, p+cuda.DevicePtr(n), p, n)
	kernels(&x.b)
	submitted := x.Submit(&x.b)
	captured, err := g.EndCapture(s)
	if err := errors.Join(submitted, err); err != nil {
		return err
	}
	e, err := g.Instantiate(captured)
	if err != nil {
		return err
	}
	x.b.Reset()
	x.b.LaunchGraph(s, e)
	x.b.LaunchGraph(s, e)
	return errors.Join(x.Submit(&x.b), x.SyncStream(x.ctx, s), g.DestroyGraphExec(e), g.DestroyGraph(captured))
}
