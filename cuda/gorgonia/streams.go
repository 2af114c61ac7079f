//go:build gorgonia

package gorgonia

import (
	"context"

	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda"
)

// Attributes that gorgonia.org/cu has no names for.
const (
	sharedOptIn          cu.DeviceAttribute = 97 // CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
	canFlushRemoteWrites cu.DeviceAttribute = 98 // CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES
)

const waitFlush = 1 << 30 // CU_STREAM_WAIT_VALUE_FLUSH

// LegacyStream adopts the legacy default stream of the context.
func (d *Device) LegacyStream() (h cuda.Stream, err error) {
	err = d.within("adopt legacy stream", func() error {
		d.mu.Lock()
		defer d.mu.Unlock()
		h = cuda.Stream(d.handle())
		d.streams[h] = cu.NoStream
		return nil
	})
	return h, err
}

// StreamPriority returns the priority of a stream.
func (d *Device) StreamPriority(h cuda.Stream) (priority int, err error) {
	const op = "priority of stream"
	err = d.within(op, func() (err error) {
		s, ok := get(d, d.streams, h)
		if !ok {
			return badHandle(op, "stream", uint64(h))
		}
		priority, err = s.Priority()
		return err
	})
	return priority, err
}

// SyncEvent blocks until the newest record of h has fired: in the driver where
// ctx can not end, else by asking again and again.
func (d *Device) SyncEvent(ctx context.Context, h cuda.Event) error {
	const op = "synchronise event"
	var e cu.Event
	if err := d.within(op, func() error {
		var ok bool
		if e, ok = get(d, d.events, h); !ok {
			return badHandle(op, "event", uint64(h))
		}
		return nil
	}); err != nil {
		return err
	}
	if ctx.Done() != nil {
		return d.poll(ctx, h)
	}
	return d.within(op, func() error { return d.fail(op, e.Synchronize()) })
}

// NewSignal fails: gorgonia.org/cu has no host functions.
func (d *Device) NewSignal() (cuda.HostFunc, error) {
	const op = "make signal"
	return 0, d.within(op, func() error {
		return refuse(cuda.ErrNotSupported, op, "gorgonia.org/cu has no cuLaunchHostFunc")
	})
}

// SignalCount refuses every handle: there are none.
func (d *Device) SignalCount(f cuda.HostFunc) (uint64, error) {
	return 0, badHandle("count signals", "host function", uint64(f))
}

// DestroyHostFunc refuses every handle: there are none.
func (d *Device) DestroyHostFunc(f cuda.HostFunc) error {
	return badHandle("destroy host function", "host function", uint64(f))
}

// AllowShared fails: gorgonia.org/cu sets no attributes of functions.
func (d *Device) AllowShared(f cuda.Function, _ uint32) error {
	const op = "allow shared memory"
	return d.within(op, func() error {
		if _, ok := get(d, d.functions, f); !ok {
			return badHandle(op, "function", uint64(f))
		}
		return refuse(cuda.ErrNotSupported, op, "gorgonia.org/cu has no cuFuncSetAttribute")
	})
}

// word puts a write of a word or a wait for one into a stream.
func (d *Device) word(c *cuda.Command, s cu.Stream) error {
	op := c.Op.String()
	write := c.Op == cuda.OpWriteWord
	switch {
	case c.B>>32 != 0 || c.A%4 != 0 || c.Flags&^cuda.WaitFlush != 0 || write && c.Flags != 0:
		return refuse(cuda.ErrInvalidValue, op, "value %#x at %#x, flags %#x", c.B, c.A, c.Flags)
	case c.Flags != 0 && !d.info.FlushesWrites:
		return refuse(cuda.ErrNotSupported, op, "the device does not flush writes from outside")
	}
	if err := inside(op, cuda.DevicePtr(c.A), 4); err != nil {
		return err
	}
	if write {
		return s.WriteValue32(cu.DevicePtr(c.A), uint32(c.B), 0)
	}
	flags := uint(0) // cyclic
	if c.Flags != 0 {
		flags = waitFlush
	}
	return s.WaitOnValue32(cu.DevicePtr(c.A), uint32(c.B), flags)
}
