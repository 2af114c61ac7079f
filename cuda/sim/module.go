package sim

import (
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

type module struct {
	ptx       *ptx.Module
	functions map[string]cuda.Function
}

// function is a kernel of a module, or a model.
type function struct {
	registers int // of a thread
	name      string
	params    int // bytes; -1: any
	kernel    *ptx.Kernel
	allowed   uint32 // bytes of dynamic shared memory, by [Device.AllowShared]

	model    ModelFunc
	launches []*ModelLaunch // to be used again
}

func (f *function) maxThreads() int {
	if f.kernel != nil {
		return f.kernel.MaxThreads()
	}
	return maxThreads
}

func (f *function) staticShared() uint64 {
	if f.kernel != nil {
		return uint64(f.kernel.StaticShared())
	}
	return 0
}

func (d *Device) addFunction(f *function) cuda.Function {
	h := cuda.Function(d.handle(kindFunction))
	f.registers = d.registersOf(f.name)
	d.functions[h] = f
	return h
}

// LoadModule parses, checks and lowers PTX. The error, [cuda.ErrInvalidPTX],
// carries the line that the interpreter does not take.
func (d *Device) LoadModule(image []byte) (cuda.Module, error) {
	const op = "load module"
	if err := d.call(op, d.costs.Module); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	d.stats.Modules++
	m, err := parsed.parse(image)
	if err != nil {
		return 0, &causedError{&cuda.Error{Code: cuda.ErrInvalidPTX, Op: op, Detail: err.Error()}, err}
	}
	h := cuda.Module(d.handle(kindModule))
	d.modules[h] = &module{ptx: m, functions: map[string]cuda.Function{}}
	return h, nil
}

// UnloadModule makes the module's functions invalid. Launches that are in
// streams still run.
func (d *Device) UnloadModule(h cuda.Module) error {
	const op = "unload module"
	if err := d.call(op, d.costs.Module); err != nil {
		return err
	}
	defer d.world.Exit()
	m := d.modules[h]
	if m == nil {
		return badHandle(op, "module", uint64(h))
	}
	for _, f := range m.functions {
		delete(d.functions, f)
	}
	delete(d.modules, h)
	return nil
}

// Function returns a kernel of a module, the same handle each time.
func (d *Device) Function(h cuda.Module, name string) (cuda.Function, error) {
	const op = "look up function"
	if err := d.call(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	d.stats.Functions++
	m := d.modules[h]
	if m == nil {
		return 0, badHandle(op, "module", uint64(h))
	}
	if f, ok := m.functions[name]; ok {
		return f, nil
	}
	k, ok := m.ptx.Kernel(name)
	if !ok {
		return 0, &cuda.Error{Code: cuda.ErrNotFound, Op: op, Detail: fmt.Sprintf("%q", name)}
	}
	f := d.addFunction(&function{name: name, kernel: k, params: k.ParamBytes()})
	m.functions[name] = f
	return f, nil
}

// sharedPadding is what alignment may put between static and dynamic shared
// memory. What a launch takes was checked when it was submitted.
const sharedPadding = 1 << 10

// begin starts a launch of f.
func (f *function) begin(t *task, c *command) (work, error) {
	if f.model != nil {
		return f.beginModel(t, c)
	}
	d := t.d
	run, err := f.kernel.Start(d.mem, ptx.Launch{
		Grid:          c.grid,
		Block:         [3]uint32{uint32(c.block[0]), uint32(c.block[1]), uint32(c.block[2])},
		Params:        c.args,
		DynamicShared: c.shared,
		Timer:         d.timer,
		SharedLimit:   optInShared + sharedPadding,
	})
	if err != nil {
		return nil, err
	}
	n := uint64(d.costs.Chunks)
	return &kernelWork{t: t, run: run, blocks: min(max((run.Blocks()+n-1)/n, 1), maxChunkBlocks)}, nil
}

// maxChunkBlocks bounds the thread blocks of a chunk, since the machine is
// locked while they are interpreted.
const maxChunkBlocks = 512

// kernelWork is a launch of PTX: its stores land at the start of each chunk,
// because only then is known how many there are. What its thread blocks sleep is
// time that the launch takes at least, beside that of its bytes.
type kernelWork struct {
	t      *task
	run    *ptx.Run
	blocks uint64 // a chunk
	bytes  uint64 // counted so far
	count  ptx.Count
}

func (w *kernelWork) step() (float64, bool, error) {
	last, err := w.run.Step(w.blocks)
	if ns := w.run.Slept(); ns > 0 {
		slept := time.Duration(float64(ns) * w.t.d.world.Slow())
		w.t.least = max(w.t.least, w.t.at-w.t.begun+slept)
	}
	read, written := w.run.Traffic()
	bytes := read + written - w.bytes
	w.bytes = read + written
	done := w.run.Count()
	w.t.d.stats.Kernels.Add(done)
	w.t.d.stats.Kernels.Sub(w.count)
	w.count = done
	return float64(bytes), last, err
}

// timer is what kernels read as %globaltimer: nanoseconds of the device that is
// simulated, which the world may stretch.
func (d *Device) timer() uint64 { return uint64(float64(d.world.Time()) / d.world.Slow()) }

// Region implements [ptx.Memory].
func (m *Memory) Region(addr uint64) (ptx.Region, bool) {
	r := m.at(addr)
	if r == nil {
		if r = m.far(addr); r != nil && !m.reaches(r) {
			r = nil
		}
	}
	if r == nil {
		return ptx.Region{}, false
	}
	return ptx.Region{Base: r.base, Data: r.data, Scale: r.scale}, true
}

// code returns the CUDA result of an error that ended a kernel, fill or copy.
func code(err error) cuda.Code {
	for _, x := range []struct {
		kind error
		code cuda.Code
	}{
		{ptx.ErrOutOfBounds, cuda.ErrIllegalAddress},
		{ptx.ErrReadOnly, cuda.ErrIllegalAddress},
		{ptx.ErrMisaligned, cuda.ErrMisaligned},
		{ptx.ErrBadInstruction, cuda.ErrIllegalInstr},
		{ptx.ErrStepLimit, cuda.ErrLaunchTimeout},
	} {
		if errors.Is(err, x.kind) {
			return x.code
		}
	}
	var c cuda.Code
	if errors.As(err, &c) && c.Sticky() {
		return c
	}
	return cuda.ErrLaunchFailed
}
