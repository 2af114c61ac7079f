package cudatest

import (
	"errors"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// held keeps s from going on until the host calls release, and has it busy then.
// It returns the bytes that it works on. However fast the device is and slow the
// host, what is submitted to s meanwhile stays pending; and nothing may be
// allocated, nor anything else be done for which a device waits for its streams.
// Where a device's streams wait for no words, only the work holds s up.
func (x *bench) held(s cuda.Stream) (p cuda.DevicePtr, release func()) {
	x.t.Helper()
	p = x.alloc(backlogBytes)
	release = x.hold(s)
	x.submit(func(b *cuda.Batch) { x.backlog(b, s, p) })
	return p, release
}

// unfired requires that an event has not fired whose stream is held, because of
// what would have gone wrong. Where only work holds streams up, a device that is
// fast beside its host may be done with that: then nothing is required of
// hardware.
func (x *bench) unfired(e cuda.Event, wrong string) {
	x.t.Helper()
	if *x.byWord || x.simulated() {
		require.False(x.t, x.fired(e), wrong)
	}
}

// hold is held without work. Where streams wait for no words it does nothing.
func (x *bench) hold(s cuda.Stream) (release func()) {
	x.t.Helper()
	release, *x.byWord = Hold(x.t, x.Device, s)
	return release
}

// Hold keeps a stream from going on until release is called or the test ends, so
// that a test can rely on work that is pending without knowing how fast the
// machine is. Until then nothing may be allocated on the device, nor anything
// else be done for which a device waits for its streams. If the device's streams
// can't wait for words, nothing is held, and held is false.
func Hold(t testing.TB, d cuda.Device, s cuda.Stream) (release func(), held bool) {
	t.Helper()
	w, err := d.AllocPinned(64, cuda.AllocOptions{Name: "what " + t.Name() + " holds a stream by"})
	if errors.Is(err, cuda.ErrNotSupported) {
		return func() {}, false
	}
	require.NoError(t, err)
	w.Word(0).Store(0)
	var b cuda.Batch
	b.WaitWord(s, w.Device, 1)
	if err := d.Submit(&b); errors.Is(err, cuda.ErrNotSupported) {
		return func() {}, false
	} else {
		require.NoError(t, err)
	}
	release = sync.OnceFunc(func() { w.Word(0).Store(1) })
	t.Cleanup(release) // no device is closed before
	return release, true
}
