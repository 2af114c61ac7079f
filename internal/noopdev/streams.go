package noopdev

import (
	"context"
	"fmt"
	"math"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// gone marks a signal that was destroyed.
const gone = math.MaxUint64

// LegacyStream returns one more stream: there is no order with others.
func (d *Device) LegacyStream() (cuda.Stream, error) { return d.NewStream(cuda.StreamOptions{}) }

// StreamPriority returns the one priority that there is.
func (d *Device) StreamPriority(s cuda.Stream) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.stream(s) == nil {
		return 0, &cuda.Error{Code: cuda.ErrInvalidHandle, Op: "priority of stream", Detail: fmt.Sprintf("%#x", uint64(s))}
	}
	return 0, d.err
}

// AllowShared refuses more than every launch may have.
func (d *Device) AllowShared(_ cuda.Function, dynamic uint32) error {
	if limit := d.Info().SharedOptIn; dynamic > limit {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: "allow shared memory", Detail: fmt.Sprintf("%d bytes, may be %d", dynamic, limit)}
	}
	return nil
}

func (d *Device) signal(f cuda.HostFunc) *uint64 {
	if f == 0 || uint64(f) > uint64(len(d.signals)) || d.signals[f-1] == gone {
		return nil
	}
	return &d.signals[f-1]
}

// NewSignal returns a host function that counts its calls, which come at once,
// records that are held notwithstanding.
func (d *Device) NewSignal() (cuda.HostFunc, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.err != nil {
		return 0, d.err
	}
	d.signals = append(d.signals, 0)
	return cuda.HostFunc(len(d.signals)), nil
}

// SignalCount returns how often f was called.
func (d *Device) SignalCount(f cuda.HostFunc) (uint64, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.signal(f)
	if n == nil {
		return 0, badHostFunc("count signals", f)
	}
	return *n, nil
}

// DestroyHostFunc forgets f.
func (d *Device) DestroyHostFunc(f cuda.HostFunc) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	n := d.signal(f)
	if n == nil {
		return badHostFunc("destroy host function", f)
	}
	*n = gone
	return nil
}

func badHostFunc(op string, f cuda.HostFunc) error {
	return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: op, Detail: fmt.Sprintf("host function %#x", uint64(f))}
}

// SyncEvent waits until e is not held.
func (d *Device) SyncEvent(ctx context.Context, e cuda.Event) error {
	d.mu.Lock()
	known := d.event(e) != nil
	d.mu.Unlock()
	if !known {
		return &cuda.Error{Code: cuda.ErrInvalidHandle, Op: "synchronise event", Detail: fmt.Sprintf("%#x", uint64(e))}
	}
	err := d.clk.WaitUntil(ctx, clock.Func("no-op event to fire", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		st := d.event(e)
		return d.err != nil || st == nil || !st.recorded || st.fired
	}), clock.Never)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.err
}
