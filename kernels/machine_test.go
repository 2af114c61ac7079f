package kernels

import (
	"context"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/internal/noopdev"
)

// machine is a device without time: it has memory, and runs each command as it
// is submitted.
type machine struct {
	*noopdev.Device
	memory  map[cuda.DevicePtr][]byte
	modules []*ptx.Module
	kernels []*ptx.Kernel
}

func newMachine() *machine {
	return &machine{Device: noopdev.New(noopdev.Options{}), memory: map[cuda.DevicePtr][]byte{}}
}

func (m *machine) Alloc(size uint64, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	p, err := m.Device.Alloc(size, o)
	if err == nil {
		m.memory[p] = make([]byte, size)
	}
	return p, err
}

func (m *machine) Free(p cuda.DevicePtr) error {
	delete(m.memory, p)
	return m.Device.Free(p)
}

func (m *machine) Region(addr uint64) (ptx.Region, bool) {
	base, _, err := m.AllocRange(cuda.DevicePtr(addr))
	if err != nil {
		return ptx.Region{}, false
	}
	return ptx.Region{Base: uint64(base), Data: m.memory[base], Scale: 1}, true
}

func (m *machine) at(p cuda.DevicePtr, n int) ([]byte, error) {
	base, size, err := m.AllocRange(p)
	if err != nil {
		return nil, err
	}
	if off := uint64(p - base); uint64(n) <= size-off {
		return m.memory[base][off:][:n], nil
	}
	return nil, fmt.Errorf("%d bytes at %#x: out of bounds", n, uint64(p))
}

func (m *machine) Read(dst []byte, src cuda.DevicePtr) error {
	b, err := m.at(src, len(dst))
	copy(dst, b)
	return err
}

func (m *machine) Write(dst cuda.DevicePtr, src []byte) error {
	b, err := m.at(dst, len(src))
	copy(b, src)
	return err
}

func (m *machine) LoadModule(image []byte) (cuda.Module, error) {
	mod, err := ptx.Parse("module", image)
	m.modules = append(m.modules, mod)
	return cuda.Module(len(m.modules)), err
}

func (m *machine) Function(mod cuda.Module, name string) (cuda.Function, error) {
	k, ok := m.modules[mod-1].Kernel(name)
	if !ok {
		return 0, &cuda.Error{Code: cuda.ErrNotFound, Op: "function", Detail: name}
	}
	m.kernels = append(m.kernels, k)
	return cuda.Function(len(m.kernels)), nil
}

func (m *machine) Submit(b *cuda.Batch) error {
	for i, c := range b.Commands() {
		if err := m.run(b, c); err != nil {
			return &cuda.SubmitError{Index: i, Op: c.Op, Err: err}
		}
	}
	return nil
}

func (m *machine) run(b *cuda.Batch, c cuda.Command) error {
	switch c.Op {
	case cuda.OpLaunch:
		r, err := m.kernels[c.A-1].Start(m, ptx.Launch{
			Grid:   c.Grid,
			Block:  [3]uint32{uint32(c.Block[0]), uint32(c.Block[1]), uint32(c.Block[2])},
			Params: b.Arena()[c.Off : c.Off+c.Len],
		})
		if err != nil {
			return err
		}
		_, err = r.Step(r.Blocks())
		return err
	case cuda.OpFill:
		n := int(c.C) << c.Flags
		mem, err := m.at(cuda.DevicePtr(c.A), n)
		for i := range mem {
			mem[i] = byte(c.B >> (8 * (i & (1<<c.Flags - 1))))
		}
		return err
	}
	return fmt.Errorf("%v is not for this machine", c.Op)
}

func (m *machine) SyncStream(context.Context, cuda.Stream) error { return nil }
