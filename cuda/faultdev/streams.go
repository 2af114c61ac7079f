package faultdev

import (
	"context"

	"github.com/kvgate/kvgate/cuda"
)

func (f *device) AllowShared(fn cuda.Function, dynamic uint32) error {
	if err := f.method("AllowShared"); err != nil {
		return err
	}
	return f.d.AllowShared(fn, dynamic)
}

func (f *device) StreamPriority(s cuda.Stream) (int, error) {
	if err := f.method("StreamPriority"); err != nil {
		return 0, err
	}
	return f.d.StreamPriority(s)
}

func (f *device) LegacyStream() (cuda.Stream, error) {
	if err := f.method("LegacyStream"); err != nil {
		return 0, err
	}
	return f.d.LegacyStream()
}

func (f *device) NewEventWithOptions(o cuda.EventOptions) (cuda.Event, error) {
	if err := f.method("NewEventWithOptions"); err != nil {
		return 0, err
	}
	return f.d.NewEventWithOptions(o)
}

func (f *device) NewSignal() (cuda.HostFunc, error) {
	if err := f.method("NewSignal"); err != nil {
		return 0, err
	}
	return f.d.NewSignal()
}

// SignalCount answers on a dead device, too.
func (f *device) SignalCount(h cuda.HostFunc) (uint64, error) { return f.d.SignalCount(h) }

func (f *device) DestroyHostFunc(h cuda.HostFunc) error {
	if err := f.method("DestroyHostFunc"); err != nil {
		return err
	}
	return f.d.DestroyHostFunc(h)
}

func (f *device) SyncEvent(ctx context.Context, e cuda.Event) error {
	if err := f.method("SyncEvent"); err != nil {
		return err
	}
	return f.d.SyncEvent(ctx, e)
}
