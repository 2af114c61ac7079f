package event

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

// Batch is a [cuda.Batch] with the marks and waits that were put in it. It is
// used over and over: fill, Submit, Reset. A Batch is for one goroutine.
//
// Marks of one timeline must be submitted in the order in which they were
// recorded, so goroutines that share a timeline hold a lock of theirs from
// Record to Submit. A batch that was filled and is not wanted must be Reset,
// or else the timelines that it recorded on are stuck ([ErrOrder]).
type Batch struct {
	r     *Registry
	raw   cuda.Batch
	marks []batchMark
	waits []int32 // slots of the events that commands wait for
	err   error   // what Submit will return
	spent bool
	uses  uint64
}

type batchMark struct {
	t    *Timeline
	seq  kv.Seq
	slot int32
	cmd  int // index of the record command
}

// NewBatch returns an empty batch. A captured mark would never fire, so Submit
// refuses streams that are being captured, with [cuda.ErrStreamCapturing].
func (r *Registry) NewBatch() *Batch {
	b := &Batch{r: r}
	b.raw.RefuseCapture()
	return b
}

// Raw returns the batch of commands, for launches, copies and fills. Its Reset
// must not be called.
func (b *Batch) Raw() *cuda.Batch { return &b.raw }

// Registry returns the registry that the batch submits through.
func (b *Batch) Registry() *Registry { return b.r }

// Record adds a mark to the timeline's stream and returns its fence, which
// covers everything before it in that stream. An error (a closed timeline, no
// event to be had, a dead device, no timeline at all) is returned by [Batch.Submit]; the fence is
// then lost.
func (b *Batch) Record(t *Timeline) Fence {
	r := b.r
	if t == nil {
		b.Fail(fmt.Errorf("event: record on no timeline: %w", cuda.ErrInvalidHandle))
		return b.lostFence(&Timeline{r: r, id: kv.Timeline(lastID.Add(1)), name: "none"})
	}
	if t.r != r {
		b.Fail(fmt.Errorf("event: record on %v: %w", t, ErrForeign))
		return b.lostFence(t)
	}
	if b.spent {
		b.Fail(fmt.Errorf("event: record on %v: %w", t, ErrSpent))
		return b.lostFence(t)
	}
	slot, err := r.takeSlot()
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && (t.closed || r.err != nil) {
		r.freeSlot(slot)
		if err = r.err; err == nil {
			err = fmt.Errorf("event: record on %v: %w", t, cuda.ErrClosed)
		}
	}
	t.handed++
	f := Fence{t, t.handed}
	if err != nil {
		t.drop(t.handed)
		b.Fail(err)
		return f
	}
	b.marks = append(b.marks, batchMark{t: t, seq: t.handed, slot: slot, cmd: b.raw.Len()})
	b.raw.Record(t.stream, r.slots[slot].event)
	return f
}

// lostFence returns a fence of t that no command records.
func (b *Batch) lostFence(t *Timeline) Fence {
	t.r.mu.Lock()
	defer t.r.mu.Unlock()
	t.handed++
	t.drop(t.handed)
	return Fence{t, t.handed}
}

// Fail keeps err for [Batch.Submit], which will then submit nothing of the batch.
// The first error stays until Reset. It is for layers that add commands without
// an error of their own to return.
func (b *Batch) Fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

