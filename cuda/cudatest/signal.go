package cudatest

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var signalBehaviours = []behaviour{
	{name: "signal: called behind the work before it", page: launchPage, one: testSignalBehindWork},
	{name: "signal: holds back the work behind it", page: launchPage, one: testSignalHoldsBack},
	{name: "signal: every call of several streams counts", page: launchPage, one: testSignalCounts},
	{name: "signal: not called after an error", page: launchPage, kills: true, one: testSignalSkipped},
	{name: "signal: destroyed while calls are to come", page: launchPage, one: testSignalDestroyed},
	{name: "signal: unknown handles", page: launchPage, one: testUnknownSignal},
	{name: "signal: a function may not call the device", page: launchPage, one: testHostFuncMayNotCall},
	{name: "signal: a function gets its argument, in turn", page: launchPage, one: testHostFuncArguments},
}

// signal returns a signal. The behaviour is skipped where the device has no host
// functions and says so.
func (x *bench) signal() cuda.HostFunc {
	x.t.Helper()
	f, err := x.NewSignal()
	if errors.Is(err, cuda.ErrNotSupported) {
		x.t.Skipf("%s: %v", x.Info().Backend, err)
	}
	require.NoError(x.t, err)
	return f
}

func (x *bench) count(f cuda.HostFunc) uint64 {
	x.t.Helper()
	n, err := x.SignalCount(f)
	require.NoError(x.t, err)
	return n
}

func testSignalBehindWork(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	f, s := x.signal(), x.stream()
	p := x.busy(s)
	x.submit(func(b *cuda.Batch) { b.Signal(s, f, 0) })
	x.until("the function is called", func() bool { return x.count(f) > 0 })
	require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
	require.Equal(t, uint64(1), x.count(f))
}

func testSignalHoldsBack(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	f, s, w := x.signal(), x.stream(), x.word(0)
	const n = 5
	x.submit(func(b *cuda.Batch) {
		for i := range uint32(n) {
			b.Signal(s, f, 0)
			b.WriteWord(s, w, i+1)
		}
	})
	x.until("the stream comes to its end", func() bool {
		seen := x.load(w)
		require.GreaterOrEqual(t, x.count(f), uint64(seen), "work went on before the function had returned")
		return seen == n
	})
	x.sync(s)
	require.Equal(t, uint64(n), x.count(f))
}

func testSignalCounts(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	f, g := x.signal(), x.signal()
	ss := []cuda.Stream{x.stream(), x.stream(), x.stream()}
	x.submit(func(b *cuda.Batch) {
		for i := range 15 {
			b.Signal(ss[i%3], f, uint64(i))
		}
		b.Signal(ss[0], g, 0)
	})
	require.NoError(t, d.Sync(x.ctx))
	require.Equal(t, uint64(15), x.count(f))
	require.Equal(t, uint64(1), x.count(g))
}

func testSignalSkipped(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	f, s, k := x.signal(), x.stream(), x.kernel("fill_index")
	release := x.hold(s)
	x.submit(func(b *cuda.Batch) {
		b.Signal(s, f, 0)
		fillIndex(b, s, k, 0x1000, 128, 0)
		b.Signal(s, f, 0)
	})
	release()
	require.ErrorIs(t, d.SyncStream(x.ctx, s), cuda.ErrIllegalAddress)
	require.NoError(t, d.Clock().Sleep(x.ctx, 10*time.Millisecond))
	require.Equal(t, uint64(1), x.count(f), "what stands before the failure was called, what stands behind it never is")
}

func testSignalDestroyed(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	f, s, e := x.signal(), x.stream(), x.event()
	x.busy(s)
	x.submit(func(b *cuda.Batch) {
		b.Signal(s, f, 0)
		b.Record(s, e)
	})
	require.NoError(t, d.DestroyHostFunc(f))
	require.ErrorIs(t, d.DestroyHostFunc(f), cuda.ErrInvalidHandle)
	x.sync(s)
	require.True(t, x.fired(e))
}

func testUnknownSignal(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	x.signal()
	s := x.stream()
	for _, f := range []cuda.HostFunc{0, 0xdead, cuda.HostFunc(s)} {
		require.ErrorIs(t, d.DestroyHostFunc(f), cuda.ErrInvalidHandle)
		_, err := d.SignalCount(f)
		require.ErrorIs(t, err, cuda.ErrInvalidHandle)
		x.b.Reset()
		x.b.Signal(s, f, 0)
		require.ErrorIs(t, d.Submit(&x.b), cuda.ErrInvalidHandle)
	}
}

// goFuncs is implemented by devices whose host functions may be in Go.
type goFuncs interface {
	NewHostFunc(name string, fn func(arg uint64)) (cuda.HostFunc, error)
}

func (x *bench) goFuncs() goFuncs {
	x.t.Helper()
	g, ok := x.Device.(goFuncs)
	if !ok {
		x.t.Skipf("%s: host functions in Go are not supported", x.Info().Backend)
	}
	return g
}

func testHostFuncMayNotCall(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	g := x.goFuncs()
	s, e, p := x.stream(), x.event(), x.alloc(64)
	errs := make(chan error, 20)
	f, err := g.NewHostFunc("that calls", func(uint64) {
		var b cuda.Batch
		b.Record(s, e)
		errs <- d.Submit(&b)
		errs <- d.Poll([]cuda.Mark{{Event: e}})
		errs <- d.SyncStream(x.ctx, s)
		errs <- d.SyncEvent(x.ctx, e)
		errs <- d.Sync(x.ctx)
		errs <- d.Read(make([]byte, 4), p)
		errs <- d.Write(p, make([]byte, 4))
		errs <- d.Free(p)
		errs <- d.Close()
		_, err := d.Alloc(64, cuda.AllocOptions{})
		errs <- err
		_, err = d.NewStream(cuda.StreamOptions{})
		errs <- err
		_, err = d.NewEvent()
		errs <- err
	})
	require.NoError(t, err)
	x.submit(func(b *cuda.Batch) { b.Signal(s, f, 0) })
	x.sync(s)
	require.Len(t, errs, 12)
	for range 12 {
		require.ErrorIs(t, <-errs, cuda.ErrNotPermitted)
	}
	require.NoError(t, d.Free(p), "others may")
}

func testHostFuncArguments(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	g := x.goFuncs()
	s := x.stream()
	var got []uint64
	f, err := g.NewHostFunc("that notes", func(arg uint64) { got = append(got, arg) })
	require.NoError(t, err)
	x.submit(func(b *cuda.Batch) {
		for i := range uint64(5) {
			b.Signal(s, f, 1<<40+i)
		}
	})
	x.sync(s)
	require.Equal(t, []uint64{1 << 40, 1<<40 + 1, 1<<40 + 2, 1<<40 + 3, 1<<40 + 4}, got)
}
