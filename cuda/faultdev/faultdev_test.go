package faultdev_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

func open(t *testing.T) *sim.Device {
	d, err := sim.New(sim.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

func TestWithoutFaultsItIsTheDevice(t *testing.T) {
	cudatest.Run(t, func(t *testing.T) cuda.Device {
		d, err := sim.New(sim.Options{Shareable: true})
		require.NoError(t, err)
		return faultdev.Wrap(d, func(faultdev.Call) error { return nil })
	})
}

func TestPairsWithoutFaultsAreTheDevices(t *testing.T) {
	cudatest.RunPairs(t, func(t *testing.T) (a, b cuda.Device) {
		w := vtime.NewVirtual(vtime.Options{})
		t.Cleanup(func() { require.NoError(t, w.Close()) })
		open := func() cuda.Device {
			d, err := sim.New(sim.Options{World: w})
			require.NoError(t, err)
			return faultdev.Wrap(d, func(faultdev.Call) error { return nil })
		}
		return open(), open()
	})
}

func TestCommandsBeforeTheFaultGetIn(t *testing.T) {
	d := open(t)
	boom := &cuda.Error{Code: cuda.ErrLaunchResources, Op: "record"}
	x := faultdev.Wrap(d, func(c faultdev.Call) error {
		if c.Op == cuda.OpRecord && c.Count == 2 {
			return boom
		}
		return nil
	})
	s1, err := x.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	s2, err := x.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	e, err := x.NewEvent()
	require.NoError(t, err)
	p, err := x.Alloc(256, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, x.Write(p, make([]byte, 256)))
	var b cuda.Batch
	b.Fill8(s1, p, 1, 16)
	b.Record(s1, e)
	b.Fill8(s2, p+16, 2, 16)
	b.Record(s2, e)
	b.Fill8(s2, p+32, 3, 16)
	err = x.Submit(&b)
	var se *cuda.SubmitError
	require.ErrorAs(t, err, &se)
	require.Equal(t, &cuda.SubmitError{Index: 3, Op: cuda.OpRecord, Done: []int{2, 1}, Err: boom}, se)
	require.ErrorIs(t, err, cuda.ErrLaunchResources)
	require.NoError(t, x.Sync(bg), "not sticky")
	got := make([]byte, 48)
	require.NoError(t, x.Read(got, p))
	require.Equal(t, []byte{1, 2, 0}, []byte{got[0], got[16], got[32]})
	require.NoError(t, x.Submit(&b), "the third record is let through")
}

func TestAnErrorBeforeTheFaultIsTheDevices(t *testing.T) {
	d := open(t)
	x := faultdev.Wrap(d, func(c faultdev.Call) error {
		if c.Index == 1 {
			return errors.New("never seen")
		}
		return nil
	})
	s, err := x.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	var b cuda.Batch
	b.Record(s, 0xdead)
	b.Record(s, 0xdead)
	var se *cuda.SubmitError
	require.ErrorAs(t, x.Submit(&b), &se)
	require.Equal(t, 0, se.Index)
	require.ErrorIs(t, se, cuda.ErrInvalidHandle)
}

func TestStickyFaultKillsTheWrapper(t *testing.T) {
	d := open(t)
	sticky := &cuda.Error{Code: cuda.ErrECC, Op: "poll"}
	x := faultdev.Wrap(d, func(c faultdev.Call) error {
		if c.Method == "Poll" && c.Count == 2 {
			return sticky
		}
		return nil
	})
	w, ok := x.(cuda.Watcher)
	require.True(t, ok)
	require.NoError(t, x.Poll(nil))
	before := w.Activity()
	require.Equal(t, sticky, x.Poll(nil))
	require.NotEqual(t, before, w.Activity())
	_, err := x.NewEvent()
	require.Equal(t, sticky, err)
	require.Equal(t, sticky, x.Sync(bg))
	require.Equal(t, sticky, x.Submit(&cuda.Batch{}))
	require.NoError(t, d.Poll(nil), "the device below lives on")
}

// Each method that can fail asks under its own name.
func TestEveryMethodCanFail(t *testing.T) {
	d := open(t)
	boom := errors.New("boom")
	var asked string
	x := faultdev.Wrap(d, func(c faultdev.Call) error { asked = c.Method; return boom })
	for name, call := range map[string]func() error{
		"Alloc":         func() error { _, err := x.Alloc(1, cuda.AllocOptions{}); return err },
		"Free":          func() error { return x.Free(0) },
		"AllocPinned":   func() error { _, err := x.AllocPinned(1, cuda.AllocOptions{}); return err },
		"FreePinned":    func() error { return x.FreePinned(cuda.PinnedBuffer{}) },
		"AllocRange":    func() error { _, _, err := x.AllocRange(0); return err },
		"Read":          func() error { return x.Read(nil, 0) },
		"Write":         func() error { return x.Write(0, nil) },
		"LoadModule":    func() error { _, err := x.LoadModule(nil); return err },
		"UnloadModule":  func() error { return x.UnloadModule(0) },
		"Function":      func() error { _, err := x.Function(0, ""); return err },
		"NewStream":     func() error { _, err := x.NewStream(cuda.StreamOptions{}); return err },
		"DestroyStream": func() error { return x.DestroyStream(0) },
		"NewEvent":      func() error { _, err := x.NewEvent(); return err },
		"DestroyEvent":  func() error { return x.DestroyEvent(0) },
		"Submit":        func() error { return x.Submit(&cuda.Batch{}) },
		"Poll":          func() error { return x.Poll(nil) },
		"SyncStream":    func() error { return x.SyncStream(bg, 0) },
		"Sync":          func() error { return x.Sync(bg) },
	} {
		require.Equal(t, boom, call(), name)
		require.Equal(t, name, asked)
	}
	require.NoError(t, d.Sync(bg))
}

func TestNoBatchIsTheDevicesToRefuse(t *testing.T) {
	asked := ""
	x := faultdev.Wrap(open(t), func(c faultdev.Call) error { asked = c.Method; return nil })
	require.ErrorIs(t, x.Submit(nil), cuda.ErrInvalidValue)
	require.Equal(t, "Submit", asked)
}

// all calls the methods of the optional interfaces, and returns their errors.
func all(d cuda.Device) map[string]error {
	errs := map[string]error{}
	_, errs["ExportMemory"] = d.(cuda.IPC).ExportMemory(0x10)
	_, errs["OpenMemory"] = d.(cuda.IPC).OpenMemory(cuda.MemoryHandle{})
	errs["CloseMemory"] = d.(cuda.IPC).CloseMemory(0x10)
	_, errs["AllocManaged"] = d.(cuda.Managed).AllocManaged(0, cuda.AllocOptions{})
	errs["FreeManaged"] = d.(cuda.Managed).FreeManaged(cuda.ManagedBuffer{Device: 0x10})
	_, errs["RegisterHost"] = d.(cuda.HostMemory).RegisterHost(nil)
	errs["UnregisterHost"] = d.(cuda.HostMemory).UnregisterHost(cuda.PinnedBuffer{Device: 0x10})
	errs["CopyIn"] = d.(cuda.HostMemory).CopyIn(0x10, 0x10, nil)
	_, errs["CanAccess"] = d.(cuda.Peers).CanAccess(nil)
	errs["EnableAccess"] = d.(cuda.Peers).EnableAccess(d)
	errs["DisableAccess"] = d.(cuda.Peers).DisableAccess(d)
	_, errs["ImportEvent"] = d.(cuda.Peers).ImportEvent(d, 0x10)
	errs["CopyOut"] = d.(cuda.HostMemory).CopyOut(0x10, nil, 0x10)
	return errs
}

func TestOptionalInterfaces(t *testing.T) {
	d, err := sim.New(sim.Options{})
	require.NoError(t, err)
	var failing string
	f := faultdev.Wrap(d, func(c faultdev.Call) error {
		if c.Method == failing {
			return cuda.ErrOutOfMemory
		}
		return nil
	})
	defer func() { require.NoError(t, f.Close()) }()
	want := all(d)
	require.Equal(t, want, all(f), "passed on")
	for failing = range want {
		for method, err := range all(f) {
			require.Equal(t, method == failing, errors.Is(err, cuda.ErrOutOfMemory), "%s: %v", method, err)
		}
	}
	bare := faultdev.Wrap(struct{ cuda.Device }{d}, func(faultdev.Call) error { return nil })
	for method, err := range all(bare) {
		require.ErrorIs(t, err, cuda.ErrNotSupported, method)
	}
}
