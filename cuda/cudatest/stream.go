package cudatest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var streamBehaviours = []behaviour{
	{name: "stream: commands run in order", page: streamPage, one: testOrder},
	{name: "stream: a zeroing before a copy stays before it", page: streamPage, one: testZeroThenCopy},
	{name: "stream: synchronising waits for all of it", page: streamPage, one: testSyncStream},
	{name: "stream: synchronising the device waits for all", page: contextPage, one: testSync},
	{name: "stream: both priorities are accepted", page: streamPage, one: testPriorities},
	{name: "stream: destroyed with work pending", page: streamPage, one: testDestroyStream},
	{name: "stream: unknown handles", page: streamPage, one: testUnknownStream},
	{name: "stream: a cancelled wait leaves the work alone", page: ownPage, one: testCancelledSync},
	{name: "stream: no order without an event", page: streamSyncPage, one: testNoOrder},
}

func testOrder(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(4096)
	x.submit(func(b *cuda.Batch) {
		for i := range 20 {
			b.Fill8(s, p, byte(i), 4096)
			b.Fill8(s, p+cuda.DevicePtr(i), 200, 1)
		}
	})
	x.sync(s)
	got := x.read(p, 4096)
	want := make([]byte, 4096)
	for i := range want {
		want[i] = 19
	}
	want[19] = 200
	require.Equal(t, want, got)
}

func testZeroThenCopy(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, dst, src := x.stream(), x.alloc(1<<20), x.alloc(1<<20)
	want := pattern(1<<20, 3)
	x.write(src, want)
	x.write(dst, pattern(1<<20, 9))
	x.submit(func(b *cuda.Batch) {
		b.Fill32(s, dst, 0, 1<<18)
		b.Copy(s, dst+100, src+100, 1<<20-200)
	})
	x.sync(s)
	clear(want[:100])
	clear(want[1<<20-100:])
	require.Equal(t, want, x.read(dst, 1<<20))
}

func testSyncStream(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	p, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.unfired(e, "the stream is held")
	release()
	x.sync(s)
	require.True(t, x.fired(e))
	require.Equal(t, words(backlogFills-1), x.read(p+backlogBytes-4, 4))
}

func testSync(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, e1, e2 := x.stream(), x.stream(), x.event(), x.event()
	x.busy(s1)
	x.busy(s2)
	x.submit(func(b *cuda.Batch) {
		b.Record(s1, e1)
		b.Record(s2, e2)
	})
	require.NoError(t, x.Sync(x.ctx))
	require.True(t, x.fired(e1))
	require.True(t, x.fired(e2))
}

func testPriorities(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	for _, high := range []bool{false, true} {
		s, err := d.NewStream(cuda.StreamOptions{Name: "s", HighPriority: high})
		require.NoError(t, err)
		p := x.alloc(64)
		x.submit(func(b *cuda.Batch) { b.Fill8(s, p, 7, 64) })
		x.sync(s)
		require.Equal(t, byte(7), x.read(p, 64)[63])
		require.NoError(t, d.DestroyStream(s))
	}
}

func testDestroyStream(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	p, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	require.NoError(t, d.DestroyStream(s))
	x.unfired(e, "destroying a stream must not drop its work")
	release()
	require.NoError(t, d.Sync(x.ctx))
	require.True(t, x.fired(e))
	require.Equal(t, words(backlogFills-1), x.read(p, 4))
	require.ErrorIs(t, d.DestroyStream(s), cuda.ErrInvalidHandle)
}

func testUnknownStream(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	e := x.event()
	for _, h := range []cuda.Stream{0, 0xdead, cuda.Stream(e)} {
		require.ErrorIs(t, d.DestroyStream(h), cuda.ErrInvalidHandle)
		require.ErrorIs(t, d.SyncStream(x.ctx, h), cuda.ErrInvalidHandle)
		var b cuda.Batch
		b.Record(h, e)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidHandle)
	}
}

func testCancelledSync(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	ctx, cancel := context.WithCancel(x.ctx)
	cancel()
	require.ErrorIs(t, d.SyncStream(ctx, s), context.Canceled)
	release()
	x.sync(s)
	require.True(t, x.fired(e))
}

func testNoOrder(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, busy, idle := x.stream(), x.stream(), x.event(), x.event()
	p := x.alloc(64)
	_, release := x.held(s1)
	x.submit(func(b *cuda.Batch) {
		b.Record(s1, busy)
		b.Fill8(s2, p, 3, 64)
		b.Record(s2, idle)
	})
	x.fires(idle)
	x.unfired(busy, "the stream without work waited for the other")
	release()
	x.sync(s1)
}
