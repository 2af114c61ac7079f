package ptx

import (
	"fmt"
	"io"
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
// gives no limit of its own: some seconds of interpreting. An access that other
// threads may see counts as 17.
const DefaultStepLimit = 1 << 26

// DefaultResident is how many thread blocks run at the same time where a launch does
// not say: two for each multiprocessor of an H100 SXM.
const DefaultResident = 264

// maxSleep is the longest that one nanosleep sleeps, in nanoseconds (section
// "nanosleep").
const maxSleep = 1e6

// maxState bounds what a launch allocates for the threads of resident blocks.
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
	// Image is the address of the module's variables: see [Module.Image].
	Image uint64
	// Resident is how many thread blocks run at the same time, so that one may wait
	// for another; 0: DefaultResident. A block begins early only where all before it
	// wait, and where the registers of those that run leave room.
	Resident int
	// Accessed is told of what warps read and write of global memory, but for accesses
	// by which threads synchronise; nil: nobody is.
	Accessed func(addr, size uint64, write bool)
	// Printf takes what the kernel prints; nil: nobody does. An error of it is
	// dropped.
	Printf io.Writer
}

// Run is a launch in progress. It is for one goroutine at a time.
type Run struct {
	k      *Kernel
	l      Launch
	mem    Memory
	params []byte
	nwarps uint32 // of a thread block
	total  uint64
	next   uint64   // first block not begun
	ended  uint64   // blocks
	blocks []*block // that have begun and not ended
	cur    *block   // of them, that runs
	spare  []*block
	idle   []*warp // to be used again, the oldest first
	made   int     // warps
	err    error

	regions [4]Region // cache, of this Step
	recent  int
	victim  int

	now, ahead    uint64 // nanoseconds: the timer, and how much of it has passed in this Step
	turns         turns
	writes        uint64 // stores so far, to memory that other threads see
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
	r.turns = turns{firstSlice, longSlice, spinSlice}
	if r.l.Resident <= 0 {
		r.l.Resident = DefaultResident
	}
	if len(k.images) > 0 && l.Image == 0 {
		return nil, k.refuse("the module's variables have no place")
	}
	threads := l.Block[0] * l.Block[1] * l.Block[2]
	r.nwarps = (threads + warpSize - 1) / warpSize
	r.total = uint64(l.Grid[0]) * uint64(l.Grid[1]) * uint64(l.Grid[2])
	files := uint32(1)
	if k.barriers {
		files = r.nwarps
	}
	if n := uint64(files) * k.warpBytes(); n > maxState {
		return nil, k.refuse("registers and local memory of a thread block take %d bytes", n)
	}
	if mem == nil {
		r.mem = noMemory{}
	}
	r.spare = []*block{r.newBlock()}
	r.blocks = make([]*block, 0, 4)
	r.idle = make([]*warp, 0, files)
	for i := range files {
		w := r.newWarp()
		r.place(w, i)
		r.idle = append(r.idle, w)
	}
	return r, nil
}

// warpBytes is what the state of a warp takes.
func (k *Kernel) warpBytes() uint64 { return uint64(k.slots*warpSize*8 + warpSize*k.local) }

func (r *Run) newWarp() *warp {
	r.made++
	w := &warp{
		regs:  make([]lanes, r.k.slots),
		preds: make([]uint32, r.k.preds),
		stack: make([]entryPoint, 0, 3*warpSize),
		first: ^uint32(0),
	}
	if r.k.local > 0 {
		w.local = make([]byte, warpSize*r.k.local)
	}
	r.fillFixed(w)
	return w
}

func (r *Run) newBlock() *block {
	return &block{shared: make([]byte, r.k.sharedBytes(&r.l)), warps: make([]*warp, 0, r.nwarps)}
}

// fillFixed fills the slots that are the same for the whole launch.
func (r *Run) fillFixed(w *warp) {
	for _, c := range r.k.consts {
		w.regs[c.slot].fill(c.value)
	}
	for _, c := range r.k.images {
		w.regs[c.slot].fill(r.l.Image + c.value)
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
			s.kind.fill(&w.regs[s.slot], &r.l, uint64(r.k.sharedBytes(&r.l)), [3]uint32{}, 0)
		}
	}
}

// place makes w the i-th warp of a thread block.
func (r *Run) place(w *warp, i uint32) {
	if w.first == i*warpSize {
		return
	}
	w.first = i * warpSize
	for _, s := range r.k.specials {
		if s.kind.perWarp() {
			s.kind.fill(&w.regs[s.slot], &r.l, 0, [3]uint32{}, w.first)
		}
	}
}

// begin puts w at the start of the kernel in a thread block.
func (r *Run) begin(w *warp, b *block) {
	threads := r.l.Block[0]*r.l.Block[1]*r.l.Block[2] - w.first
	w.live = ^uint32(0)
	if threads < warpSize {
		w.live = 1<<threads - 1
	}
	w.pc, w.rpc, w.mask = 0, -1, w.live
	w.stack = w.stack[:0]
	w.steps, w.wake, w.carry, w.state = 0, 0, 0, warpReady
	w.sliced, w.took, w.extra = false, 0, 0
	w.due = min(r.l.StepLimit, r.turns.first)
	w.copies = w.copies[:0]
	clear(w.groups[:])
	w.watch.reset()
	for _, s := range r.k.specials {
		if s.kind.perBlock() {
			s.kind.fill(&w.regs[s.slot], &r.l, 0, b.id, w.first)
		}
	}
}

// Blocks returns the number of thread blocks of the launch.
func (r *Run) Blocks() uint64 { return r.total }

// Traffic returns the bytes of global memory read and written so far, each
// counted as often as its region's Scale. An address that all lanes of a warp
// read at once counts once.
func (r *Run) Traffic() (read, written uint64) { return r.read, r.written }
