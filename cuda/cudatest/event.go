package cudatest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var eventBehaviours = []behaviour{
	{name: "event: never recorded counts as done", page: eventPage, one: testNeverRecorded},
	{name: "event: a wait for one never recorded holds nothing", page: streamPage, one: testWaitNeverRecorded},
	{name: "event: pending, then fired", page: eventPage, one: testPendingThenFired},
	{name: "event: fires when the work before it is over", page: eventPage, one: testFiresAfterWork},
	{name: "event: recorded again, the new record counts", page: eventPage, one: testRecordAgain},
	{name: "event: a wait captures the state at its call", page: streamPage, one: testWaitCaptures},
	{name: "event: recorded twice, the second one counts", page: eventPage, one: testRecordTwice},
	{name: "event: recorded in another stream, that one counts", page: eventPage, one: testRecordElsewhere},
	{name: "event: a wait holds back nothing before it", page: streamPage, one: testWaitHoldsOnlyWhatFollows},
	{name: "event: a chain of waits", page: streamPage, one: testChain},
	{name: "event: a wait orders two streams", page: streamPage, one: testCrossStream},
	{name: "event: a wait in the same stream", page: streamPage, one: testWaitSameStream},
	{name: "event: waits of many streams for one event", page: streamPage, one: testFanOut},
	{name: "event: destroyed while pending", page: eventPage, one: testDestroyEvent},
	{name: "event: unknown handles", page: eventPage, one: testUnknownEvent},
	{name: "event: many marks in one poll", page: eventPage, one: testPollMany},
	{name: "event: a word in pinned memory as a mark", page: wordPage, one: testWordMark},
	{name: "event: a mark that asks for nothing", page: ownPage, one: testEmptyMark},
}

func testNeverRecorded(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	require.True(t, x.fired(x.event()))
}

func testWaitNeverRecorded(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, e := x.stream(), x.alloc(64), x.event()
	x.submit(func(b *cuda.Batch) {
		b.WaitEvent(s, e)
		b.Fill8(s, p, 5, 64)
	})
	x.sync(s)
	require.Equal(t, byte(5), x.read(p, 1)[0])
}

func testPendingThenFired(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.unfired(e, "the stream is held")
	release()
	x.sync(s)
	require.True(t, x.fired(e))
	require.True(t, x.fired(e), "and stays so")
}

func testFiresAfterWork(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, e := x.stream(), x.pinned(1<<20), x.event()
	x.submit(func(b *cuda.Batch) {
		b.Fill8(s, p.Device, 1, 1<<20)
		b.Fill8(s, p.Device, 2, 1<<20)
		b.Record(s, e)
	})
	x.fires(e)
	for i, v := range p.Host {
		if v != 2 {
			t.Fatalf("byte %d is %d when the event has fired", i, v)
		}
	}
}

func testRecordAgain(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.sync(s)
	require.True(t, x.fired(e))
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.unfired(e, "the stream is held")
	release()
	x.sync(s)
	require.True(t, x.fired(e))
}

// A wait is for the record at its call: one made later, which would never come
// to pass before the wait is over, must not be waited for.
func testWaitCaptures(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, p, e := x.stream(), x.stream(), x.alloc(64), x.event()
	done := x.event()
	x.submit(func(b *cuda.Batch) { b.Record(s1, e) })
	x.submit(func(b *cuda.Batch) {
		b.WaitEvent(s2, e)
		b.Fill8(s2, p, 1, 64)
		b.Record(s2, done)
		// Had the wait not captured, s1 would wait for s2 and s2 for s1.
		b.WaitEvent(s1, done)
		b.Record(s1, e)
	})
	x.sync(s2)
	x.sync(s1)
	require.Equal(t, byte(1), x.read(p, 1)[0])
}

func testCrossStream(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, e := x.stream(), x.stream(), x.event()
	dst, src := x.alloc(backlogBytes), x.alloc(backlogBytes)
	x.submit(func(b *cuda.Batch) {
		x.backlog(b, s1, src)
		b.Record(s1, e)
		b.WaitEvent(s2, e)
		b.Copy(s2, dst, src, backlogBytes)
	})
	x.sync(s2)
	require.Equal(t, x.read(src, 1<<16), x.read(dst, 1<<16))
	require.Equal(t, words(backlogFills-1), x.read(dst+backlogBytes-4, 4))
}

func testWaitSameStream(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, e := x.stream(), x.alloc(64), x.event()
	x.submit(func(b *cuda.Batch) {
		b.Record(s, e)
		b.WaitEvent(s, e)
		b.Fill8(s, p, 9, 64)
	})
	x.sync(s)
	require.Equal(t, byte(9), x.read(p, 1)[0])
}

func testFanOut(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	src, dst := x.alloc(backlogBytes), x.alloc(16*256)
	x.submit(func(b *cuda.Batch) {
		x.backlog(b, s, src)
		b.Record(s, e)
	})
	for i := range cuda.DevicePtr(16) {
		o := x.stream()
		x.submit(func(b *cuda.Batch) {
			b.WaitEvent(o, e)
			b.Copy(o, dst+256*i, src+backlogBytes-256, 256)
		})
	}
	require.NoError(t, d.Sync(x.ctx))
	require.Equal(t, x.read(src, 16*256), x.read(dst, 16*256))
}

