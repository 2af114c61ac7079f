package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// A wait that nobody satisfies is a deadlock, and the report says what is there.
func TestWaitForAWordThatNobodyWrites(t *testing.T) {
	r := newRig(t, Options{})
	s, w := r.stream("waiting"), r.pinned("flags", 64)
	w.Word(8).Store(6)
	r.submit(func(b *cuda.Batch) { b.WaitWord(s, w.Device+8, 7) })
	var d *vtime.DeadlockError
	require.ErrorAs(t, r.SyncStream(bg, s), &d)
	require.Contains(t, d.Report, `waiting: 1 commands; the first, wait word 0x7 at 0x`)
	require.Contains(t, d.Report, `finds 0x6 at offset 0x8 of "flags" there`)
}

// A stream that waits for a word which another would write behind it: what the
// vendor warns of.
func TestWordsAndEventsInACircle(t *testing.T) {
	r := newRig(t, Options{})
	s1, s2, w, e := r.stream("first"), r.stream("second"), r.pinned("flags", 64), r.event()
	w.Word(0).Store(0)
	r.submit(func(b *cuda.Batch) {
		b.WaitWord(s1, w.Device, 1)
		b.Record(s1, e)
		b.WaitEvent(s2, e)
		b.WriteWord(s2, w.Device, 1)
	})
	var d *vtime.DeadlockError
	require.ErrorAs(t, r.Sync(bg), &d)
	require.Contains(t, d.Report, "second: 2 commands; the first, wait event")
}

func TestWordThatIsFreedUnderAWait(t *testing.T) {
	r := newRig(t, Options{})
	s, w := r.stream("s"), r.pinned("flags", 64)
	w.Word(0).Store(0)
	r.submit(func(b *cuda.Batch) { b.WaitWord(s, w.Device, 1) })
	require.NoError(t, r.FreePinned(w))
	err := r.SyncStream(bg, s)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	require.ErrorContains(t, err, `use after free: offset 0x0 of "flags"`)
}

func TestDeviceClosedUnderAWaitForAWord(t *testing.T) {
	for _, o := range []Options{{}, {Real: true}} {
		d, err := New(o)
		require.NoError(t, err)
		r := &rig{Device: d, t: t}
		s, w := r.stream("s"), r.pinned("flags", 64)
		w.Word(0).Store(0)
		r.submit(func(b *cuda.Batch) { b.WaitWord(s, w.Device, 1) })
		require.NoError(t, d.Close())
	}
}

func TestWordTimes(t *testing.T) {
	r := newRig(t, Options{})
	s, w := r.stream("s"), r.pinned("flags", 64)
	w.Word(0).Store(0)
	require.Equal(t, r.costs.Crossing+r.costs.WordOp+r.costs.WordLatency,
		r.took(func(b *cuda.Batch) { b.WriteWord(s, w.Device, 1) }))
	at := r.world.Now()
	r.submit(func(b *cuda.Batch) { b.WaitWord(s, w.Device, 2) })
	require.NoError(t, r.world.Sleep(bg, time.Millisecond))
	w.Word(0).Store(2)
	require.NoError(t, r.SyncStream(bg, s))
	require.Equal(t, at+r.costs.Crossing+r.costs.WordOp+time.Millisecond+r.costs.StreamWait+r.costs.Wake, r.world.Now(),
		"from the moment at which the host gave way")
}

// Of what can be done to a command by hand.
func TestBadWordCommands(t *testing.T) {
	r := newRig(t, Options{})
	s, w := r.stream("s"), r.alloc("w", 64)
	for _, c := range []cuda.Command{
		{Op: cuda.OpWriteWord, A: uint64(w), B: 1 << 32}, {Op: cuda.OpWaitWord, A: uint64(w), B: 1 << 32},
		{Op: cuda.OpWaitWord, A: uint64(w), Flags: 2}, {Op: cuda.OpWriteWord, A: uint64(w), Flags: cuda.WaitFlush},
	} {
		var b cuda.Batch
		b.WriteWord(s, w, 0)
		b.Commands()[0] = c
		require.ErrorIs(t, r.Submit(&b), cuda.ErrInvalidValue, "%+v", c)
	}
	require.Panics(t, func() { r.pinned("p", 64).Word(61) })
	require.Panics(t, func() { r.pinned("p", 64).Word(2) })
}

// What a NIC has written is there for the work behind a wait with a flush, and
// need not be behind one without.
func TestWaitForAWordFlushesWhatNICsWrote(t *testing.T) {
	for _, flush := range []bool{false, true} {
		r := newRig(t, Options{NICWritesLate: true})
		s, w, p, q := r.stream("s"), r.pinned("flags", 64), r.alloc("p", 64), r.alloc("q", 64)
		w.Word(0).Store(0)
		r.submit(func(b *cuda.Batch) {
			b.Fill8(s, p, 1, 64)
			if flush {
				b.WaitWordFlush(s, w.Device, 1)
			} else {
				b.WaitWord(s, w.Device, 1)
			}
			b.Copy(s, q, p, 64)
		})
		require.NoError(t, r.world.Sleep(bg, time.Millisecond))
		r.locked(func() { require.NoError(t, r.NIC().Write(uint64(p), []byte{9, 9, 9, 9})) })
		if flush { // the NIC writes the word, too
			r.locked(func() { require.NoError(t, r.NIC().Write(uint64(w.Device), []byte{1, 0, 0, 0})) })
		} else {
			w.Word(0).Store(1)
		}
		require.NoError(t, r.SyncStream(bg, s))
		want := []byte{1, 1}
		if flush {
			want = []byte{9, 1}
		}
		got := r.read(q, 64)
		require.Equal(t, want, []byte{got[0], got[4]}, "flush: %v", flush)
	}
}
