package loadgate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

// failNext returns a device of which the next n commands of a kind fail, and how
// to say so. The error is not sticky.
func failNext() (wrap func(*sim.Device) cuda.Device, fail func(cuda.Op, int)) {
	var op cuda.Op
	left := 0
	wrap = func(d *sim.Device) cuda.Device {
		return faultdev.Wrap(d, func(c faultdev.Call) error {
			if left == 0 || c.Op != op {
				return nil
			}
			left--
			return cuda.ErrOutOfMemory
		})
	}
	return wrap, func(o cuda.Op, n int) { op, left = o, n }
}

// TestMarksThatFailInARow: a mark that is owed is recorded again for as long as
// anyone waits.
func TestMarksThatFailInARow(t *testing.T) {
	wrap, fail := failNext()
	r := newRigOver(t, core.PerBlock, sim.Options{}, wrap, nil)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	require.NoError(t, p.Begin())
	fail(cuda.OpRecord, 5)
	f, err := p.End()
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	load := r.load(h, ts) // behind the step, so behind its mark
	require.NoError(t, load.Wait(context.Background()))
	require.True(t, f.Done())
}

// TestStrangersLaunchFails: a wait for something else does not return it.
func TestStrangersLaunchFails(t *testing.T) {
	wrap, fail := failNext()
	r := newRigOver(t, core.PerBlock, sim.Options{}, wrap, nil)
	ts := r.alloc(2)
	h, err := r.gate.Hold(0, ts[:1])
	require.NoError(t, err)
	_, err = r.gate.Hold(0, ts[1:])
	require.NoError(t, err)
	p, err := r.gate.Plan([]loadgate.Holder{h})
	require.NoError(t, err)
	f, err := p.Launch(r.step(100))
	require.NoError(t, err)
	fail(cuda.OpLaunch, 1)
	require.NoError(t, r.gate.Zero(loadgate.ZeroRequest{Tenancies: ts[1:]}))
	require.NoError(t, r.gate.Wait(context.Background(), f))
	info, err := r.gate.Block(0, ts[1].Block)
	require.NoError(t, err)
	require.True(t, info.Dirty, "its zeroing failed, and is still owed")
}

// TestTransferHandedInTwice: it is refused while the gate has it, and what
// became of the first is not touched.
func TestTransferHandedInTwice(t *testing.T) {
	r := newRig(t, core.PerBlock, false, nil)
	ts := r.alloc(1)
	h, err := r.gate.Hold(0, ts)
	require.NoError(t, err)
	tr := r.read(ts)
	first, err := r.gate.Load(h, tr)
	require.NoError(t, err)
	_, err = r.gate.Load(h, tr)
	require.ErrorIs(t, err, core.ErrState)
	require.ErrorContains(t, err, first.String())
	require.NoError(t, first.Wait(context.Background()))
	require.True(t, r.intact(ts))
}

// streamCounter counts the streams that are there.
type streamCounter struct {
	cuda.Device
	open *int
}

func (d streamCounter) NewStream(o cuda.StreamOptions) (cuda.Stream, error) {
	s, err := d.Device.NewStream(o)
	if err == nil {
		*d.open++
	}
	return s, err
}

func (d streamCounter) DestroyStream(s cuda.Stream) error {
	err := d.Device.DestroyStream(s)
	if err == nil {
		*d.open--
	}
	return err
}

// TestCloseAgainAfterAFailure: a Close that could not end a stream of the gate
// says so, and the next one ends it.
func TestCloseAgainAfterAFailure(t *testing.T) {
	wrap, fail := failNext()
	open := 0
	r := newRigOver(t, core.PerBlock, sim.Options{}, func(d *sim.Device) cuda.Device { return streamCounter{wrap(d), &open} }, nil)
	require.Equal(t, 3, open, "the engine's and two of the gate")
	fail(cuda.OpRecord, 1)
	require.ErrorIs(t, r.gate.Close(context.Background()), cuda.ErrOutOfMemory)
	require.Equal(t, 2, open)
	require.NoError(t, r.gate.Close(context.Background()))
	require.Equal(t, 1, open)
	require.NoError(t, r.gate.Close(context.Background()))
}
