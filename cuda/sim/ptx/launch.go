package ptx

import (
	"fmt"
	"math"
)

const warpSize = 32

// Limits of compute_70 (CUDA C++ Programming Guide, "Technical Specifications
// per Compute Capability"). MaxShared is what a launch may use without a
// function attribute that asks for more.
const (
	MaxThreads = 1024
	MaxShared  = 48 << 10
	maxGridX   = math.MaxInt32
	maxGridYZ  = 65535
	maxBlockZ  = 64
)

// DefaultStepLimit is the instructions that a warp may execute where a launch
// gives no limit of its own.
const DefaultStepLimit = 1 << 32

// maxSleep is the longest that one nanosleep sleeps, in nanoseconds (section
// "nanosleep").
const maxSleep = 1e6

// maxState bounds what Start allocates for the threads of a block.
const maxState = 256 << 20

// Memory is the global memory that a kernel runs on; a nil one has none.
type Memory interface {
	// Region returns the whole accessible region around addr. The interpreter
	// keeps it until the end of the Step. ok is false where there is no memory.
	Region(addr uint64) (r Region, ok bool)
}

type noMemory struct{}

func (noMemory) Region(uint64) (Region, bool) { return Region{}, false }

// Region is a piece of global memory.
type Region struct {
	Base     uint64
	Data     []byte // its bytes, live
	Scale    uint32 // how many bytes each one counts as in Traffic; 0 is 1
	ReadOnly bool
}

// Launch is how a kernel is started.
type Launch struct {
	Grid, Block   [3]uint32 // each at least 1
	Params        []byte    // laid out as [Kernel.Params] says; copied by Start
	DynamicShared uint32    // bytes
	SharedLimit   int       // of static and dynamic shared memory, bytes; 0: MaxShared
	StepLimit     uint64    // instructions a warp may execute; 0: DefaultStepLimit
	// Timer is what %globaltimer starts at for the thread blocks of a Step, in
	// nanoseconds; nil: at 0. It goes on with what they sleep.
	Timer func() uint64
}

// Run is a launch in progress. It is for one goroutine at a time.
type Run struct {
	k      *Kernel
	l      Launch
	mem    Memory
	params []byte
	shared []byte
	warps  []warp // of one thread block; one for all where none waits at a barrier
	nwarps uint32 // of a thread block
	total  uint64
	next   uint64 // first block not run yet
	block  [3]uint32
	err    error

	regions [4]Region // cache, of this Step
	recent  int
	victim  int

	now, slept    uint64 // nanoseconds: the timer at, and the longest sleep in, this Step
	read, written uint64
	count         Count
	scratch       lanes
}

func (k *Kernel) refuse(format string, args ...any) error {
	return fmt.Errorf("ptx: kernel %s: %s: %w", k.name, fmt.Sprintf(format, args...), ErrLaunch)
}

func (k *Kernel) checkLaunch(l *Launch) error {
	g, b := l.Grid, l.Block
	switch {
	case g[0] == 0 || g[1] == 0 || g[2] == 0 || g[0] > maxGridX || g[1] > maxGridYZ || g[2] > maxGridYZ:
		return k.refuse("grid of %dx%dx%d", g[0], g[1], g[2])
	case b[0] == 0 || b[1] == 0 || b[2] == 0 || b[0] > MaxThreads || b[1] > MaxThreads || b[2] > maxBlockZ ||
		b[0]*b[1]*b[2] > MaxThreads:
		return k.refuse("thread block of %dx%dx%d", b[0], b[1], b[2])
	case k.reqThreads[0] != 0 && b != k.reqThreads:
		return k.refuse("thread block of %dx%dx%d, .reqntid is %dx%dx%d", b[0], b[1], b[2],
			k.reqThreads[0], k.reqThreads[1], k.reqThreads[2])
	case int(b[0]*b[1]*b[2]) > k.maxThreads:
		return k.refuse("thread block of %dx%dx%d, .maxntid is %d", b[0], b[1], b[2], k.maxThreads)
	case len(l.Params) < k.paramBytes || len(l.Params) > alignUp(k.paramBytes, 16):
		return k.refuse("%d parameter bytes instead of %d", len(l.Params), k.paramBytes)
	case k.sharedBytes(l) > l.sharedLimit():
		return k.refuse("%d+%d bytes of shared memory, the limit is %d", k.staticShared, l.DynamicShared, l.sharedLimit())
	}
	return nil
}

