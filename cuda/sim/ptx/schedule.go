package ptx

import "fmt"

// block is a thread block that has begun.
type block struct {
	id     [3]uint32
	shared []byte
	begun  uint32              // warps of it
	warps  []*warp             // that have begun and not exited
	joined [maxBarriers]uint32 // warps that arrived at a barrier and went on
}

// Progress is what an [Run.Advance] came to.
type Progress struct {
	Done bool // all thread blocks have run
	// Wait is how long, in nanoseconds, the launch has nothing to do before the next
	// Advance: its warps sleep, or have computed for so long.
	Wait uint64
	// Stuck: every warp waits for memory that only others can change; see
	// [Run.Changed].
	Stuck bool

	busy bool // a warp computes, and its turn was over
}

// Slept returns how long, in nanoseconds, the last Step waited. A nanosleep takes just
// as long as it says (hardware: up to twice that), at most a millisecond; thread
// blocks sleep at the same time. Lanes that sleep apart sleep one after the other.
func (r *Run) Slept() uint64 { return r.ahead }

// Step runs the next n thread blocks to their end, in linear order with x
// fastest, and reports whether all have run. Time passes for it alone, and nobody
// else works on its memory: a kernel that waits for that ends in [ErrStepLimit].
// An error is a *[Trap]; the launch is over then, with the stores of what ran in
// memory, and every further Step returns the same error. It allocates nothing
// unless it fails, or thread blocks wait for each other.
func (r *Run) Step(n uint64) (done bool, err error) {
	if len(r.blocks) == 0 {
		r.ahead = 0
	}
	goal := r.ended + min(n, r.total-r.ended)
	for r.ended < goal {
		p, err := r.advance(goal - min(goal, r.ended+uint64(len(r.blocks))))
		switch {
		case err != nil:
			return true, err
		case r.ended >= goal:
		case (p.Stuck || p.busy) && r.room(): // for a block that these may wait for
			if _, err := r.advance(1); err != nil {
				return true, err
			}
		case p.Stuck:
			return true, r.failed(r.spins(""))
		default:
			r.ahead += p.Wait
		}
	}
	return r.ended == r.total, r.err
}

// Advance runs thread blocks that have begun as far as they come, and up to n further
// ones. The caller lets [Progress.Wait] pass before it calls again: Launch.Timer tells
// so, or, where there is none, it is taken to have passed. An error is as that of
// Step.
func (r *Run) Advance(n uint64) (Progress, error) {
	p, err := r.advance(n)
	if err == nil && r.room() {
		p = Progress{} // there is more to begin
	}
	if r.l.Timer == nil {
		r.ahead += p.Wait
	}
	return p, err
}

func (r *Run) advance(n uint64) (Progress, error) {
	if r.err != nil {
		return Progress{Done: true}, r.err
	}
	defer r.forget()
	r.now = r.ahead
	if r.l.Timer != nil {
		r.now += r.l.Timer()
	}
	for i := 0; i < len(r.blocks); i++ {
		b := r.blocks[i]
		if err := r.runBlock(b); err != nil {
			return Progress{Done: true}, r.failed(err)
		}
		if b.over(r) {
			r.blocks = append(r.blocks[:i], r.blocks[i+1:]...)
			i--
		}
	}
	for ; n > 0 && (len(r.blocks) == 0 && r.next < r.total || r.room()); n-- {
		b := r.beginBlock()
		if err := r.runBlock(b); err != nil {
			return Progress{Done: true}, r.failed(err)
		}
		if !b.over(r) {
			r.blocks = append(r.blocks, b)
		}
	}
	return r.progress(), nil
}

func (r *Run) failed(err error) error {
	r.err = err
	return err
}

// room reports whether a further block may begin.
func (r *Run) room() bool {
	need := uint64(r.made-len(r.idle)) + uint64(r.nwarps)
	return r.next < r.total && len(r.blocks) < r.l.Resident && need*r.k.warpBytes() <= maxState
}

// progress says what the blocks that have begun wait for.
func (r *Run) progress() Progress {
	if r.ended == r.total {
		return Progress{Done: true}
	}
	var p Progress
	wait, took := ^uint64(0), uint64(0)
	for _, b := range r.blocks {
		for _, w := range b.warps {
			switch {
			case w.state == warpReady || w.state == warpStuck && w.watch.stale(r):
				p.busy = true
				took = max(took, w.took)
			case w.state == warpAsleep:
				wait = min(wait, max(w.wake, r.now+1)-r.now)
			}
		}
	}
	switch {
	case p.busy:
		p.Wait = min(took, wait)
	case wait != ^uint64(0):
		p.Wait = wait
	default:
		p.Stuck = true
	}
	return p
}

