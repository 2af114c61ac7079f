package ptx

import (
	"fmt"
	slices "slices"
	"sync/atomic"
	"unsafe"
)

// A warp that goes on for long looks up from time to time, so that others get on: the
// other lanes of the warp, the other warps of its block, the blocks that begin after
// it, and what shares memory with the kernel. The first slice is free of time; after
// it an instruction takes a nanosecond (assumption: one a clock, and a clock of 1 GHz
// to 2 GHz).
const (
	firstSlice = 4096    // instructions
	longSlice  = 1 << 14 // of a warp that only computes
	spinSlice  = 256     // of one that looks at what other threads may write

	// A strong access takes strongTime more, in nanoseconds (assumption: it goes to the
	// L2 cache or to memory), and counts as that many steps more.
	strongTime  = 500
	strongSteps = 16
)

// turns are these, of one launch: tests take smaller ones.
type turns struct{ first, long, spin uint64 }

// watch is what is known of a warp that may be spinning. It spins when it is in a
// state that it was in before and has changed nothing since: then it comes back to
// that state for ever, unless what it read changes.
type watch struct {
	strong bool // there was a strong access, an atomic or a fence in this slice
	taken  bool // there is a state to compare with
	on     bool // reads since then are remembered
	pure   bool // since then nothing has been changed, and nothing read that passes
	writes uint64
	looks  uint64             // since then
	most   uint64             // looks before another state is taken (Brent, "An improved Monte Carlo factorization algorithm")
	odd    bool               // which lanes of the warp come next: see look
	count  uint64             // strong accesses in this slice
	seen   map[seenKey]uint64 // what was read from global memory since then
	inst   *inst              // the last read

	phase       bool // odd, then
	pc, rpc     int32
	mask, carry uint32
	regs        []lanes
	preds       []uint32
	stack       []entryPoint
}

type seenKey struct {
	addr uint64
	size uint8
}

// maxSeen bounds what is remembered of a warp's reads; one that reads more is not
// taken for spinning.
const maxSeen = 4096

func (v *watch) reset() {
	v.taken, v.on, v.strong, v.odd, v.most, v.count = false, false, false, false, 0, 0
}

// take remembers the warp's state.
func (v *watch) take(w *warp, r *Run) {
	v.taken, v.pure, v.looks, v.writes = true, true, 0, r.writes
	if v.seen == nil {
		v.seen = map[seenKey]uint64{}
	}
	clear(v.seen)
	v.phase = v.odd
	v.pc, v.rpc, v.mask, v.carry = w.pc, w.rpc, w.mask, w.carry
	v.regs = append(v.regs[:0], w.regs...)
	v.preds = append(v.preds[:0], w.preds...)
	v.stack = append(v.stack[:0], w.stack...)
}

// same reports whether the warp is in the state that was remembered.
func (v *watch) same(w *warp) bool {
	return v.phase == v.odd && v.pc == w.pc && v.rpc == w.rpc && v.mask == w.mask && v.carry == w.carry &&
		slices.Equal(v.stack, w.stack) && slices.Equal(v.preds, w.preds) && slices.Equal(v.regs, w.regs)
}

// stale reports whether a stuck warp has to look again: threads of the launch have
// stored something since.
func (v *watch) stale(r *Run) bool { return v.writes != r.writes }

// sees notes a strong access.
func (v *watch) sees() {
	v.strong = true
	v.count++
}

// impure says that a warp has done what can not be waited for.
func (v *watch) impure() { v.pure = false }

// see remembers a read of global memory.
func (v *watch) see(in *inst, addr uint64, p []byte) {
	if v.inst = in; !v.pure {
		return
	}
	for size := int(in.size); len(p) >= size && size > 0; p, addr = p[size:], addr+uint64(size) {
		v.seen[seenKey{addr, in.size}] = loadStrong(p, size)
	}
	if len(v.seen) > maxSeen {
		v.pure = false
	}
}