func (l *Launch) sharedLimit() int {
	if l.SharedLimit > 0 {
		return l.SharedLimit
	}
	return MaxShared
}

// sharedBytes returns the shared memory of a thread block.
func (k *Kernel) sharedBytes(l *Launch) int {
	if l.DynamicShared == 0 {
		return k.staticShared
	}
	return k.dynamicBase + int(l.DynamicShared)
}

// Start begins a launch; no thread block runs yet. It checks the geometry and
// the number of parameter bytes: as many as the kernel declares, or up to the
// next multiple of 16, for the padding that a host compiler adds. An error
// wraps [ErrLaunch].
func (k *Kernel) Start(mem Memory, l Launch) (*Run, error) {
	if err := k.checkLaunch(&l); err != nil {
		return nil, err
	}
	r := &Run{k: k, l: l, mem: mem, params: append([]byte(nil), l.Params[:k.paramBytes]...)}
	r.l.Params = r.params
	if r.l.StepLimit == 0 {
		r.l.StepLimit = DefaultStepLimit
	}
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	r.nwarps = (threads + warpSize - 1) / warpSize
	r.total = uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	files := uint32(1)
	if k.barriers {
		files = r.nwarps
	}
	if n := uint64(files) * uint64(k.slots*256+warpSize*k.local); n > maxState {
		return nil, k.refuse("registers and local memory of a thread block take %d bytes", n)
	}
	r.shared = make([]byte, k.sharedBytes(&l))
	if mem == nil {
		r.mem = noMemory{}
	}
	r.warps = make([]warp, files)
	for i := range r.warps {
		w := &r.warps[i]
		w.regs = make([]lanes, k.slots)
		w.preds = make([]uint32, k.preds)
		w.stack = make([]entryPoint, 0, 3*warpSize)
		if k.local > 0 {
			w.local = make([]byte, warpSize*k.local)
		}
		r.fillFixed(w)
		r.place(w, uint32(i))
	}
	return r, nil
}

// fillFixed fills the slots that are the same for the whole launch.
func (r *Run) fillFixed(w *warp) {
	for _, c := range r.k.consts {
		w.regs[c.slot].fill(c.value)
	}
	for _, p := range r.k.paramIn {
		v := loadLE(r.params[p.off:], p.size)
		if p.signed {
			sh := 64 - 8*p.size
			v = uint64(int64(v<<sh) >> sh)
		}
		w.regs[p.slot].fill(v & p.mask)
	}
	for _, s := range r.k.specials {
		if !s.kind.perBlock() && !s.kind.perWarp() {
			s.kind.fill(&w.regs[s.slot], &r.l, uint64(len(r.shared)), r.block, 0)
		}
	}
}

// place makes w the i-th warp of a thread block.
func (r *Run) place(w *warp, i uint32) {
	w.first = i * warpSize
	for _, s := range r.k.specials {
		if s.kind.perWarp() {
			s.kind.fill(&w.regs[s.slot], &r.l, 0, r.block, w.first)
		}
	}
}

// begin puts w at the start of the kernel in the current thread block.
func (r *Run) begin(w *warp) {
	threads := r.l.Block[0]*r.l.Block[1]*r.l.Block[2] - w.first
	w.live = ^uint32(0)
	if threads < warpSize {
		w.live = 1<<threads - 1
	}
	w.pc, w.rpc, w.mask = 0, -1, w.live
	w.stack = w.stack[:0]
	w.steps, w.slept, w.carry, w.state = 0, 0, 0, warpReady
	for _, s := range r.k.specials {
		if s.kind.perBlock() {
			s.kind.fill(&w.regs[s.slot], &r.l, 0, r.block, w.first)
		}
	}
}

