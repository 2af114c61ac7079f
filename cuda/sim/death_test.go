package sim

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

func TestTrapsNameTheAllocation(t *testing.T) {
	for _, c := range []struct {
		name   string
		launch func(r *rig, b *cuda.Batch, s cuda.Stream, f cuda.Function)
		code   cuda.Code
		kind   error
		says   string
	}{
		{"over the end", func(r *rig, b *cuda.Batch, s cuda.Stream, f cuda.Function) {
			store(b, s, f, r.alloc("kv pool", 4096), 64, 65)
		}, cuda.ErrIllegalAddress, ptx.ErrOutOfBounds, `behind the end: offset 0x1000 of "kv pool" (4096 bytes at `},
		{"across the end", func(r *rig, b *cuda.Batch, s cuda.Stream, f cuda.Function) {
			store(b, s, f, r.alloc("odd", 4098)+4096, 0, 1)
		}, cuda.ErrIllegalAddress, ptx.ErrOutOfBounds, `2 bytes over the end: offset 0x1000 of "odd" (4098 bytes at `},
		{"misaligned", func(r *rig, b *cuda.Batch, s cuda.Stream, f cuda.Function) {
			store(b, s, f, r.alloc("kv pool", 4096)+6, 0, 1)
		}, cuda.ErrMisaligned, ptx.ErrMisaligned, `(offset 0x6 of "kv pool")`},
		{"use after free", func(r *rig, b *cuda.Batch, s cuda.Stream, f cuda.Function) {
			p := r.alloc("old pool", 4096)
			require.NoError(r.t, r.Free(p))
			r.alloc("new pool", 4096)
			store(b, s, f, p+16, 0, 1)
		}, cuda.ErrIllegalAddress, ptx.ErrOutOfBounds, `use after free: offset 0x10 of "old pool"`},
		{"nowhere", func(r *rig, b *cuda.Batch, s cuda.Stream, f cuda.Function) {
			store(b, s, f, 64, 0, 1)
		}, cuda.ErrIllegalAddress, ptx.ErrOutOfBounds, `launch of store in compute`},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, Options{})
			s, f, e := r.stream("compute"), r.storeKernel(), r.event()
			p := r.alloc("behind", 64)
			before := r.Activity()
			r.submit(func(b *cuda.Batch) {
				c.launch(r, b, s, f)
				b.Fill8(s, p, 1, 64)
				b.Record(s, e)
			})
			err := r.SyncStream(bg, s)
			require.ErrorIs(t, err, c.code)
			require.ErrorContains(t, err, c.says)
			var trap *ptx.Trap
			require.ErrorAs(t, err, &trap)
			require.ErrorIs(t, trap, c.kind)
			require.Equal(t, "store", trap.Kernel)
			var ce *cuda.Error
			require.ErrorAs(t, err, &ce)
			require.Equal(t, c.code, ce.Code)
			require.NotEqual(t, before, r.Activity())
			require.NoError(t, r.world.Sleep(bg, time.Second))
			require.Equal(t, byte(0xff), r.peek(p, 1)[0], "work behind the fault must not run")
			require.Equal(t, err, r.Poll(nil), "the same error for good")
		})
	}
}

// A fill whose memory is freed under it (pinned memory is freed at once).
func TestMemoryFreedUnderACopy(t *testing.T) {
	r := newRig(t, Options{})
	s, h, p := r.stream("s"), r.pinned("staging", 1<<20), r.alloc("p", 1<<20)
	r.submit(func(b *cuda.Batch) { b.Copy(s, p, h.Device, 1<<20) })
	require.NoError(t, r.FreePinned(h))
	err := r.SyncStream(bg, s)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	var a *AccessError
	require.ErrorAs(t, err, &a)
	require.Equal(t, "staging", a.Name)
	require.True(t, a.Freed)
}

