//go:build gorgonia

package gorgonia

import (
	"encoding/binary"
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

// LoadModule compiles PTX. It is read here as well, for the sizes of the
// kernels' parameters, which gorgonia.org/cu does not tell; of a module that
// can not be read no kernel can be launched.
func (d *Device) LoadModule(image []byte) (h cuda.Module, err error) {
	const op = "load module"
	err = d.within(op, func() error {
		if len(image) == 0 {
			return refuse(cuda.ErrInvalidImage, op, "no bytes")
		}
		mod, err := cu.LoadData(string(image))
		if err != nil {
			return err
		}
		m := &module{mod: mod, known: map[string]cuda.Function{}}
		m.ptx, _ = ptx.Parse("module", image) // nil where it can not be read
		d.mu.Lock()
		defer d.mu.Unlock()
		h = cuda.Module(d.handle())
		d.modules[h] = m
		return nil
	})
	return h, err
}

// UnloadModule makes the module's functions invalid.
func (d *Device) UnloadModule(h cuda.Module) error {
	const op = "unload module"
	return d.within(op, func() error {
		m, ok := take(d, d.modules, h)
		if !ok {
			return badHandle(op, "module", uint64(h))
		}
		for _, f := range m.known {
			take(d, d.functions, f)
		}
		return m.mod.Unload()
	})
}

// Function returns a kernel of a module, and the same handle each time.
func (d *Device) Function(h cuda.Module, name string) (f cuda.Function, err error) {
	const op = "look up function"
	err = d.within(op, func() error {
		m, ok := get(d, d.modules, h)
		if !ok {
			return badHandle(op, "module", uint64(h))
		}
		if known, ok := get(d, m.known, name); ok {
			f = known
			return nil
		}
		fn, err := m.mod.Function(name)
		if err != nil {
			return err
		}
		if m.ptx == nil {
			return refuse(cuda.ErrNotSupported, op, "%q: the sizes of its parameters are not known", name)
		}
		k, ok := m.ptx.Kernel(name)
		if !ok {
			return refuse(cuda.ErrNotFound, op, "%q", name)
		}
		d.mu.Lock()
		defer d.mu.Unlock()
		f = cuda.Function(d.handle())
		d.functions[f] = &function{fn: fn, params: k.Params()}
		m.known[name] = f
		return nil
	})
	return f, err
}

// Submit puts the commands of b into their streams, one crossing each.
func (d *Device) Submit(b *cuda.Batch) error {
	if b == nil {
		return refuse(cuda.ErrInvalidValue, "submit", "no batch")
	}
	commands := b.Commands()
	i := 0
	err := d.within("submit", func() error {
		for ; i < len(commands); i++ {
			if err := d.command(b, &commands[i]); err != nil {
				return d.fail(commands[i].Op.String(), err)
			}
		}
		return nil
	})
	if err == nil || len(commands) == 0 {
		return err
	}
	e := &cuda.SubmitError{Index: i, Op: commands[i].Op, Done: make([]int, len(b.Streams())), Err: err}
	for _, c := range commands[:i] {
		e.Done[c.Stream]++
	}
	return e
}

func (d *Device) command(b *cuda.Batch, c *cuda.Command) error {
	op := c.Op.String()
	if int(c.Stream) >= len(b.Streams()) {
		return refuse(cuda.ErrInvalidValue, op, "stream %d of %d in the batch", c.Stream, len(b.Streams()))
	}
	h := b.Streams()[c.Stream]
	s, ok := get(d, d.streams, h)
	if !ok {
		return badHandle(op, "stream", uint64(h))
	}
	switch c.Op {
	case cuda.OpLaunch:
		return d.launch(b, c, s)
	case cuda.OpCopy:
		if c.C == 0 {
			return nil
		}
		for _, p := range []uint64{c.A, c.B} {
			if err := inside(op, cuda.DevicePtr(p), c.C); err != nil {
				return err
			}
		}
		return cu.MemcpyAsync(cu.DevicePtr(c.A), cu.DevicePtr(c.B), int64(c.C), s)
	case cuda.OpFill:
		return fill(op, c, s)
	case cuda.OpWriteWord, cuda.OpWaitWord:
		return d.word(c, s)
	case cuda.OpRecord, cuda.OpWaitEvent:
		e, ok := get(d, d.events, cuda.Event(c.A))
		if !ok {
			return badHandle(op, "event", c.A)
		}
		if c.Op == cuda.OpRecord {
			return e.Record(s)
		}
		return s.Wait(e, 0)
	}
	return refuse(cuda.ErrNotSupported, op, "gorgonia.org/cu")
}

func fill(op string, c *cuda.Command, s cu.Stream) error {
	size := uint64(1) << c.Flags
	switch {
	case c.Flags > 2, c.A%size != 0, c.B>>(8*size) != 0, c.C > 1<<48:
		return refuse(cuda.ErrInvalidValue, op, "%d elements of %d bytes with %#x at %#x", c.C, size, c.B, c.A)
	case c.C == 0:
		return nil
	}
	if err := inside(op, cuda.DevicePtr(c.A), c.C*size); err != nil {
		return err
	}
	switch c.Flags {
	case 0:
		return cu.MemsetD8Async(cu.DevicePtr(c.A), byte(c.B), int64(c.C), s)
	case 1:
		return cu.MemsetD16Async(cu.DevicePtr(c.A), uint16(c.B), int64(c.C), s)
	}
	return cu.MemsetD32Async(cu.DevicePtr(c.A), uint(c.B), int64(c.C), s)
}

func (d *Device) launch(b *cuda.Batch, c *cuda.Command, s cu.Stream) error {
	op := c.Op.String()
	f, ok := get(d, d.functions, cuda.Function(c.A))
	if !ok {
		return badHandle(op, "function", c.A)
	}
	if end := uint64(c.Off) + uint64(c.Len); c.Len > cuda.MaxArgBytes || end > uint64(len(b.Arena())) {
		return refuse(cuda.ErrInvalidValue, op, "%d bytes of arguments at %d of an arena of %d", c.Len, c.Off, len(b.Arena()))
	}
	args, err := f.arguments(op, b.Arena()[c.Off:c.Off+c.Len])
	if err != nil {
		return err
	}
	return f.fn.Launch(int(c.Grid[0]), int(c.Grid[1]), int(c.Grid[2]), int(c.Block[0]), int(c.Block[1]), int(c.Block[2]),
		int(c.Shared), s, args)
}

// arguments cuts packed arguments into what gorgonia.org/cu takes: a pointer to
// 8 bytes for each parameter, which it copies to words that lie side by side.
// So a parameter of more than 8 bytes is a run of words, and can only be the
// last one: the driver looks at the first word of each parameter alone.
func (f *function) arguments(op string, packed []byte) ([]unsafe.Pointer, error) {
	var words []uint64
	end := 0
	for i, p := range f.params {
		if p.Size > 8 && i < len(f.params)-1 {
			return nil, refuse(cuda.ErrNotSupported, op, "parameter %d of %d bytes is not the last", i, p.Size)
		}
		end = p.Offset + p.Size
		if end > len(packed) {
			break
		}
		words = append(words, pack(packed[p.Offset:end])...)
	}
	if end != len(packed) {
		return nil, refuse(cuda.ErrInvalidValue, op, "%d bytes of arguments, the kernel takes %d", len(packed), paramBytes(f.params))
	}
	args := make([]unsafe.Pointer, len(words))
	for i := range words {
		args[i] = unsafe.Pointer(&words[i])
	}
	return args, nil
}

func paramBytes(params []ptx.Param) int {
	if len(params) == 0 {
		return 0
	}
	last := params[len(params)-1]
	return last.Offset + last.Size
}

func pack(b []byte) (words []uint64) {
	for len(b) >= 8 {
		words = append(words, binary.NativeEndian.Uint64(b))
		b = b[8:]
	}
	if len(b) > 0 {
		var rest [8]byte
		copy(rest[:], b)
		words = append(words, binary.NativeEndian.Uint64(rest[:]))
	}
	return words
}

// Poll answers the marks, one crossing each. Words are not supported: they lie
// in pinned memory.
func (d *Device) Poll(marks []cuda.Mark) error {
	const op = "poll"
	return d.within(op, func() error {
		for i := range marks {
			m := &marks[i]
			m.State = cuda.MarkPending
			switch {
			case m.Word != 0:
				return refuse(cuda.ErrNotSupported, op, "mark %d: words lie in pinned memory, which gorgonia.org/cu lacks", i)
			case m.Event == 0:
				return refuse(cuda.ErrInvalidValue, op, "mark %d asks for nothing", i)
			}
			e, ok := get(d, d.events, m.Event)
			if !ok {
				return badHandle(op, "event", uint64(m.Event))
			}
			err := d.fail(fmt.Sprintf("poll mark %d", i), e.Query())
			if err == nil {
				m.State = cuda.MarkFired
				continue
			}
			if c, ok := err.(*cuda.Error); !ok || c.Code != cuda.ErrNotReady {
				return err
			}
		}
		return nil
	})
}
