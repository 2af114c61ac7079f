package sim

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

type module struct {
	ptx       *ptx.Module
	functions map[string]cuda.Function
	variables *region // .global and .const; nil: there are none
}

// function is a kernel of a module, or a model.
type function struct {
	registers int // of a thread
	name      string
	params    int // bytes; -1: any
	kernel    *ptx.Kernel
	module    *module // of kernel
	allowed   uint32  // bytes of dynamic shared memory, by [Device.AllowShared]

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
	variables, err := d.placeVariables(op, m)
	if err != nil {
		return 0, err
	}
	h := cuda.Module(d.handle(kindModule))
	d.modules[h] = &module{ptx: m, functions: map[string]cuda.Function{}, variables: variables}
	return h, nil
}

// placeVariables allocates a module's variables with their initial content.
func (d *Device) placeVariables(op string, m *ptx.Module) (*region, error) {
	d.dropVariables()
	size := m.ImageSize()
	if size == 0 {
		return nil, nil
	}
	if left := d.size - d.mem.used; size > left {
		return nil, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("%d bytes of variables, %d of %d are free", size, left, d.size)}
	}
	r, err := d.mem.alloc(size, cuda.DeviceMemory, cuda.AllocOptions{Name: "module variables"})
	if err != nil {
		return nil, &cuda.Error{Code: cuda.ErrOutOfMemory, Op: op, Detail: fmt.Sprintf("module variables: %v", err)}
	}
	r.module = true
	copy(r.data, m.Image(r.base))
	return r, nil
}

// dropVariables gives back the variables of modules that have been unloaded, once no
// stream has work left and there is no graph that could launch their kernels.
func (d *Device) dropVariables() {
	if len(d.unloaded) == 0 || len(d.execs) > 0 || len(d.graphs) > 0 || len(d.captures) > 0 {
		return
	}
	for _, s := range d.order {
		if s.len > 0 {
			return
		}
	}
	for _, r := range d.unloaded {
		_ = d.mem.release(r) // what can not be unmapped stays to the end of the process
	}
	d.unloaded = nil
}

// UnloadModule makes the module's functions invalid. Launches that are in
// streams still run, and find the module's variables.
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
	if m.variables != nil {
		d.unloaded = append(d.unloaded, m.variables)
		d.dropVariables()
	}
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
	f := d.addFunction(&function{name: name, kernel: k, module: m, params: k.ParamBytes()})
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
	l := ptx.Launch{
		Grid:          c.grid,
		Block:         [3]uint32{uint32(c.block[0]), uint32(c.block[1]), uint32(c.block[2])},
		Params:        c.args,
		DynamicShared: c.shared,
		Timer:         d.timer,
		SharedLimit:   optInShared + sharedPadding,
		Resident:      d.sms * blocksPerSM(c),
		Printf:        d.printf,
	}
	if v := f.module.variables; v != nil {
		l.Image = v.base
	}
	w := &kernelWork{t: t}
	if c.by != nil {
		w.by, l.Accessed = c.by, w.touched.add
	}
	var err error
	if w.run, err = f.kernel.Start(d.mem, l); err != nil {
		return nil, err
	}
	n := uint64(d.costs.Chunks)
	w.blocks = min(max((w.run.Blocks()+n-1)/n, 1), maxChunkBlocks)
	return w, nil
}

// blocksPerSM is how many thread blocks of a launch fit on a multiprocessor (CUDA C++
// Programming Guide, "Technical Specifications per Compute Capability": 2048 threads
// and 32 blocks). Registers and shared memory, which may allow fewer, are not counted.
func blocksPerSM(c *command) int {
	threads := max(int(c.block[0])*int(c.block[1])*int(c.block[2]), 1)
	return min(2048/threads, 32)
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