func TestModelThatFails(t *testing.T) {
	boom := errors.New("stamp of block 7 is wrong")
	for _, late := range []bool{false, true} {
		r := newRig(t, Options{})
		s := r.stream("s")
		f := r.model(func(k *ModelLaunch) error {
			if !late {
				return boom
			}
			k.Step = func(_ *Memory, i int) error {
				if i == 3 {
					return boom
				}
				return nil
			}
			return nil
		})
		r.submit(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
		err := r.Sync(bg)
		require.ErrorIs(t, err, boom)
		require.ErrorIs(t, err, cuda.ErrLaunchFailed)
		require.True(t, cuda.Sticky(err))
	}
}

func TestModelThatDeclaresNonsense(t *testing.T) {
	for _, bad := range []ModelFunc{
		func(k *ModelLaunch) error { k.Read = -1; return nil },
		func(k *ModelLaunch) error { k.Written = math.NaN(); return nil },
		func(k *ModelLaunch) error { k.Written = math.Inf(1); return nil },
		func(k *ModelLaunch) error { k.Time = -1; return nil },
		func(k *ModelLaunch) error { k.Time = math.MaxInt64; return nil },
		func(k *ModelLaunch) error { k.Chunks = -1; return nil },
	} {
		r := newRig(t, Options{})
		s := r.stream("s")
		f := r.model(bad)
		r.submit(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
		require.ErrorContains(t, r.Sync(bg), "negative or endless")
	}
	r := newRig(t, Options{})
	_, err := r.Model("no such model")
	require.ErrorIs(t, err, cuda.ErrNotFound)
}

func TestKillWakesWaits(t *testing.T) {
	for _, real := range []bool{false, true} {
		t.Run(fmt.Sprint("real=", real), func(t *testing.T) {
			r := newRig(t, Options{Real: real})
			s := r.stream("s")
			f := r.model(func(k *ModelLaunch) error { k.Time = time.Hour; return nil })
			r.submit(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
			before := r.Activity()
			errs := make(chan error, 3)
			r.world.Go("stream", func() { errs <- r.SyncStream(bg, s) })
			r.world.Go("device", func() { errs <- r.Sync(bg) })
			r.world.Go("activity", func() {
				errs <- r.world.WaitUntil(bg, clock.Func("activity", func() bool { return r.Activity() != before }), clock.Never)
			})
			require.NoError(t, r.world.Sleep(bg, 5*time.Millisecond))
			require.ErrorIs(t, r.Kill(cuda.ErrNotReady, "x"), cuda.ErrInvalidValue, "not a sticky one")
			require.NoError(t, r.Kill(cuda.ErrECC, "row 3"))
			require.NoError(t, r.world.Sleep(bg, 5*time.Millisecond))
			sticky := 0
			for range 3 {
				if err := <-errs; cuda.Sticky(err) {
					sticky++
					require.EqualError(t, err, "cuda: device: row 3: CUDA_ERROR_ECC_UNCORRECTABLE")
				} else {
					require.NoError(t, err)
				}
			}
			require.Equal(t, 2, sticky)
			require.ErrorIs(t, r.Kill(cuda.ErrAssert, "later"), cuda.ErrECC, "the first error stays")
		})
	}
}

func TestCloseWakesWaits(t *testing.T) {
	r := newRig(t, Options{Real: true})
	s := r.stream("s")
	f := r.model(func(k *ModelLaunch) error { k.Time = time.Hour; return nil })
	r.submit(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
	errs := make(chan error, 1)
	r.world.Go("waiter", func() { errs <- r.SyncStream(bg, s) })
	require.NoError(t, r.Close())
	require.Error(t, <-errs)
	_, err := r.NewEvent()
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.ErrorIs(t, r.SyncStream(context.Background(), s), cuda.ErrClosed)
}

func TestCommandsThatMakeNoSense(t *testing.T) {
	r := newRig(t, Options{})
	s := r.stream("s")
	var b cuda.Batch
	b.Fill8(s, 0, 1, 0)
	for _, bad := range []cuda.Command{
		{Op: cuda.OpNone}, {Op: 77}, {Op: cuda.OpFill, Stream: 3}, {Op: cuda.OpFill, Flags: 3},
		{Op: cuda.OpFill, B: 256}, {Op: cuda.OpFill, C: 1 << 60}, {Op: cuda.OpCopy, C: 1 << 63}, {Op: cuda.OpCopy, A: ^uint64(0), B: ^uint64(0), C: 2},
	} {
		b.Commands()[0] = bad
		require.ErrorIs(t, r.Submit(&b), cuda.ErrInvalidValue, "%+v", bad)
	}
	f := r.storeKernel()
	for _, bad := range []cuda.Command{{Off: 1 << 30, Len: 16}, {Off: ^uint32(0), Len: ^uint32(0)}, {Len: 16}} {
		bad.Op, bad.A, bad.Grid, bad.Block = cuda.OpLaunch, uint64(f), one.Grid, one.Block
		b.Commands()[0] = bad
		require.ErrorIs(t, r.Submit(&b), cuda.ErrInvalidValue, "%+v", bad)
	}
}

func TestExplainNamesWhatStreamsWaitFor(t *testing.T) {
	costs := DefaultCosts()
	costs.ResidentGrids = 1
	r := newRig(t, Options{Costs: &costs})
	a, b2, c := r.stream("compute"), r.stream("gate"), r.stream("third")
	e := r.event()
	f := r.model(func(k *ModelLaunch) error { k.Time = time.Second; return nil })
	r.submit(func(b *cuda.Batch) {
		b.Launch(a, f, one, 0)
		b.Record(a, e)
		b.WaitEvent(b2, e)
		b.Fill8(b2, 0, 0, 0)
		b.Launch(c, f, one, 0)
	})
	require.NoError(t, r.world.Sleep(bg, time.Millisecond))
	err := func() error { // a deadlock that the report is taken from
		w := &writer{}
		r.world.Enter(0)
		defer r.world.Exit()
		r.explain(w)
		return errors.New(string(w.b))
	}()
	require.EqualError(t, err, fmt.Sprintf(`  compute: 2 commands; the first, launch of %s, is under way
  gate: 2 commands; the first, wait event %#x, waits for command 2 of compute, which has done 0
  third: 1 commands; the first, launch of %s, is under way
  idle streams: 0 of 3
  third: held back by the limit of 1 resident grids
`, t.Name(), uint64(e), t.Name()))
}

func TestDeadlockReportShowsTheDevice(t *testing.T) {
	r := newRig(t, Options{Name: "gpu0"})
	s, e := r.stream("gate"), r.event()
	r.submit(func(b *cuda.Batch) { b.Record(s, e) })
	err := r.world.WaitUntil(bg, clock.Func("fence gate:2", func() bool { return false }), clock.Never)
	var d *vtime.DeadlockError
	require.ErrorAs(t, err, &d)
	require.Regexp(t, `^deadlock at .*: every actor waits and nothing is due
  actor main waits for fence gate:2
device gpu0:
  idle streams: 1 of 1
$`, d.Report)
	require.NoError(t, r.Poll([]cuda.Mark{{Event: e}}), "calls that need no time still work")
	r.submit(func(b *cuda.Batch) { b.Record(s, e) })
	require.ErrorAs(t, r.SyncStream(bg, s), &d)
}

func TestWaitsSayWhatTheyWaitFor(t *testing.T) {
	r := newRig(t, Options{})
	a, b := r.stream("compute"), r.stream("")
	f := r.model(func(k *ModelLaunch) error { k.Time = time.Second; return nil })
	r.submit(func(x *cuda.Batch) { x.Launch(a, f, one, 0); x.Launch(a, f, one, 0); x.Launch(b, f, one, 0) })
	r.locked(func() {
		require.Equal(t, fmt.Sprintf("the end of command 2 of compute, command 1 of stream %#x", uint64(b)), r.drained(nil).String())
		require.Equal(t, "room for a launch in compute", r.streams[a].room.String())
	})
}

type writer struct{ b []byte }

func (w *writer) Write(p []byte) (int, error) { w.b = append(w.b, p...); return len(p), nil }