// over recycles a block that has ended and reports whether it has.
func (b *block) over(r *Run) bool {
	if len(b.warps) > 0 {
		return false
	}
	r.ended++
	r.spare = append(r.spare, b)
	return true
}

// poison is what shared memory holds before a thread block writes it. Hardware
// promises nothing; a recognisable value makes reading it show.
const poison = 0xcb

func (r *Run) beginBlock() *block {
	var b *block
	if n := len(r.spare); n > 0 {
		b, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		b = r.newBlock()
	}
	x, y := uint64(r.l.Grid[0]), uint64(r.l.Grid[1])
	b.id = [3]uint32{uint32(r.next % x), uint32(r.next / x % y), uint32(r.next / x / y)}
	b.begun, b.warps, b.joined = 0, b.warps[:0], [maxBarriers]uint32{}
	for i := range b.shared {
		b.shared[i] = poison
	}
	r.next++
	return b
}

// takeWarp returns a warp's state, to be the i-th of a block.
func (r *Run) takeWarp(i uint32) *warp {
	var w *warp
	if len(r.idle) > 0 {
		w = r.idle[0]
		r.idle = append(r.idle[:0], r.idle[1:]...)
	} else {
		w = r.newWarp()
	}
	r.place(w, i)
	return w
}

// runBlock runs the warps of a block until each has exited, waits, or has had its
// turn.
func (r *Run) runBlock(b *block) error {
	r.cur = b
	for b.begun < r.nwarps {
		w := r.takeWarp(b.begun)
		b.begun++
		r.begin(w, b)
		if err := r.exec(w); err != nil {
			return err
		}
		if w.state == warpExited {
			r.idle = append(r.idle, w)
		} else {
			b.warps = append(b.warps, w)
		}
	}
	if len(b.warps) == 0 {
		return nil
	}
	for {
		ran := false
		kept := b.warps[:0]
		for _, w := range b.warps {
			if r.wakes(w) {
				ran = true
				if err := r.exec(w); err != nil {
					return err
				}
			}
			if w.state == warpExited {
				r.idle = append(r.idle, w)
			} else {
				kept = append(kept, w)
			}
		}
		b.warps = kept
		released, err := r.release(b)
		if err != nil {
			return err
		}
		if !ran && !released || len(b.warps) == 0 {
			break
		}
	}
	for _, w := range b.warps {
		w.sliced = false
	}
	return nil
}

// wakes reports whether a warp is to run now.
func (r *Run) wakes(w *warp) bool {
	switch {
	case w.sliced:
		return false
	case w.state == warpAsleep && w.wake <= r.now:
		w.state = warpReady
	case w.state == warpStuck && w.watch.stale(r):
		w.state = warpReady
		w.watch.reset()
	}
	return w.state == warpReady
}

// release lets the warps go on whose barrier is complete: as many threads have come
// to it as it asks for, or all that have not exited.
func (r *Run) release(b *block) (released bool, err error) {
	var arrived [maxBarriers]barrierSum
	waiting := uint32(0)
	for _, w := range b.warps {
		if w.state == warpWaiting {
			waiting++
			arrived[w.barrier].add(w)
		}
	}
	if waiting == 0 {
		return false, nil
	}
	live := uint32(len(b.warps))
	complete := [maxBarriers]bool{}
	for _, w := range b.warps {
		if w.state != warpWaiting {
			continue
		}
		want := w.want
		if want == 0 {
			want = live
		}
		if arrived[w.barrier].warps+b.joined[w.barrier] >= want {
			w.reduce(&r.k.code[w.pc-1], arrived[w.barrier])
			w.state = warpReady
			released, complete[w.barrier] = true, true
		}
	}
	for i, is := range complete {
		if is {
			b.joined[i] = 0
		}
	}
	return released, r.incomplete(b, waiting, released, &arrived)
}

// incomplete is the trap of a block whose warps all wait at barriers that are not
// complete.
func (r *Run) incomplete(b *block, waiting uint32, released bool, arrived *[maxBarriers]barrierSum) error {
	if released || waiting < uint32(len(b.warps)) {
		return nil
	}
	w := b.warps[0]
	return r.trap(w, &r.k.code[w.pc-1], w.mask, ErrDivergentBarrier,
		fmt.Sprintf("%d of %d warps wait at barrier %d, no barrier is complete", arrived[w.barrier].warps, waiting, w.barrier))
}
