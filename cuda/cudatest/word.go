package cudatest

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// While a stream waits for a word that is not written, nothing is allocated or
// freed: on hardware that may wait for the stream.
var wordBehaviours = []behaviour{
	{name: "word: a write comes behind the work before it", page: wordPage, one: testWordBehindWork},
	{name: "word: the host sees writes in their order", page: wordPage, one: testWordsInOrder},
	{name: "word: a wait holds its stream until a write", page: wordPage, one: testWaitWordHolds},
	{name: "word: a wait that is satisfied holds nothing", page: wordPage, one: testWaitWordSatisfied},
	{name: "word: a wait compares cyclically", page: wordPage, one: testWaitWordCyclic},
	{name: "word: a wait orders two streams", page: wordPage, one: testWaitWordOrders},
	{name: "word: a wait is ended by the host", page: wordPage, one: testWaitWordHost},
	{name: "word: a wait is ended by a copy", page: wordPage, one: testWaitWordCopy},
	{name: "word: a wait holds its own stream alone", page: wordPage, one: testWaitWordAlone},
	{name: "word: a wait with a flush", page: wordPage, one: testWaitWordFlush},
	{name: "word: misaligned, or outside of allocations", page: wordPage, one: testBadWords},
	{name: "word: not in managed memory", page: wordPage, one: testManagedWord},
	{name: "word: a wait does not keep an error from a waiter", page: wordPage, kills: true, one: testWaitWordError},
}

// word returns a word in device memory that holds v.
func (x *bench) word(v uint32) cuda.DevicePtr {
	x.t.Helper()
	p := x.alloc(256)
	x.write(p, words(v))
	return p
}

func (x *bench) load(p cuda.DevicePtr) uint32 {
	x.t.Helper()
	return binary.LittleEndian.Uint32(x.read(p, 4))
}

// pending requires that e does not fire for a while.
func (x *bench) pending(e cuda.Event) {
	x.t.Helper()
	for range 5 {
		require.False(x.t, x.fired(e))
		require.NoError(x.t, x.Clock().Sleep(x.ctx, time.Millisecond))
	}
	require.False(x.t, x.fired(e))
}

func testWordBehindWork(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, w := x.stream(), x.word(0)
	p := x.busy(s)
	x.submit(func(b *cuda.Batch) { b.WriteWord(s, w, 7) })
	x.until("the word is written", func() bool { return x.load(w) == 7 })
	require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
	require.Equal(t, []byte{7, 0, 0, 0, 7}, append(x.read(w, 4), 7), "all of the word")
	x.sync(s)
}

func testWordsInOrder(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.pinned(256)
	first, second := p.Word(0), p.Word(128)
	first.Store(0)
	second.Store(0)
	const n = 100
	x.submit(func(b *cuda.Batch) {
		for i := range uint32(n) {
			b.WriteWord(s, p.Device, i+1)
			b.WriteWord(s, p.Device+128, i+1)
		}
	})
	seen := uint32(0)
	x.until("all words are written", func() bool {
		v := second.Load()
		require.GreaterOrEqual(t, first.Load(), v, "the second word is there, the first is not")
		require.GreaterOrEqual(t, v, seen, "a word went back")
		seen = v
		return seen == n
	})
	x.sync(s)
}

func testWaitWordHolds(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, w, p, e := x.stream(), x.stream(), x.word(0), x.word(1), x.event()
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(s1, w, 5)
		b.Fill32(s1, p, 2, 1)
		b.Record(s1, e)
	})
	x.submit(func(b *cuda.Batch) { b.WriteWord(s2, w, 4) })
	x.sync(s2)
	x.pending(e)
	require.Equal(t, uint32(1), x.load(p))
	x.submit(func(b *cuda.Batch) { b.WriteWord(s2, w, 5) })
	x.sync(s1)
	require.True(t, x.fired(e))
	require.Equal(t, uint32(2), x.load(p))
}

func testWaitWordSatisfied(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, w := x.stream(), x.word(9)
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(s, w, 9)
		b.WaitWord(s, w, 3)
		b.WriteWord(s, w, 10)
		b.WaitWord(s, w, 10)
		b.WriteWord(s, w, 11)
	})
	x.sync(s)
	require.Equal(t, uint32(11), x.load(w))
}

func testWaitWordCyclic(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, o := x.stream(), x.stream()
	for _, c := range []struct{ word, want uint32 }{{4, 0xfffffff0}, {0x80000000, 0x7fffffff}, {0, 0}, {0x7fffffff, 0}} {
		w := x.word(c.word)
		x.submit(func(b *cuda.Batch) { b.WaitWord(s, w, c.want) })
		x.sync(s)
	}
	for _, c := range []struct{ word, want uint32 }{{0xfffffff0, 4}, {0x80000000, 0}, {0x7fffffff, 0x80000000}} {
		w, e := x.word(c.word), x.event()
		x.submit(func(b *cuda.Batch) {
			b.WaitWord(s, w, c.want)
			b.Record(s, e)
		})
		x.pending(e)
		x.submit(func(b *cuda.Batch) { b.WriteWord(o, w, c.want) })
		x.sync(s)
		require.True(t, x.fired(e))
	}
}