// Blocks returns the number of thread blocks of the launch.
func (r *Run) Blocks() uint64 { return r.total }

// Traffic returns the bytes of global memory read and written so far, each
// counted as often as its region's Scale. An address that all lanes of a warp
// read at once counts once.
func (r *Run) Traffic() (read, written uint64) { return r.read, r.written }

// Slept returns how long, in nanoseconds, the thread blocks of the last Step
// slept: the one of them that did so longest, since all run at the same time.
// A nanosleep takes just as long as it says (hardware: up to twice that), at
// most a millisecond. Lanes that sleep apart sleep one after the other.
func (r *Run) Slept() uint64 { return r.slept }

// Step runs the next n thread blocks to their end, in linear order with x
// fastest, and reports whether all have run. An error is a *[Trap]; the launch
// is over then, with the stores of what ran in memory, and every further Step
// returns the same error. It allocates nothing unless it fails.
func (r *Run) Step(n uint64) (done bool, err error) {
	if r.err != nil {
		return true, r.err
	}
	defer r.forget()
	r.now, r.slept = 0, 0
	if r.l.Timer != nil {
		r.now = r.l.Timer()
	}
	for ; n > 0 && r.next < r.total; n-- {
		x, y := uint64(r.l.Grid[0]), uint64(r.l.Grid[1])
		r.block = [3]uint32{uint32(r.next % x), uint32(r.next / x % y), uint32(r.next / x / y)}
		if r.err = r.runBlock(); r.err != nil {
			return true, r.err
		}
		r.next++
	}
	return r.next == r.total, nil
}

// poison is what shared memory holds before a thread block writes it. Hardware
// promises nothing; a recognisable value makes reading it show.
const poison = 0xcb

func (r *Run) runBlock() error {
	for i := range r.shared {
		r.shared[i] = poison
	}
	if !r.k.barriers {
		w := &r.warps[0]
		for i := range r.nwarps {
			if r.nwarps > 1 {
				r.place(w, i)
			}
			r.begin(w)
			if err := r.exec(w); err != nil {
				return err
			}
			r.slept = max(r.slept, w.slept)
		}
		return nil
	}
	for i := range r.warps {
		r.begin(&r.warps[i])
	}
	for {
		for i := range r.warps {
			if w := &r.warps[i]; w.state == warpReady {
				if err := r.exec(w); err != nil {
					return err
				}
				r.slept = max(r.slept, w.slept)
			}
		}
		if done, err := r.release(); done || err != nil {
			return err
		}
	}
}

// release lets the warps go on whose barrier is complete: as many threads wait
// at it as it asks for, or all that have not exited. It reports whether every
// warp has exited.
func (r *Run) release() (done bool, err error) {
	var arrived [maxBarriers]barrierSum
	live := uint32(0)
	for i := range r.warps {
		if w := &r.warps[i]; w.state == warpWaiting {
			live++
			arrived[w.barrier].add(w)
		}
	}
	if live == 0 {
		return true, nil
	}
	released := false
	for i := range r.warps {
		w := &r.warps[i]
		if w.state != warpWaiting {
			continue
		}
		want := w.want
		if want == 0 {
			want = live
		}
		if arrived[w.barrier].warps >= want {
			w.reduce(&r.k.code[w.pc-1], arrived[w.barrier])
			w.slept = arrived[w.barrier].slept
			w.state = warpReady
			released = true
		}
	}
	if !released {
		for i := range r.warps {
			if w := &r.warps[i]; w.state == warpWaiting {
				return false, r.trap(w, &r.k.code[w.pc-1], w.mask, ErrDivergentBarrier,
					fmt.Sprintf("%d of %d warps wait at barrier %d, no barrier is complete", arrived[w.barrier].warps, live, w.barrier))
			}
		}
	}
	return false, nil
}