// Wait makes the commands that follow on s wait, on the device, for f. It adds
// nothing if f has fired or s is f's own stream. The wait is for f's event, or
// for that of the next good mark if f's record failed.
//
// It returns [cuda.ErrNotRecorded], and adds nothing, if there is none: f's
// batch has not been submitted (and is not this one), or f is lost. On a dead
// device it returns the cause.
func (b *Batch) Wait(s cuda.Stream, f Fence) error {
	if f.Done() {
		return nil
	}
	r, t := b.r, f.t
	if t.r != r {
		return fmt.Errorf("event: wait for %v: %w", f, ErrForeign)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.err != nil {
		return r.err
	}
	settled := uint64(f.seq) <= t.settled.Load()
	if settled {
		if t.stream == s {
			return nil
		}
		if m, ok := t.covering(f.seq); ok {
			b.addWait(s, m.slot)
			return nil
		}
		if f.Done() { // fired meanwhile
			return nil
		}
	}
	// Marks of this batch are in the stream before the wait is. One behind f
	// covers it: Submit insists that f's batch went first.
	for _, m := range b.marks {
		if m.t == t && m.seq >= f.seq && !b.spent {
			if t.stream != s {
				b.addWait(s, m.slot)
			}
			return nil
		}
	}
	return f.notRecorded()
}

func (b *Batch) addWait(s cuda.Stream, slot int32) {
	sl := &b.r.slots[slot]
	sl.refs++
	b.waits = append(b.waits, slot)
	b.raw.WaitEvent(s, sl.event)
}

// Submit hands the batch to the device in one crossing and settles its marks.
// Call Reset before the batch is used again, whatever Submit returned.
//
// An error of the device is a *[cuda.SubmitError]; marks from the failed
// command on are lost. After a sticky one the registry is dead. [ErrOrder] and
// errors that Record or Fail kept for Submit mean that nothing was submitted; after
// ErrOrder alone Submit may be tried again.
func (b *Batch) Submit() error {
	b.uses++
	r := b.r
	if b.spent {
		return fmt.Errorf("event: submit: %w", ErrSpent)
	}
	if b.err != nil {
		return b.err
	}
	err := b.submit()
	if err != nil && fatal(err) {
		r.kill(err)
	}
	return err
}

func (b *Batch) submit() error {
	r := b.r
	r.submitting.Lock()
	defer r.submitting.Unlock()
	r.mu.Lock()
	err := r.err
	if err == nil {
		err = b.checkOrder()
	}
	r.mu.Unlock()
	if err != nil {
		return err
	}
	before := r.activity()
	err = r.dev.Submit(&b.raw)
	b.settle(err)
	if r.activity() != before {
		// A mark may have fired between the call and its place in the books.
		r.again.Store(true)
	}
	return err
}

// checkOrder sees to it that the batch's marks are the next ones of their
// timelines. r.mu is held.
func (b *Batch) checkOrder() error {
	for _, m := range b.marks {
		m.t.check = kv.Seq(m.t.settled.Load())
	}
	for _, m := range b.marks {
		if next := m.t.after(m.t.check); m.seq != next {
			return fmt.Errorf("event: mark %d of %v before mark %d: %w", m.seq, m.t, next, ErrOrder)
		}
		m.t.check = m.seq
	}
	return nil
}

// settle books what became of the marks: those before the failed command are
// open, the others are lost.
func (b *Batch) settle(err error) {
	r := b.r
	in := b.raw.Len()
	if err != nil {
		in = 0 // nothing is known to be in, unless the error says so
		var se *cuda.SubmitError
		if errors.As(err, &se) {
			in = se.Index
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range b.marks {
		if m.cmd < in {
			m.t.open.Push(openMark{m.seq, m.slot})
			m.t.good.Store(uint64(m.seq))
			r.open.Add(1)
		} else {
			r.freeSlot(m.slot)
		}
		m.t.settle(m.seq)
	}
	b.dropWaits()
	b.spent = true
}

func (b *Batch) dropWaits() {
	for _, slot := range b.waits {
		b.r.unrefSlot(slot)
	}
	b.waits = b.waits[:0]
}

// Uses counts the calls of Submit and Reset, so that whoever lends the batch to
// a function can see that it was used up or emptied meanwhile.
func (b *Batch) Uses() uint64 { return b.uses }

// Spent reports whether the batch was submitted and not reset since.
func (b *Batch) Spent() bool { return b.spent }

// Reset empties the batch and keeps its memory. Marks that were not submitted
// are lost.
func (b *Batch) Reset() {
	b.uses++
	if !b.spent && len(b.marks)+len(b.waits) > 0 {
		b.r.mu.Lock()
		for _, m := range b.marks {
			b.r.freeSlot(m.slot)
			m.t.drop(m.seq)
		}
		b.dropWaits()
		b.r.mu.Unlock()
	}
	b.raw.Reset()
	b.marks = b.marks[:0]
	b.err, b.spent = nil, false
}