func testWaitWordOrders(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, w, q := x.stream(), x.stream(), x.word(0), x.alloc(64)
	p := x.busy(s1)
	x.submit(func(b *cuda.Batch) {
		b.WriteWord(s1, w, 1)
		b.WaitWord(s2, w, 1)
		b.Copy(s2, q, p+backlogBytes-4, 4)
	})
	x.sync(s2)
	require.Equal(t, last(), x.read(q, 4))
}

func testWaitWordHost(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, w, e := x.stream(), x.pinned(64), x.event()
	w.Word(60).Store(0)
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(s, w.Device+60, 1)
		b.Record(s, e)
	})
	x.pending(e)
	w.Word(60).Store(1)
	x.sync(s)
	require.True(t, x.fired(e))
}

func testWaitWordCopy(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, w, v, e := x.stream(), x.stream(), x.word(0), x.word(3), x.event()
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(s1, w, 3)
		b.Record(s1, e)
	})
	x.pending(e)
	x.submit(func(b *cuda.Batch) { b.Copy(s2, w, v, 4) })
	x.sync(s1)
	require.True(t, x.fired(e))
}

func testWaitWordAlone(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, w, p, e := x.stream(), x.stream(), x.word(0), x.alloc(backlogBytes), x.event()
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(s1, w, 1)
		b.Record(s1, e)
		x.backlog(b, s2, p)
	})
	x.sync(s2)
	require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
	require.False(x.t, x.fired(e))
	x.submit(func(b *cuda.Batch) { b.WriteWord(s2, w, 1) })
	x.sync(s1)
}

func testWaitWordFlush(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, w := x.stream(), x.word(1)
	x.b.Reset()
	x.b.WaitWordFlush(s, w, 1)
	x.b.WriteWord(s, w, 2)
	err := d.Submit(&x.b)
	if !d.Info().FlushesWrites {
		require.ErrorIs(t, err, cuda.ErrNotSupported)
		return
	}
	require.NoError(t, err)
	x.sync(s)
	require.Equal(t, uint32(2), x.load(w))
}

func testBadWords(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, w := x.stream(), x.word(0)
	freed := x.alloc(64)
	require.NoError(t, d.Free(freed))
	for _, p := range []cuda.DevicePtr{0, w + 2, 0x1000, freed} {
		for name, add := range map[string]func(b *cuda.Batch){
			"write": func(b *cuda.Batch) { b.WriteWord(s, p, 1) },
			"wait":  func(b *cuda.Batch) { b.WaitWord(s, p, 1) },
		} {
			x.b.Reset()
			add(&x.b)
			require.ErrorIs(t, d.Submit(&x.b), cuda.ErrInvalidValue, "%s at %#x", name, uint64(p))
		}
	}
	require.NoError(t, d.Sync(x.ctx), "none of that is sticky, nor in the stream")
}

// A word in pinned memory of one device is one of the other's, too.
func testPeerWord(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	w, p := x.pinned(64), x.word(0)
	w.Word(0).Store(0)
	s, o, e := x.stream(), y.stream(), y.event()
	y.submit(func(c *cuda.Batch) {
		c.WaitWord(o, w.Device, 1)
		c.WriteWord(o, w.Device+4, 5)
		c.Record(o, e)
	})
	y.pending(e)
	x.submit(func(c *cuda.Batch) {
		c.WriteWord(s, w.Device, 1)
		c.WaitWord(s, w.Device+4, 5)
		c.WriteWord(s, p, 2)
	})
	x.sync(s)
	y.sync(o)
	require.Equal(t, uint32(5), w.Word(4).Load())
	require.Equal(t, uint32(2), x.load(p))
}

// The vendor says that neither takes it, and not by which code.
func testManagedWord(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	_, m := x.managed(256)
	s := x.stream()
	copy(m.Host, words(1)) // so that a wait that is taken ends
	for _, c := range []struct {
		what string
		add  func(b *cuda.Batch)
	}{
		{"a stream writes a word of managed memory", func(b *cuda.Batch) { b.WriteWord(s, m.Device, 1) }},
		{"a stream waits for a word of managed memory", func(b *cuda.Batch) { b.WaitWord(s, m.Device, 1) }},
	} {
		x.answers(c.what, x.try(c.add), cuda.ErrInvalidValue, cuda.ErrNotSupported)
	}
	x.sync(s)
}

// A stream that waits for a word for ever does not keep those who wait for it
// from being told that the device is dead.
func testWaitWordError(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, w, f, e := x.stream(), x.stream(), x.word(0), x.kernel("fill_index"), x.event()
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(s1, w, 1)
		b.Record(s1, e)
	})
	told := make(chan error, 2)
	d.Clock().Go("waiter", func() { told <- d.SyncStream(x.ctx, s1) })
	d.Clock().Go("waiter", func() { told <- d.SyncEvent(x.ctx, e) })
	require.NoError(t, d.Clock().Sleep(x.ctx, time.Millisecond))
	require.Empty(t, told)
	x.submit(func(b *cuda.Batch) { fillIndex(b, s2, f, 0x1000, 128, 0) })
	for range cap(told) {
		x.until("a waiter is told", func() bool { return len(told) > 0 })
		err := <-told
		require.True(t, errors.Is(err, cuda.ErrIllegalAddress), "%v", err)
	}
}
