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
	warpExited
)

const (
	maxBarriers = 16
	noPlace     = -1
)

// entryPoint is an element of the reconvergence stack: lanes that go on at pc
// when what lies above has ended, until they come to rpc.
type entryPoint struct {
	pc, rpc int32
	mask    uint32
	waiting bool // at a .sync instruction at pc
}

// warp is the state of 32 threads. The running entry of the stack is pc, rpc
// and mask.
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
	slept   uint64 // nanoseconds, since the thread block began
	state   warpState
	barrier uint32
	votes   uint32 // of bar.red
	want    uint32 // warps that the barrier waits for; 0: all
}

// sleep lets time pass for the warp: as long as the lane of m that sleeps
// longest.
func (w *warp) sleep(ns *lanes, m uint32) {
	longest := uint64(0)
	for i, t := range ns {
		if m>>i&1 != 0 {
			longest = max(longest, t)
		}
	}
	w.slept += min(longest, maxSleep)
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
func (w *warp) pop() bool {
	for len(w.stack) > 0 {
		e := w.stack[len(w.stack)-1]
		w.stack = w.stack[:len(w.stack)-1]
		if e.mask != 0 {
			w.pc, w.rpc, w.mask = e.pc, e.rpc, e.mask
			return true
		}
	}
	return false
}

// exit ends lanes.
func (w *warp) exit(m uint32) {
	w.live &^= m
	w.mask &^= m
	for i := range w.stack {
		w.stack[i].mask &^= m
	}
}

// gather brings the lanes of need together at the instruction at pc, where the
// warp's running lanes are. ok: they are all running now. Otherwise, if moved,
// the warp goes on with other lanes, elsewhere, that must come here first; if
// not, they cannot come.
func (w *warp) gather(pc int32, need uint32) (ok, moved bool) {
	if w.mask&need == need {
		return true, false
	}
	bottom := len(w.stack)
	for bottom > 0 && w.stack[bottom-1].rpc == w.rpc {
		bottom--
	}
	for i := len(w.stack) - 1; i >= bottom; i-- {
		if e := w.stack[i]; !e.waiting && e.mask != 0 {
			copy(w.stack[bottom+1:i+1], w.stack[bottom:i])
			w.stack[bottom] = entryPoint{pc: pc, rpc: w.rpc, mask: w.mask, waiting: true}
			w.pc, w.rpc, w.mask = e.pc, e.rpc, e.mask
			return false, true
		}
	}
	kept := w.stack[:bottom]
	for _, e := range w.stack[bottom:] {
		if e.pc == pc {
			w.mask |= e.mask
		} else {
			kept = append(kept, e)
		}
	}
	w.stack = kept
	return w.mask&need == need, false
}

// thread returns the index within the block of a lane.
func (r *Run) thread(w *warp, lane int) [3]uint32 {
	t := w.first + uint32(lane)
	b := r.l.Block
	return [3]uint32{t % b[0], t / b[0] % b[1], t / b[0] / b[1]}
}

func (r *Run) trap(w *warp, in *inst, m uint32, kind error, detail string) *Trap {
	return &Trap{Kernel: r.k.name, Line: int(in.line), Instr: r.k.text[in.srcInst], Block: r.block,
		Thread: r.thread(w, bits.TrailingZeros32(m|1<<31)), Kind: kind, Detail: detail}
}
