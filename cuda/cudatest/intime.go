package cudatest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// How long a behaviour may take on a device in real time, and wait for any one thing
// on any device. The work takes milliseconds on hardware, where other behaviours are
// still to be shown when one hangs; on a simulated device that is slowed down for a
// rehearsal it takes some hundred times as long, on a machine that is busy.
var patience, patienceSimulated = 5 * time.Second, 30 * time.Second

func patienceWith(d cuda.Device) time.Duration {
	if simulated(d) {
		return patienceSimulated
	}
	return patience
}

// inTime returns a context that ends when a behaviour has taken too long. In virtual time it does not end: a simulator tells by itself that
// nothing will happen any more.
func inTime(t *testing.T, d cuda.Device) context.Context {
	if d.Clock().Virtual() {
		return bg
	}
	clk := clock.Wall() // the device's may be slowed down, or end with it
	limit := patienceWith(d)
	ctx, cancel := context.WithCancelCause(bg)
	ended := make(chan struct{})
	clk.Go("deadline", func() {
		defer close(ended)
		if clk.Sleep(ctx, limit) == nil {
			cancel(fmt.Errorf("cudatest: has not ended within %s", limit))
		}
	})
	t.Cleanup(func() { // before the device is closed
		cancel(nil)
		<-ended
	})
	return ctx
}

// until waits for what the device is to do, or fails.
func (x *bench) until(what string, done func() bool) {
	x.t.Helper()
	clk, limit := x.Clock(), patienceWith(x.Device)
	for end := clk.Now() + limit; !done(); {
		if clk.Now() > end {
			require.FailNow(x.t, "not in time", "%s: not within %s", what, limit)
		}
		require.NoError(x.t, clk.Sleep(x.ctx, time.Microsecond), what)
	}
}

// fires waits until an event has fired. It asks without a pause, so that what is
// done next comes right behind it.
func (x *bench) fires(e cuda.Event) {
	x.t.Helper()
	clk, limit := x.Clock(), patienceWith(x.Device)
	for end := clk.Now() + limit; !x.fired(e); {
		if clk.Now() > end {
			require.FailNow(x.t, "not in time", "an event has not fired within %s", limit)
		}
	}
}

// closeInTime closes a device. Where something of it never ends, closing does not
// either: it is left behind then, and told of.
func closeInTime(t *testing.T, d cuda.Device) error {
	if d.Clock().Virtual() {
		return d.Close()
	}
	clk, limit := clock.Wall(), patienceWith(d)
	closed := make(chan error, 1)
	clk.Go("close", func() {
		closed <- d.Close()
		clk.Notify()
	})
	if clk.WaitUntil(bg, clock.Func("the device's end", func() bool { return len(closed) > 0 }), clk.Now()+limit) != nil {
		return fmt.Errorf("cudatest: the device has not closed within %s", limit)
	}
	return <-closed
}
