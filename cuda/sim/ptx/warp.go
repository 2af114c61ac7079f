package ptx

import "math/bits"

// lanes is one register of a warp: a value for each lane, zero-extended.
type lanes [warpSize]uint64

func (l *lanes) fill(v uint64) {
	for i := range l {
		l[i] = v
	}
}

type warpState uint8

const (
	warpReady warpState = iota
	warpWaiting
	warpAsleep // until wake
	warpStuck  // it looks at memory that only others can change
	warpExited
)

const (
	maxBarriers    = 17 // those of a thread block, and that of its cluster
	clusterBarrier = 16
	noPlace        = -1
)

// entryPoint is an element of the reconvergence stack: lanes that go on at pc until
// they come to rpc. Those that others are below an entry for the place that they go
// to: lanes of its mask that run elsewhere, or have an entry above it, are not there
// yet.
type entryPoint struct {
	pc, rpc int32
	mask    uint32
	waiting bool   // at a .sync instruction at pc
	call    *frame // lanes return here from a call; nil: they come from a branch
}

// warp is the state of 32 threads. What runs is pc, rpc and mask; the rest is on the
// stack.
type warp struct {
	regs  []lanes
	preds []uint32
	local []byte
	stack []entryPoint

	pc, rpc int32
	mask    uint32 // lanes running
	live    uint32 // lanes that have not exited
	carry   uint32 // the condition code of each lane
	first   uint32 // linear thread index of lane 0
	steps   uint64
	extra   uint64 // steps that count against the limit beside these
	due     uint64 // steps at which the warp looks up: see Run.interrupt
	wake    uint64 // nanoseconds: when it goes on
	state   warpState
	sliced  bool   // it has had its turn
	took    uint64 // nanoseconds of that turn
	barrier uint32
	votes   uint32 // of bar.red
	want    uint32 // warps that the barrier waits for; 0: all

	copies []asyncCopy
	groups [warpSize]uint32 // of copies, that a lane has closed

	watch watch
}

// branch parts the warp: taken goes to target, the others on from fall, and
// they meet at join. It returns where the warp goes on.
func (w *warp) branch(taken uint32, target, fall, join int32) int32 {
	rest := w.mask &^ taken
	if join == noPlace {
		// These lanes meet nowhere before they exit. An outer meeting place
		// stays theirs: exited lanes are taken off it.
		join = w.rpc
	}
	if join != w.rpc {
		w.stack = append(w.stack, entryPoint{pc: join, rpc: w.rpc, mask: w.mask})
		w.rpc = join
	}
	if join != noPlace && target == join {
		w.mask = rest
		return fall
	}
	if join == noPlace || fall != join {
		w.stack = append(w.stack, entryPoint{pc: fall, rpc: join, mask: rest})
	}
	w.mask = taken
	return target
}

// pop takes the next entry off the stack; false: there is none.
func (r *Run) pop(w *warp) bool {
	for len(w.stack) > 0 {
		e := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if e.mask != 0 {
			r.resume(w, e)
			return true
		}
	}
	return false
}

// resume makes an entry what the warp runs.
func (r *Run) resume(w *warp, e entryPoint) {
	w.pc, w.rpc, w.mask = e.pc, e.rpc, e.mask
	if e.call != nil {
		r.finish(w, e.call, e.mask)
	}
}

// exit ends lanes.
func (w *warp) exit(m uint32) {
	w.live &^= m
	w.mask &^= m
	for i := range w.stack {
		w.stack[i].mask &^= m
	}
}

// leave makes lanes return from the function that they are in: they are taken off
// what it still has to do.
func (w *warp) leave(m uint32) {
	w.mask &^= m
	for i := len(w.stack) - 1; i >= 0 && m != 0; i-- {
		e := &w.stack[i]
		if e.call != nil {
			m &^= e.call.mask
			continue
		}
		e.mask &^= m
	}
}

// other makes lanes run that are not: the lowest entry whose lanes are all there, or
// where partly says so and there is none, those of an entry that are there. These
// leave the ones behind that they would have met; PTX promises that every thread gets
// on (section "Independent Thread Scheduling"). Entries that ok refuses are passed
// over. What ran before comes back last.
func (r *Run) other(w *warp, partly bool, ok func(e entryPoint) bool, waiting bool) bool {
	choice, there, whole := -1, uint32(0), false
	busy := w.mask
	for i := len(w.stack) - 1; i >= 0; i-- {
		e := w.stack[i]
		free := e.mask &^ busy
		busy |= e.mask
		switch {
		case free == 0 || !ok(e):
		case free == e.mask:
			choice, there, whole = i, free, true
		case partly && !whole && choice < 0:
			choice, there = i, free
		}
	}
	if choice < 0 {
		return false
	}
	e := w.stack[choice]
	if whole {
		w.stack = append(w.stack[:choice], w.stack[choice+1:]...)
	} else {
		w.stack[choice].mask &^= there
		e.mask = there
	}
	w.stack = append(w.stack, entryPoint{pc: w.pc, rpc: w.rpc, mask: w.mask, waiting: waiting})
	r.resume(w, e)
	return true
}

// gather brings the lanes of need together at the instruction at pc, where the warp's
// running lanes are. It returns the lanes that execute it now: those that have come
// from elsewhere go on behind it on their own way. moved: the warp goes on with other
// lanes, that must come here first. Neither: they can not come.
func (r *Run) gather(w *warp, pc int32, need uint32) (here uint32, moved bool) {
	if w.mask&need == need {
		return w.mask, false
	}
	w.pc = pc
	if r.other(w, false, func(e entryPoint) bool { return !e.waiting }, true) {
		return 0, true
	}
	here = w.mask
	for _, e := range w.stack {
		if e.waiting && e.pc == pc {
			here |= e.mask
		}
	}
	if here&need != need {
		return 0, false
	}
	kept := w.stack[:0]
	for _, e := range w.stack {
		switch {
		case !e.waiting || e.pc != pc:
		case e.rpc == w.rpc && r.sameCall(w, e):
			w.mask |= e.mask
			continue
		default:
			e.waiting = false
			e.pc++
		}
		kept = append(kept, e)
	}
	w.stack = kept
	return here, false
}

// sameCall reports whether an entry's lanes return to the same place as the running
// ones.
func (r *Run) sameCall(w *warp, e entryPoint) bool {
	for i := len(w.stack) - 1; i >= 0; i-- {
		if c := w.stack[i].call; c != nil && (c.mask&w.mask != 0 || c.mask&e.mask != 0) {
			return c.mask&w.mask != 0 && c.mask&e.mask != 0
		}
	}
	return true
}

// thread returns the index within the block of a lane.
func (r *Run) thread(w *warp, lane int) [3]uint32 {
	t := w.first + uint32(lane)
	b := r.l.Block
	return [3]uint32{t % b[0], t / b[0] % b[1], t / b[0] / b[1]}
}

func (r *Run) trap(w *warp, in *inst, m uint32, kind error, detail string) *Trap {
	return &Trap{Kernel: r.k.name, Line: int(in.line), Instr: r.k.text[in.srcInst], Source: r.k.sources[in.srcInst], Block: r.cur.id,
		Thread: r.thread(w, bits.TrailingZeros32(m|1<<31)), Kind: kind, Detail: detail}
}
