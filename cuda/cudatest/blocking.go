package cudatest

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var blockingBehaviours = []behaviour{
	{name: "blocking: an event is waited for by spinning", page: eventPage, one: func(t *testing.T, d cuda.Device) { testSyncEvent(t, d, false) }},
	{name: "blocking: an event is waited for by sleeping", page: eventPage, one: func(t *testing.T, d cuda.Device) { testSyncEvent(t, d, true) }},
	{name: "blocking: an event never recorded is not waited for", page: eventPage, one: testSyncNeverRecorded},
	{name: "blocking: the newest record of an event counts", page: eventPage, one: testSyncNewest},
	{name: "blocking: a wait for an event ends with its context", page: ownPage, one: testCancelledSyncEvent},
	{name: "blocking: unknown events", page: eventPage, one: testSyncUnknownEvent},
	{name: "blocking: all forms are told of an error", page: typesPage, kills: true, one: testSyncError},
	{name: "priority: the range, and what lies outside of it", page: streamPage, one: testPriorityRange},
}

func (x *bench) eventOf(sleep bool) cuda.Event {
	x.t.Helper()
	e, err := x.NewEventWithOptions(cuda.EventOptions{BlockingSync: sleep})
	require.NoError(x.t, err)
	return e
}

func testSyncEvent(t *testing.T, d cuda.Device, sleep bool) {
	x := newBench(t, d)
	s, e := x.stream(), x.eventOf(sleep)
	p, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.unfired(e, "the stream is held")
	release()
	require.NoError(t, d.SyncEvent(x.ctx, e))
	require.True(t, x.fired(e))
	require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
	require.NoError(t, d.SyncEvent(x.ctx, e), "and again")
}

func testSyncNeverRecorded(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	for _, sleep := range []bool{false, true} {
		require.NoError(t, d.SyncEvent(x.ctx, x.eventOf(sleep)))
	}
}

func testSyncNewest(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s := x.stream()
	for _, sleep := range []bool{false, true} {
		e := x.eventOf(sleep)
		x.submit(func(b *cuda.Batch) { b.Record(s, e) })
		p := x.busy(s)
		x.submit(func(b *cuda.Batch) { b.Record(s, e) })
		require.NoError(t, d.SyncEvent(x.ctx, e))
		require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
	}
}

func testCancelledSyncEvent(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s := x.stream()
	for _, sleep := range []bool{false, true} {
		e := x.eventOf(sleep)
		_, release := x.held(s)
		x.submit(func(b *cuda.Batch) { b.Record(s, e) })
		ctx, cancel := context.WithCancel(x.ctx)
		cancel()
		require.ErrorIs(t, d.SyncEvent(ctx, e), context.Canceled)
		release()
		x.sync(s)
		require.True(t, x.fired(e), "the work is not canceled")
	}
}

func testSyncUnknownEvent(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	gone := x.event()
	require.NoError(t, d.DestroyEvent(gone))
	for _, e := range []cuda.Event{0, 0xdead, gone} {
		require.ErrorIs(t, d.SyncEvent(x.ctx, e), cuda.ErrInvalidHandle)
	}
}

func testSyncError(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, spin, sleep := x.stream(), x.kernel("fill_index"), x.eventOf(false), x.eventOf(true)
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) {
		fillIndex(b, s, f, 0x1000, 128, 0)
		b.Record(s, spin)
		b.Record(s, sleep)
	})
	told := make(chan error, 4)
	for _, wait := range []func() error{
		func() error { return d.SyncStream(x.ctx, s) }, func() error { return d.SyncEvent(x.ctx, spin) },
		func() error { return d.SyncEvent(x.ctx, sleep) }, func() error { return d.Sync(x.ctx) },
	} {
		d.Clock().Go("waiter", func() { told <- wait() })
	}
	release()
	x.until("all waiters are told", func() bool { return len(told) == cap(told) })
	for range cap(told) {
		require.ErrorIs(t, <-told, cuda.ErrIllegalAddress)
	}
}

// Smaller numbers are greater priorities; 0 is the least.
func testPriorityRange(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	r := d.Info().Priorities
	require.Zero(t, r[0])
	require.LessOrEqual(t, r[1], r[0])
	for _, c := range []struct {
		o    cuda.StreamOptions
		want int
	}{
		{cuda.StreamOptions{}, 0},
		{cuda.StreamOptions{Priority: 77}, 0},
		{cuda.StreamOptions{Priority: -77}, r[1]},
		{cuda.StreamOptions{Priority: r[1]}, r[1]},
		{cuda.StreamOptions{HighPriority: true}, r[1]},
		{cuda.StreamOptions{HighPriority: true, Blocking: true}, r[1]},
	} {
		s, err := d.NewStream(c.o)
		require.NoError(t, err)
		got, err := d.StreamPriority(s)
		require.NoError(t, err)
		require.Equal(t, c.want, got, "%+v", c.o)
	}
	_, err := d.StreamPriority(0xdead)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	got, err := d.StreamPriority(x.legacy())
	require.NoError(t, err)
	require.Zero(t, got)
}
