package sim

import (
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/cuda/sim/race"
)

// Device is a simulated GPU. It implements [cuda.Device] and [cuda.Watcher].
// Under the real pacer any goroutine may use it; on virtual time, those that
// its world knows.
type Device struct {
	name  string
	size  uint64
	peak  float64
	sms   int
	costs Costs // stretched by the world's Slow

	world     *vtime.World
	ownsWorld bool
	unexplain func()
	ran       func(Ran)
	printf    io.Writer
	races     *race.Checker
	words     map[uint64]race.Clock // what is ordered before the last write of a word

	// All that follows is the machine's: see [vtime.World].

	mem       *Memory
	nic       NIC
	handles   uint64
	order     []*stream // by age
	streams   map[cuda.Stream]*stream
	events    map[cuda.Event]*event
	modules   map[cuda.Module]*module
	unloaded  []*region // variables of modules
	functions map[cuda.Function]*function
	graphs    map[cuda.Graph][]*node
	execs     map[cuda.GraphExec]*graphExec
	captures  []*capture // under way
	hostFuncs map[cuda.HostFunc]*hostFunc
	group     *group
	serial    uint64           // in its group
	access    map[*Device]bool // enabled
	legacy    *stream          // the legacy default stream, once it is used
	registers map[string]int   // of a thread, by kernel

	toCall  []*stream // whose heads are host functions that are due
	calling bool      // there is a goroutine that calls them

	resident         int // grids
	held             []*task
	toDevice, toHost engine
	tasks            []*task // to be used again

	stats    Stats
	commands [16]uint64 // by Op
	dead     error      // the sticky error
	closed   bool
	ended    atomic.Bool // dead or closed, for waits
	activity atomic.Uint64

	hostThread atomic.Int64 // that is inside a host function; 0: none
}

var (
	_ cuda.Device  = (*Device)(nil)
	_ cuda.Watcher = (*Device)(nil)
)

// Stats counts what has been asked of a device.
type Stats struct {
	Crossings uint64             // calls, a Submit or Poll of any length being one
	Commands  map[cuda.Op]uint64 // accepted
	Modules   uint64             // loads
	Functions uint64             // look-ups
	MaxQueued int                // the most commands that one stream held
	Kernels   ptx.Count          // what the warps of kernels in PTX did
}

// Stats returns the counts so far. It costs the host nothing.
func (d *Device) Stats() Stats {
	d.world.Enter(0)
	defer d.world.Exit()
	s := d.stats
	s.Commands = map[cuda.Op]uint64{}
	for op, n := range d.commands {
		if n > 0 {
			s.Commands[cuda.Op(op)] = n
		}
	}
	return s
}

// World returns the machine that the device is part of.
func (d *Device) World() *vtime.World { return d.world }

// Memory returns the device's memory by address, for a fabric.
func (d *Device) Memory() *Memory { return d.mem }

// Costs returns the cost table in force, stretched by the world's Slow.
func (d *Device) Costs() Costs { return d.costs }

// Clock returns the world's clock.
func (d *Device) Clock() clock.Clock { return d.world }

// Activity changes whenever an event fires, a stream has written a word or called
// a host function, or the device dies.
func (d *Device) Activity() uint64 { return d.activity.Load() }

// Info describes the device. Its figures come from [Options].
func (d *Device) Info() cuda.Info {
	return cuda.Info{
		Backend: "sim", Name: d.name, Simulated: true, Capability: [2]int{7, 0},
		Memory: d.size, Bandwidth: uint64(d.peak), SMs: d.sms,
		MaxGrid: maxGrid, MaxBlock: maxBlock, MaxThreads: maxThreads,
		SharedMemory: maxShared, SharedOptIn: optInShared,
		Priorities: [2]int{leastPriority, greatestPriority}, FlushesWrites: true,
		ConcurrentManaged: !d.mem.managed.exclusive,
	}
}

// call is one crossing: it charges for it and locks the machine, unless the
// device is gone.
func (d *Device) call(op string, cost time.Duration) error {
	if err := d.permitted(op); err != nil {
		return err
	}
	d.world.Enter(d.costs.Crossing + cost)
	d.stats.Crossings++
	return d.checked(op)
}

// enter is what follows within a call.
func (d *Device) enter(op string, cost time.Duration) error {
	d.world.Enter(cost)
	return d.checked(op)
}

func (d *Device) checked(op string) error {
	if err := d.gone(op); err != nil {
		d.world.Exit()
		return err
	}
	return nil
}

func (d *Device) gone(op string) error {
	if d.closed {
		return fmt.Errorf("cuda/sim: %s: device %s: %w", op, d.name, cuda.ErrClosed)
	}
	return d.dead
}

