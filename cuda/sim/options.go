package sim

import (
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"time"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/race"
)

// Options are the options of a device. The zero value is an H100-like device on
// virtual time of its own, with ties in the order of arrival.
type Options struct {
	// Name appears in reports. Default "sim".
	Name string
	// Memory is the size of device memory in bytes. Default 80 GiB. Memory of
	// the machine is taken only for what is written.
	Memory uint64
	// Bandwidth is the peak of device memory in bytes a second. Default
	// 3.35e12, an H100 SXM (vendor data).
	Bandwidth float64
	// SMs is the number of multiprocessors. Default 132, an H100 SXM.
	SMs int
	// Costs replaces the cost table.
	Costs *Costs

	// World is the machine to be part of, shared with other devices and with a
	// fabric. It outlives the device. When nil the device makes its own from
	// the fields below, and closes it with itself.
	World   *vtime.World
	Seed    uint64        // see [vtime.Options]
	Chooser vtime.Chooser // see [vtime.Options]
	// Real paces the device by the wall clock instead of virtual time; Slow of
	// more than 1 then stretches the cost table by that factor.
	Real bool
	Slow float64

	// Uninitialised leaves fresh memory as the system gives it (zero) instead
	// of filling it with 0xff, which reads as NaN in all floating-point
	// formats. Allocations above PoisonLimit are never filled.
	Uninitialised bool

	// Shareable lets other processes open device memory: see [cuda.IPC]. It comes
	// from a memory file then, of which pages are taken that are only read, too.
	Shareable bool

	// NICWritesLate keeps what a NIC writes ([Device.NIC]) from being visible to
	// the device and to the host until [Device.FlushRDMA], or until a wait for a
	// word with [cuda.WaitFlush] is over, which sees the NIC's writes: the worst
	// that hardware may do that does not order such writes.
	NICWritesLate bool
	// ExclusiveManaged has the host fault when it touches managed memory while
	// launches are under way, as devices of old do: see [cuda.Managed].
	ExclusiveManaged bool

	// Registers is how many registers a thread of a kernel takes, by the kernel's
	// name; 32 where it says nothing. The interpreter has as many as a kernel
	// names: it is the limit of a thread block that is modelled.
	Registers map[string]int

	// Printf takes what kernels print, as they print it, with the machine locked: it
	// must not call into the world or the device. nil: standard output, as CUDA does.
	Printf io.Writer

	// Races is told of all that the device does, to find accesses that nothing orders:
	// see package race. It is called with the machine locked. Devices of one world may
	// share it. nil: nobody checks.
	Races *race.Checker

	// Ran is told of every launch, copy and fill when it is over. It runs with
	// the machine locked: it must not block nor call into the world or the
	// device. nil: nobody is told.
	Ran func(Ran)
}

// Ran is a piece of device work that is over.
type Ran struct {
	Stream string        // its name, or its handle where it has none
	What   string        // the kernel's name, "copy" or "fill"
	Begun  time.Duration // all latencies and waits over; world time, as Ended
	Ended  time.Duration
}

func (r Ran) String() string {
	return fmt.Sprintf("%v to %v: %s on %s", r.Begun, r.Ended, r.What, r.Stream)
}

// PoisonLimit is the largest allocation whose fresh content is made garbage.
const PoisonLimit = 64 << 20

// DefaultMemory is the size of device memory when [Options] names none.
const DefaultMemory = 80 << 30

// New returns a device that nothing has been done to yet. Options that make no
// sense are refused with [cuda.ErrInvalidValue], by their name.
func New(o Options) (*Device, error) {
	if o.Name == "" {
		o.Name = "sim"
	}
	if o.Memory == 0 {
		o.Memory = DefaultMemory
	}
	if o.Bandwidth == 0 {
		o.Bandwidth = 3.35e12
	}
	if o.SMs == 0 {
		o.SMs = 132
	}
	if o.Printf == nil {
		o.Printf = os.Stdout
	}
	costs := DefaultCosts()
	if o.Costs != nil {
		costs = *o.Costs
	}
	switch {
	case o.World != nil && (o.Seed != 0 || o.Chooser != nil || o.Real || o.Slow != 0):
		return nil, invalid("open simulator", "Seed, Chooser, Real and Slow belong to the world, which was given")
	case o.Slow != 0 && (!o.Real || !(o.Slow >= 1) || math.IsInf(o.Slow, 1)):
		return nil, invalid("open simulator", "Slow of %g: it is at least 1, finite, and goes with Real", o.Slow)
	case o.SMs < 0:
		return nil, invalid("open simulator", "SMs of %d: want at least 1", o.SMs)
	case !(o.Bandwidth > 0) || o.Bandwidth >= 1<<63:
		return nil, invalid("open simulator", "Bandwidth of %g: want a positive number below 2^63", o.Bandwidth)
	}
	for name, n := range o.Registers {
		if n < 1 || n > maxPerThread {
			return nil, invalid("open simulator", "Registers of %d for %q: may be 1 to %d", n, name, maxPerThread)
		}
	}
	slow := max(o.Slow, 1)
	if o.World != nil {
		slow = o.World.Slow()
	}
	if err := costs.check(slow); err != nil {
		return nil, err
	}
	share := o.Bandwidth * costs.MemoryShare / slow
	if !(share > 0) || math.IsInf(share, 1) {
		return nil, invalid("open simulator", "Bandwidth of %g with Costs.MemoryShare of %g, slowed by %g: want a positive finite product",
			o.Bandwidth, costs.MemoryShare, slow)
	}
	d := &Device{
		name:      o.Name,
		size:      o.Memory,
		peak:      o.Bandwidth,
		sms:       o.SMs,
		streams:   map[cuda.Stream]*stream{},
		events:    map[cuda.Event]*event{},
		modules:   map[cuda.Module]*module{},
		functions: map[cuda.Function]*function{},
		graphs:    map[cuda.Graph][]*node{},
		execs:     map[cuda.GraphExec]*graphExec{},
		hostFuncs: map[cuda.HostFunc]*hostFunc{},
		registers: maps.Clone(o.Registers),
		world:     o.World,
		ran:       o.Ran,
		printf:    o.Printf,
		races:     o.Races,
		words:     map[uint64]race.Clock{},
		nic:       NIC{keep: o.NICWritesLate},
	}
	var err error
	if d.mem, err = newMemory(d, o); err != nil {
		return nil, err
	}
	if d.world == nil {
		vo := vtime.Options{Seed: o.Seed, Chooser: o.Chooser}
		if o.Real {
			d.world = vtime.NewReal(vo, o.Slow)
		} else {
			d.world = vtime.NewVirtual(vo)
		}
		d.ownsWorld = true
	}
	d.costs = costs.slow(slow)
	d.nic.m = d.mem
	d.mem.hbm = vtime.NewShared(d.world, "memory bandwidth", share)
	d.join()
	d.toDevice.name, d.toHost.name = "host to device", "device to host"
	d.unexplain = d.world.Explain(fmt.Sprintf("device %s", d.name), func(w io.Writer) { d.explain(w) })
	return d, nil
}