// interrupt is called at a jump when a warp has used up its slice; w.pc is where it
// goes on. It reports whether the warp's turn is over.
func (r *Run) interrupt(w *warp, in *inst, n uint64) (over bool, err error) {
	if n+w.extra >= r.l.StepLimit {
		return true, r.trap(w, in, w.mask, ErrStepLimit, fmt.Sprintf("%d instructions", n))
	}
	slice := r.turns.long
	if w.watch.strong {
		slice = r.turns.spin
	}
	r.look(w)
	w.took = 0
	if w.due > r.turns.first {
		w.took = n - w.steps + strongTime*w.watch.count
	}
	w.steps = n - 1 // the jump comes again
	w.extra += strongSteps * w.watch.count
	w.due = min(n+slice, r.l.StepLimit-min(w.extra, r.l.StepLimit))
	w.watch.count = 0
	w.sliced = true
	return true, nil
}

// look finds out whether the warp is stuck, and lets other lanes of it run: in turn
// those that are on their way, and those that wait for others of the warp.
func (r *Run) look(w *warp) {
	v := &w.watch
	strong := v.strong
	v.strong = false
	if same := v.taken && v.pure && v.writes == r.writes && v.same(w); same && v.on {
		w.state = warpStuck
		return
	} else if v.looks++; same || !v.taken || v.looks >= v.most || v.writes != r.writes {
		v.on = v.on || same || strong // else reads are not worth remembering yet
		v.most = max(1, min(2*v.most, 1<<20))
		v.take(w, r)
	}
	if strong {
		v.odd = !v.odd
		r.other(w, !v.odd, func(entryPoint) bool { return true }, false)
	}
}

// sleep lets time pass for the warp: as long as the lane of m that sleeps longest.
func (r *Run) sleep(w *warp, ns *lanes, m uint32) {
	longest := uint64(0)
	for i, t := range ns {
		if m>>i&1 != 0 {
			longest = max(longest, t)
		}
	}
	w.state, w.wake = warpAsleep, r.now+min(longest, maxSleep)
	w.due = max(w.due, r.turns.first+1) // what follows is no first slice
	w.watch.strong = true
	r.look(w)
}

// Changed reports whether memory that a stuck launch waits for is not as it was read.
func (r *Run) Changed() bool {
	defer r.forget()
	r.forget()
	for _, b := range r.blocks {
		for _, w := range b.warps {
			if w.state != warpStuck {
				continue
			}
			for key, was := range w.watch.seen {
				p, _ := r.whole(key.addr, uint64(key.size))
				if p == nil || loadStrong(p, int(key.size)) != was {
					return true
				}
			}
		}
	}
	return false
}

// Touch lets stuck warps look at memory again at the next Advance.
func (r *Run) Touch() { r.writes++ }

// End ends a launch that is stuck, or has run for too long, with a trap of one of its
// threads, and returns it; every further Step and Advance does.
func (r *Run) End(why string) error {
	if r.err == nil {
		r.err = r.spins(why)
	}
	return r.err
}

// spins is the trap of a launch that does not end.
func (r *Run) spins(why string) error {
	var of *block
	var w *warp
	for _, b := range r.blocks {
		for _, x := range b.warps {
			if w == nil || x.state == warpStuck && w.state != warpStuck {
				of, w = b, x
			}
		}
	}
	if w == nil {
		return &Trap{Kernel: r.k.name, Line: int(r.k.code[0].line), Instr: r.k.text[0], Source: r.k.sources[0], Kind: ErrStepLimit, Detail: why}
	}
	r.cur = of
	in := &r.k.code[min(int(w.pc), len(r.k.code)-1)]
	if w.state == warpStuck && w.watch.inst != nil {
		in = w.watch.inst
	}
	t := r.trap(w, in, w.mask, ErrStepLimit, why)
	if w.state == warpStuck {
		t.Detail = "it waits for memory that nobody changes"
		if why != "" {
			t.Detail += ", " + why
		}
	}
	return t
}

// loadStrong reads a word in one piece, because others may write it meanwhile.
func loadStrong(p []byte, size int) uint64 {
	switch at := unsafe.Pointer(unsafe.SliceData(p)); {
	case size == 4 && uintptr(at)%4 == 0:
		return uint64(atomic.LoadUint32((*uint32)(at)))
	case size == 8 && uintptr(at)%8 == 0:
		return atomic.LoadUint64((*uint64)(at))
	}
	return loadLE(p, size)
}
