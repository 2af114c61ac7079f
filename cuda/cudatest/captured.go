package cudatest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var capturedBehaviours = []behaviour{
	{name: "graph: host functions are called with each launch", page: graphPage, one: testGraphSignal},
	{name: "capture: the legacy stream can not be captured", page: streamPage, one: testCaptureLegacy},
	{name: "capture: the legacy stream while a blocking one is", page: capturePage, one: testLegacyWhileCapturing},
	{name: "capture: the legacy stream while a non-blocking one is", page: capturePage, one: testLegacyBesideCapture},
	{name: "blocking: an event that was captured is not waited for", page: capturePage, one: testSyncCapturedEvent},
	{name: "graph: captured work has no order with the legacy stream", page: capturePage, one: testGraphWithoutLegacy},
}

func testGraphSignal(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	f, s := x.signal(), x.stream()
	g := x.exec(s, func(b *cuda.Batch) { b.Signal(s, f, 0) })
	require.Zero(t, x.count(f), "captured, not called")
	for range 3 {
		x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, g) })
	}
	x.submit(func(b *cuda.Batch) { b.Signal(s, f, 0) })
	x.sync(s)
	require.Equal(t, uint64(4), x.count(f))
	require.NoError(t, d.DestroyHostFunc(f))
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, g) })
	x.sync(s)
}

func testCaptureLegacy(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	l := x.legacy()
	err := x.g.BeginCapture(l, cuda.CaptureRelaxed)
	require.True(t, errors.Is(err, cuda.ErrStreamCapturing) || errors.Is(err, cuda.ErrNotPermitted), "%v", err)
	p := x.busy(l)
	x.sync(l)
	require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
}

func testLegacyWhileCapturing(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, l, e := x.blockingStream(), x.legacy(), x.event()
	x.begin(s)
	x.b.Reset()
	x.b.Record(l, e)
	require.ErrorIs(t, d.Submit(&x.b), cuda.ErrCaptureImplicit)
	x.end(s) // it is not spoiled: who asks whether a stream is captured spoils nothing
	x.submit(func(b *cuda.Batch) { b.Record(l, e) })
	x.sync(l)
}

func testLegacyBesideCapture(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, l, e, p := x.stream(), x.legacy(), x.event(), x.word(0)
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Fill32(s, p, 1, 1) })
	x.submit(func(b *cuda.Batch) { b.Record(l, e) })
	x.instantiate(x.end(s))
	x.sync(l)
	require.True(t, x.fired(e))
}

func testSyncCapturedEvent(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, e := x.stream(), x.event()
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.answers("wait for an event that is captured", d.SyncEvent(x.ctx, e), cuda.ErrCapturedEvent)
	x.spoils("wait for an event that is captured", s)
}

// A blocking stream is captured while the legacy stream is held: what is captured
// does not wait for that, where the graph is launched does. The graph is
// instantiated, and launched a first time, while nothing is held: a driver may
// allocate then.
func testGraphWithoutLegacy(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, o, l, p, e := x.blockingStream(), x.stream(), x.legacy(), x.pinned(64), x.event()
	w, writer := x.word(0), x.stream()
	x.submit(func(b *cuda.Batch) { b.WaitWord(l, w, 1) })
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Fill32(s, p.Device, 1, 1) })
	captured := x.end(s)
	x.submit(func(b *cuda.Batch) { b.WriteWord(writer, w, 1) })
	x.sync(l)
	g := x.instantiate(captured)
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(o, g) })
	x.sync(o)
	p.Word(0).Store(0)
	x.submit(func(b *cuda.Batch) {
		b.WaitWord(l, w, 2)
		b.Record(l, e)
		b.LaunchGraph(o, g)
	})
	x.sync(o)
	require.False(t, x.fired(e))
	require.Equal(t, uint32(1), p.Word(0).Load())
	x.submit(func(b *cuda.Batch) {
		b.LaunchGraph(s, g)
		b.WriteWord(writer, w, 2)
	})
	x.sync(s)
	require.True(t, x.fired(e))
}