func (d *Device) stopped() bool { return d.closed || d.dead != nil }

func invalid(op, format string, args ...any) error {
	return &cuda.Error{Code: cuda.ErrInvalidValue, Op: op, Detail: fmt.Sprintf(format, args...)}
}

func badHandle(op, what string, h uint64) error {
	return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: op, Detail: fmt.Sprintf("%s %#x", what, h)}
}

// Handles carry their kind and the device's number in its world, so that one of
// another kind or device is never taken for it.
const (
	deviceShift = 36
	maxDevices  = 1 << 12
)

const (
	kindStream uint64 = (iota + 1) << 48
	kindEvent
	kindModule
	kindFunction
	kindGraph
	kindGraphExec
	kindHostFunc
)

func (d *Device) handle(kind uint64) uint64 {
	d.handles++
	return kind | d.serial%maxDevices<<deviceShift | d.handles
}

// Alloc returns device memory. What it counts against [Options.Memory] is its
// size times its cost scale. Fresh memory holds 0xff: see [Options].
func (d *Device) Alloc(size uint64, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	const op = "allocate"
	if err := d.call(op, d.costs.Alloc); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	if size == 0 {
		return 0, invalid(op, "0 bytes for %q", o.Name)
	}
	if left, scale := d.size-d.mem.used, uint64(max(o.CostScale, 1)); size > left/scale {
		return 0, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op,
			Detail: fmt.Sprintf("%d x %d bytes for %q, %d of %d are free", scale, size, o.Name, left, d.size)}
	}
	r, err := d.mem.alloc(size, cuda.DeviceMemory, o)
	if err != nil {
		return 0, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("%q: %v", o.Name, err)}
	}
	return cuda.DevicePtr(r.base), nil
}

// AllocPinned returns host memory that the device can reach under the same
// address.
func (d *Device) AllocPinned(size uint64, o cuda.AllocOptions) (cuda.PinnedBuffer, error) {
	const op = "allocate pinned memory"
	if err := d.call(op, d.costs.AllocPinned); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	defer d.world.Exit()
	if size == 0 {
		return cuda.PinnedBuffer{}, invalid(op, "0 bytes for %q", o.Name)
	}
	r, err := d.mem.alloc(size, cuda.PinnedMemory, o)
	if err != nil {
		return cuda.PinnedBuffer{}, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("%q: %v", o.Name, err)}
	}
	return cuda.PinnedBuffer{Host: r.data, Device: cuda.DevicePtr(r.base)}, nil
}

// Free frees device memory after the work that was submitted before it.
func (d *Device) Free(p cuda.DevicePtr) error {
	return d.freeAfterWork("free", uint64(p), cuda.DeviceMemory)
}

// FreePinned frees pinned memory at once.
func (d *Device) FreePinned(b cuda.PinnedBuffer) error {
	const op = "free pinned memory"
	if err := d.call(op, d.costs.Free); err != nil {
		return err
	}
	defer d.world.Exit()
	r, err := d.owned(op, uint64(b.Device), cuda.PinnedMemory)
	if err != nil {
		return err
	}
	if r.external {
		return invalid(op, "%q is registered, not allocated", r.name)
	}
	return d.mem.release(r)
}

// owned returns the live allocation that starts at addr.
func (d *Device) owned(op string, addr uint64, kind cuda.MemoryKind) (*region, error) {
	r := d.mem.below(addr)
	switch {
	case r == nil || addr-r.base >= roundUp(r.size, d.mem.page):
		return nil, invalid(op, "no allocation at %#x", addr)
	case r.freed:
		return nil, invalid(op, "%q at %#x has been freed", r.name, addr)
	case r.base != addr:
		return nil, invalid(op, "%#x is not the start of %q, %#x is", addr, r.name, r.base)
	case r.kind != kind:
		return nil, invalid(op, "%q is %s memory", r.name, r.kind)
	case r.module:
		return nil, invalid(op, "%q at %#x belong to a module", r.name, addr)
	}
	return r, nil
}

// AllocRange returns the live allocation that p lies in, or [cuda.ErrNotFound].
func (d *Device) AllocRange(p cuda.DevicePtr) (cuda.DevicePtr, uint64, error) {
	const op = "find allocation"
	if err := d.call(op, 0); err != nil {
		return 0, 0, err
	}
	defer d.world.Exit()
	r := d.mem.at(uint64(p))
	if r == nil {
		return 0, 0, &cuda.Error{Code: cuda.ErrNotFound, Op: op, Detail: fmt.Sprintf("%#x", uint64(p))}
	}
	return cuda.DevicePtr(r.base), r.size, nil
}

