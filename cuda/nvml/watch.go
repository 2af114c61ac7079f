//go:build cgo && linux

package nvml

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// Killer is a device that can be told of its death: cuda/driver's.
type Killer interface {
	Kill(c cuda.Code, why string) error
	Clock() clock.Clock
}

// waitMillis is how long NVML is asked to wait for an event, and so how long
// the end of a watch may take.
const waitMillis = 100

// Watch is a watch over a device's events.
type Watch struct {
	clk   clock.Clock
	stop  atomic.Bool
	ended atomic.Bool
	err   error // why it ended by itself; written before ended
}

// Watch kills k when NVML tells of an error that ends the device: an
// uncorrected ECC error, or one of the Xids after which the device is of no
// use. Everything that waits for k is then told, which CUDA alone may take long
// to do. A goroutine of k's clock waits; Close ends it.
func (d *Device) Watch(k Killer) (*Watch, error) {
	kinds, r := d.dev.GetSupportedEventTypes()
	if kinds &= nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError; r != nvml.SUCCESS || kinds == 0 {
		if r == nvml.SUCCESS {
			r = nvml.ERROR_NOT_SUPPORTED
		}
		return nil, fmt.Errorf("cuda/nvml: watch %s: %s: %w", d.pci, name(r), cuda.ErrNotSupported)
	}
	set, r := d.lib.nvml.EventSetCreate()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("cuda/nvml: watch %s: %s", d.pci, name(r))
	}
	if r := d.dev.RegisterEvents(kinds, set); r != nvml.SUCCESS {
		set.Free()
		return nil, fmt.Errorf("cuda/nvml: watch %s: register: %s", d.pci, name(r))
	}
	w := &Watch{clk: k.Clock()}
	w.clk.Go("NVML events", func() {
		w.err = w.run(set, k)
		set.Free()
		w.ended.Store(true)
		w.clk.Notify()
	})
	return w, nil
}

func (w *Watch) run(set nvml.EventSet, k Killer) error {
	for !w.stop.Load() {
		e, r := set.Wait(waitMillis)
		switch r {
		case nvml.SUCCESS:
		case nvml.ERROR_TIMEOUT:
			continue
		case nvml.ERROR_GPU_IS_LOST:
			return k.Kill(cuda.ErrLaunchFailed, "NVML: the GPU is lost")
		default:
			return fmt.Errorf("cuda/nvml: wait for events: %s", name(r))
		}
		if code, why, ok := death(e); ok {
			return k.Kill(code, why)
		}
	}
	return nil
}

// death tells whether an event ends its device.
func death(e nvml.EventData) (cuda.Code, string, bool) {
	switch e.EventType {
	case nvml.EventTypeDoubleBitEccError:
		return cuda.ErrECC, "NVML: uncorrected ECC error", true
	case nvml.EventTypeXidCriticalError:
		x, ok := fatal[e.EventData]
		return x.code, fmt.Sprintf("NVML: Xid %d: %s", e.EventData, x.text), ok
	}
	return 0, "", false
}

// Close ends the watch and returns why it had ended by itself, if it had.
func (w *Watch) Close() error {
	w.stop.Store(true)
	if err := w.clk.WaitUntil(context.Background(), ended{w}, 1<<63-1); err != nil {
		return err
	}
	if errors.Is(w.err, cuda.ErrClosed) {
		return nil // the device went first
	}
	return w.err
}

type ended struct{ w *Watch }

func (c ended) Done() bool     { return c.w.ended.Load() }
func (c ended) String() string { return "the end of the watch over NVML's events" }