func testDestroyEvent(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, e := x.stream(), x.stream(), x.event()
	dst, src := x.alloc(256), x.alloc(backlogBytes)
	x.submit(func(b *cuda.Batch) {
		x.backlog(b, s1, src)
		b.Record(s1, e)
		b.WaitEvent(s2, e)
		b.Copy(s2, dst, src+backlogBytes-256, 256)
	})
	require.NoError(t, d.DestroyEvent(e))
	require.ErrorIs(t, d.DestroyEvent(e), cuda.ErrInvalidHandle)
	x.sync(s2)
	require.Equal(t, words(backlogFills-1), x.read(dst, 4), "the wait must outlive its event")
}

func testUnknownEvent(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s := x.stream()
	for _, e := range []cuda.Event{0xdead, cuda.Event(s)} {
		require.ErrorIs(t, d.DestroyEvent(e), cuda.ErrInvalidHandle)
		require.ErrorIs(t, d.Poll([]cuda.Mark{{Event: e}}), cuda.ErrInvalidHandle)
		var b cuda.Batch
		b.WaitEvent(s, e)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidHandle)
	}
}

func testPollMany(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2 := x.stream(), x.stream()
	marks := make([]cuda.Mark, 20)
	for i := range marks {
		marks[i] = cuda.Mark{Event: x.event(), State: cuda.MarkFired}
	}
	_, release := x.held(s2)
	x.submit(func(b *cuda.Batch) {
		for i, m := range marks {
			b.Record([]cuda.Stream{s1, s2}[i%2], m.Event)
		}
	})
	x.sync(s1)
	require.NoError(t, d.Poll(marks))
	for i, m := range marks {
		require.Equal(t, i%2 == 0, m.State == cuda.MarkFired, "mark %d", i)
	}
	release()
	x.sync(s2)
	require.NoError(t, d.Poll(marks))
	for i, m := range marks {
		require.Equal(t, cuda.MarkFired, m.State, "mark %d", i)
	}
}

func testWordMark(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.pinned(64)
	clear(p.Host)
	x.submit(func(b *cuda.Batch) { b.Fill32(s, p.Device+8, 0x80000001, 1) })
	x.sync(s)
	for _, c := range []struct {
		want uint32
		hit  bool
	}{{0x80000001, true}, {0x80000002, false}, {1, false}, {2, true}, {0x80000000, true}} {
		m := []cuda.Mark{{Word: p.Device + 8, Want: c.want}}
		require.NoError(t, d.Poll(m))
		require.Equal(t, uint32(0x80000001), m[0].Seen)
		require.Equal(t, c.hit, m[0].State == cuda.MarkFired, "cyclic comparison with %#x", c.want)
	}
}

func testEmptyMark(t *testing.T, d cuda.Device) {
	require.ErrorIs(t, d.Poll([]cuda.Mark{{}}), cuda.ErrInvalidValue)
	require.NoError(t, d.Poll(nil))
}

func testRecordTwice(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	p, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.unfired(e, "the first record may have fired, the second has not")
	release()
	x.fires(e)
	require.Equal(t, words(backlogFills-1), x.read(p+backlogBytes-4, 4))
}

func testRecordElsewhere(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, e := x.stream(), x.stream(), x.event()
	_, release := x.held(s1)
	x.submit(func(b *cuda.Batch) { b.Record(s1, e) })
	x.unfired(e, "the stream is held")
	x.submit(func(b *cuda.Batch) { b.Record(s2, e) })
	x.sync(s2)
	require.True(t, x.fired(e), "the record in the idle stream has taken its place")
	release()
	x.sync(s1)
}

func testWaitHoldsOnlyWhatFollows(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, busy, before, after := x.stream(), x.stream(), x.event(), x.event(), x.event()
	_, release := x.held(s1)
	x.submit(func(b *cuda.Batch) {
		b.Record(s1, busy)
		b.Record(s2, before)
		b.WaitEvent(s2, busy)
		b.Record(s2, after)
	})
	x.fires(before)
	x.unfired(after, "the stream is held")
	release()
	x.sync(s2)
	require.True(t, x.fired(busy))
	require.True(t, x.fired(after))
}

func testChain(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	const n = 8
	p := x.alloc((n + 1) * 256)
	first := x.stream()
	prev := x.event()
	src := x.busy(first)
	x.submit(func(b *cuda.Batch) {
		b.Copy(first, p, src+backlogBytes-256, 256)
		b.Record(first, prev)
	})
	for i := range cuda.DevicePtr(n) {
		s, e := x.stream(), x.event()
		x.submit(func(b *cuda.Batch) {
			b.WaitEvent(s, prev)
			b.Copy(s, p+(i+1)*256, p+i*256, 256)
			b.Record(s, e)
		})
		prev = e
	}
	require.NoError(t, d.Sync(x.ctx))
	require.Equal(t, words(backlogFills-1), x.read(p+n*256+252, 4))
}