// Read copies from memory to dst. On virtual time what a copy engine takes for
// it passes for the caller.
func (d *Device) Read(dst []byte, src cuda.DevicePtr) error {
	return d.blocking("read", len(dst), func() error {
		m := d.mem.holder(src)
		m.by = d.hostOp(HostRead)
		return m.Read(uint64(src), dst)
	})
}

// Write copies src to memory, and takes as long as [Device.Read].
func (d *Device) Write(dst cuda.DevicePtr, src []byte) error {
	return d.blocking("write", len(src), func() error {
		m := d.mem.holder(dst)
		m.by = d.hostOp("write by the host")
		return m.Write(uint64(dst), src)
	})
}

func (d *Device) blocking(op string, n int, move func() error) error {
	link := time.Duration(min(float64(n)/d.costs.HostLink*1e9, float64(maxCost)))
	if err := d.call(op, d.costs.Copy+d.costs.CopyLatency+link); err != nil {
		return err
	}
	defer d.world.Exit()
	if err := move(); err != nil {
		return invalid(op, "%v", err)
	}
	return nil
}

// NewStream returns a stream.
func (d *Device) NewStream(o cuda.StreamOptions) (cuda.Stream, error) {
	if err := d.call("make stream", d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	s := d.newStream(o.Name, max(greatestPriority, min(o.Priority, leastPriority)))
	if o.HighPriority {
		s.priority = greatestPriority
	}
	s.blocking = o.Blocking
	s.id = cuda.Stream(d.handle(kindStream))
	d.streams[s.id] = s
	d.order = append(d.order, s)
	return s.id, nil
}

// DestroyStream makes the handle invalid. Work in the stream still runs, as in
// CUDA.
func (d *Device) DestroyStream(h cuda.Stream) error {
	const op = "destroy stream"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	s := d.streams[h]
	if s == nil {
		return badHandle(op, "stream", uint64(h))
	}
	delete(d.streams, h)
	if s != d.legacy {
		s.destroyed = true
		s.forgetCapture()
		s.forget()
	}
	return nil
}

// StreamPriority returns the priority of a stream.
func (d *Device) StreamPriority(h cuda.Stream) (int, error) {
	const op = "priority of stream"
	if err := d.call(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	s := d.streams[h]
	if s == nil {
		return 0, badHandle(op, "stream", uint64(h))
	}
	return s.priority, nil
}

// forget drops a stream that has been destroyed and has no work left.
func (s *stream) forget() {
	if !s.destroyed || s.len > 0 {
		return
	}
	for i, x := range s.d.order {
		if x == s {
			s.d.order = append(s.d.order[:i], s.d.order[i+1:]...)
			return
		}
	}
}

// NewEvent returns an event that has not been recorded.
func (d *Device) NewEvent() (cuda.Event, error) { return d.NewEventWithOptions(cuda.EventOptions{}) }

// NewEventWithOptions returns an event that has not been recorded.
func (d *Device) NewEventWithOptions(o cuda.EventOptions) (cuda.Event, error) {
	if err := d.call("make event", d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	h := cuda.Event(d.handle(kindEvent))
	d.events[h] = &event{d: d, sleep: o.BlockingSync}
	return h, nil
}

// DestroyEvent makes the handle invalid. Records and waits that are in streams
// keep their meaning, as in CUDA.
func (d *Device) DestroyEvent(h cuda.Event) error {
	const op = "destroy event"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	if d.events[h] == nil {
		return badHandle(op, "event", uint64(h))
	}
	delete(d.events, h)
	return nil
}

// Close ends the device: work that is under way stops where it is, memory is
// given back, and the world, if it is the device's own, is closed. A second
// Close does nothing. Like [vtime.World.Close] it must not be called by a
// goroutine that the world started.
func (d *Device) Close() error {
	if err := d.permitted("close device"); err != nil {
		return err
	}
	d.world.Enter(0)
	if d.closed {
		d.world.Exit()
		return nil
	}
	d.closed = true
	d.ended.Store(true)
	d.activity.Add(1)
	d.strand()
	d.quit()
	err := d.mem.close()
	d.world.Exit()
	d.world.Notify()
	d.unexplain()
	if d.ownsWorld {
		return d.world.Close()
	}
	return err
}

func (d *Device) explain(w io.Writer) {
	if d.dead != nil {
		fmt.Fprintf(w, "  dead: %v\n", d.dead)
	}
	idle := 0
	for _, s := range d.order {
		if s.len == 0 {
			idle++
		}
		s.explain(w)
	}
	fmt.Fprintf(w, "  idle streams: %d of %d\n", idle, len(d.order))
	for _, t := range d.held {
		fmt.Fprintf(w, "  %s: held back by the limit of %d resident grids\n", t.s, d.costs.ResidentGrids)
	}
}
