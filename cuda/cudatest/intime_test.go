package cudatest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

// asHardware is a simulated device that says that it is none.
type asHardware struct{ *sim.Device }

func (h asHardware) Info() cuda.Info {
	i := h.Device.Info()
	i.Simulated, i.Name = false, "as hardware"
	return i
}

// The table as a GPU runs it: what only hardware can answer is written down.
func TestTableAsHardware(t *testing.T) {
	require.True(t, newBench(t, simulatedDevice(t)).simulated())
	require.False(t, newBench(t, asHardware{simulatedDevice(t)}).simulated())
	Run(t, func(t *testing.T) cuda.Device {
		d, err := sim.New(sim.Options{Shareable: true})
		require.NoError(t, err)
		return asHardware{d}
	})
}

func simulatedDevice(t *testing.T) *sim.Device {
	d, err := sim.New(sim.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestCode(t *testing.T) {
	require.Equal(t, cuda.Success, code(nil))
	require.Equal(t, cuda.ErrNotPermitted, code(&cuda.Error{Code: cuda.ErrNotPermitted, Op: "x"}))
	require.Equal(t, cuda.ErrUnknown, code(errors.New("not of a device")))
}

// stuck is a device in real time that never closes.
type stuck struct {
	cuda.Device
	clk     clock.Clock
	release chan struct{}
}

func (s stuck) Clock() clock.Clock { return s.clk }
func (s stuck) Close() error       { <-s.release; return nil }

// A device that hangs ends neither the table nor its process.
func TestInTime(t *testing.T) {
	before := patienceSimulated
	patienceSimulated = 20 * time.Millisecond
	defer func() { patienceSimulated = before }()
	d := stuck{Device: simulatedDevice(t), clk: clock.Wall(), release: make(chan struct{})}
	require.EqualError(t, closeInTime(t, d), "cudatest: the device has not closed within 20ms")
	close(d.release)
	require.NoError(t, closeInTime(t, d))
	ctx := inTime(t, d)
	<-ctx.Done()
	require.EqualError(t, context.Cause(ctx), "cudatest: has not ended within 20ms")
	require.NoError(t, inTime(t, simulatedDevice(t)).Err(), "in virtual time nothing is waited for in vain")
}
