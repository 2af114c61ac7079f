package cudatest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// What CUDA forbids while a stream is captured.
var captureBehaviours = []behaviour{
	{name: "capture: begun twice, or ended without one", page: streamPage, one: testCaptureTwice},
	{name: "capture: synchronising a captured stream", page: capturePage, one: testCaptureSyncStream},
	{name: "capture: synchronising the device", page: capturePage, one: testCaptureSync},
	{name: "capture: asking after a captured event", page: capturePage, one: testCapturedEvent},
	{name: "capture: waiting for an event from outside", page: capturePage, one: testCaptureIsolation},
	{name: "capture: two do not become one", page: capturePage, one: testCaptureMerge},
	{name: "capture: a fork that is not joined", page: capturePage, one: testCaptureUnjoined},
	{name: "capture: ended where it was not begun", page: typesPage, one: testCaptureUnmatched},
	{name: "capture: an event recorded outside is an event again", page: capturePage, one: testCaptureEventAgain},
	{name: "capture: other streams go on", page: capturePage, one: testCaptureOthers},
	{name: "capture: work before it is no part of it", page: capturePage, one: testCaptureBefore},
	{name: "capture: a graph is not launched in one", page: typesPage, one: testCaptureLaunch},
	{name: "capture: an event of one that is spoiled", page: capturePage, one: testSpoiledEvent},
	{name: "capture: a batch that refuses it", page: ownPage, one: testCaptureRefused},
	{name: "capture: a command that is refused leaves it unspoiled", page: ownPage, one: testCaptureBadCommand},
}

func (x *graphs) status(s cuda.Stream) cuda.CaptureStatus {
	x.t.Helper()
	st, err := x.g.CaptureStatus(s)
	require.NoError(x.t, err)
	return st
}

// try submits what build adds and returns the error.
func (x *bench) try(build func(b *cuda.Batch)) error {
	var b cuda.Batch
	build(&b)
	return x.Submit(&b)
}

// spoiled checks that the capture of s takes nothing more, and that s works
// once it is ended.
func (x *graphs) spoiled(s cuda.Stream) {
	x.t.Helper()
	p := x.alloc(64)
	require.Equal(x.t, cuda.CaptureInvalidated, x.status(s))
	require.ErrorIs(x.t, x.try(func(b *cuda.Batch) { b.Fill8(s, p, 1, 64) }), cuda.ErrCaptureInvalid)
	_, err := x.g.EndCapture(s)
	require.ErrorIs(x.t, err, cuda.ErrCaptureInvalid)
	x.works(s)
}

// spoils is spoiled where only hardware can say what spoils a capture. It ends the
// capture in either case.
func (x *graphs) spoils(what string, s cuda.Stream) {
	x.t.Helper()
	if x.simulated() {
		x.spoiled(s)
		return
	}
	status := x.status(s)
	x.shows("the capture is spoiled by a "+what, status == cuda.CaptureInvalidated, "%v", status)
	g, err := x.g.EndCapture(s)
	x.answers("end of a capture after a "+what, err)
	if err == nil {
		require.NoError(x.t, x.g.DestroyGraph(g))
	}
	x.works(s)
}

func (x *graphs) works(s cuda.Stream) {
	x.t.Helper()
	p := x.alloc(64)
	require.Equal(x.t, cuda.CaptureNone, x.status(s))
	x.submit(func(b *cuda.Batch) { b.Fill8(s, p, 77, 64) })
	x.sync(s)
	require.Equal(x.t, byte(77), x.read(p, 64)[63])
}

func testCaptureTwice(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s := x.stream()
	require.Equal(t, cuda.CaptureNone, x.status(s))
	_, err := x.g.EndCapture(s)
	require.ErrorIs(t, err, cuda.ErrIllegalState)
	x.begin(s)
	require.Equal(t, cuda.CaptureActive, x.status(s))
	require.ErrorIs(t, x.g.BeginCapture(s, cuda.CaptureRelaxed), cuda.ErrIllegalState)
	require.NoError(t, x.g.DestroyGraph(x.end(s)))
	_, err = x.g.EndCapture(s)
	require.ErrorIs(t, err, cuda.ErrIllegalState)
	x.works(s)
}

func testCaptureSyncStream(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s := x.stream()
	x.begin(s)
	require.ErrorIs(t, x.SyncStream(x.ctx, s), cuda.ErrStreamCapturing)
	x.spoiled(s)
}

func testCaptureSync(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s := x.stream()
	x.begin(s)
	require.ErrorIs(t, x.Sync(x.ctx), cuda.ErrStreamCapturing)
	_, err := x.g.EndCapture(s)
	require.ErrorIs(t, err, cuda.ErrCaptureInvalid)
	x.works(s)
	require.NoError(t, x.Sync(x.ctx))
}

func testCapturedEvent(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, e := x.stream(), x.event()
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.answers("query of an event that is captured", x.Poll([]cuda.Mark{{Event: e}}), cuda.ErrCapturedEvent)
	x.spoils("query of an event that is captured", s)
	x.answers("query of an event whose capture is over", x.Poll([]cuda.Mark{{Event: e}}), cuda.ErrCapturedEvent)
}

func testCaptureIsolation(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, other, e := x.stream(), x.stream(), x.event()
	x.submit(func(b *cuda.Batch) { b.Record(other, e) })
	x.begin(s)
	require.ErrorIs(t, x.try(func(b *cuda.Batch) { b.WaitEvent(s, e) }), cuda.ErrCaptureIsolation)
	x.spoiled(s)
	x.sync(other)
	require.True(t, x.fired(e))
}

func testCaptureMerge(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s1, s2, e := x.stream(), x.stream(), x.event()
	x.begin(s1)
	x.begin(s2)
	x.submit(func(b *cuda.Batch) { b.Record(s1, e) })
	require.ErrorIs(t, x.try(func(b *cuda.Batch) { b.WaitEvent(s2, e) }), cuda.ErrCaptureMerge)
	for _, s := range []cuda.Stream{s1, s2} {
		_, err := x.g.EndCapture(s)
		require.ErrorIs(t, err, cuda.ErrCaptureInvalid)
		x.works(s)
	}
}

func testCaptureUnjoined(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s1, s2, p, e := x.stream(), x.stream(), x.alloc(64), x.event()
	x.begin(s1)
	x.submit(func(b *cuda.Batch) {
		b.Fill8(s1, p, 1, 64)
		b.Record(s1, e)
		b.WaitEvent(s2, e)
		b.Fill8(s2, p, 2, 64)
	})
	_, err := x.g.EndCapture(s1)
	require.ErrorIs(t, err, cuda.ErrCaptureUnjoined)
	x.works(s1)
	x.works(s2)
}

func testCaptureUnmatched(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s1, s2, e := x.stream(), x.stream(), x.event()
	x.begin(s1)
	x.submit(func(b *cuda.Batch) {
		b.Record(s1, e)
		b.WaitEvent(s2, e)
	})
	_, err := x.g.EndCapture(s2)
	require.ErrorIs(t, err, cuda.ErrCaptureUnmatched)
	_, err = x.g.EndCapture(s1)
	// Whether the attempt spoils the capture, or only s2 is not joined, no page says.
	x.answers("end of a capture after an attempt in another of its streams", err, cuda.ErrCaptureInvalid)
	x.works(s1)
	x.works(s2)
}

func testCaptureEventAgain(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, other, e := x.stream(), x.stream(), x.event()
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.submit(func(b *cuda.Batch) { b.Record(other, e) })
	x.sync(other)
	require.True(t, x.fired(e))
	require.NoError(t, x.g.DestroyGraph(x.end(s)))
	x.works(s)
}

func testCaptureOthers(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, other, p, e := x.stream(), x.stream(), x.alloc(64), x.event()
	x.begin(s)
	x.submit(func(b *cuda.Batch) {
		b.Fill8(s, p, 9, 64)
		b.Fill8(other, p, 3, 64)
		b.Record(other, e)
	})
	x.sync(other)
	require.True(t, x.fired(e))
	require.Equal(t, byte(3), x.read(p, 64)[63])
	g := x.end(s)
	require.Equal(t, 1, x.size(g))
	e2 := x.instantiate(g)
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(other, e2) })
	x.sync(other)
	require.Equal(t, byte(9), x.read(p, 64)[63])
}

func testCaptureBefore(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, q := x.stream(), x.alloc(64)
	p := x.busy(s)
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Copy(s, q, p, 64) })
	g := x.end(s)
	require.Equal(t, 1, x.size(g))
	x.sync(s)
	require.Equal(t, words(backlogFills-1), x.read(p+backlogBytes-4, 4))
	require.NoError(t, x.g.DestroyGraph(g))
}

func testCaptureLaunch(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p := x.stream(), x.alloc(64)
	e := x.exec(s, func(b *cuda.Batch) { b.Fill8(s, p, 1, 64) })
	x.begin(s)
	x.answers("launch of a graph into a stream that is captured", x.try(func(b *cuda.Batch) { b.LaunchGraph(s, e) }), cuda.ErrStreamCapturing)
	g, err := x.g.EndCapture(s)
	x.shows("the capture is spoiled by a launch of a graph", err != nil, "%v", err)
	if err == nil {
		require.NoError(t, x.g.DestroyGraph(g))
	}
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) })
	x.sync(s)
	require.Equal(t, byte(1), x.read(p, 64)[63])
}

func testSpoiledEvent(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, other, e := x.stream(), x.stream(), x.event()
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	require.ErrorIs(t, x.SyncStream(x.ctx, s), cuda.ErrStreamCapturing)
	require.Error(t, x.try(func(b *cuda.Batch) { b.WaitEvent(other, e) }))
	require.Equal(t, cuda.CaptureNone, x.status(other), "it has not joined")
	x.spoiled(s)
	x.works(other)
}

func testCaptureRefused(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, other, p := x.stream(), x.stream(), x.alloc(64)
	x.write(p, make([]byte, 64))
	x.begin(s)
	var b cuda.Batch
	b.RefuseCapture()
	b.Fill8(other, p, 1, 64)
	b.Fill8(s, p, 2, 64)
	var se *cuda.SubmitError
	require.ErrorAs(t, d.Submit(&b), &se)
	require.ErrorIs(t, se, cuda.ErrStreamCapturing)
	require.Zero(t, se.Index)
	require.Equal(t, cuda.CaptureActive, x.status(s), "nothing is spoiled")
	x.sync(other)
	require.Equal(t, byte(0), x.read(p, 1)[0], "nothing of it is in")
	g := x.end(s)
	require.Zero(t, x.size(g))
	require.NoError(t, d.Submit(&b))
	x.sync(s)
}

func testCaptureBadCommand(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p, f := x.stream(), x.alloc(64), x.kernel("fill_index")
	x.begin(s)
	x.submit(func(b *cuda.Batch) { b.Fill8(s, p, 1, 64) })
	for _, build := range []func(b *cuda.Batch){
		func(b *cuda.Batch) { b.Fill8(s, 0x1000, 1, 64) },
		func(b *cuda.Batch) { b.Record(s, 0xdead) },
	} {
		require.Error(t, x.try(build))
	}
	require.Equal(t, cuda.CaptureActive, x.status(s))
	// A launch may be refused by the driver.
	bad := x.try(func(b *cuda.Batch) { b.Launch(s, f, cuda.Geometry{}, 12) })
	x.answers("launch of a grid of nothing into a stream that is captured", bad, cuda.ErrInvalidValue)
	status := x.status(s)
	x.shows("the capture goes on after a launch of a grid of nothing", status == cuda.CaptureActive, "%v", status)
	g, err := x.g.EndCapture(s)
	x.answers("end of a capture with a launch of a grid of nothing", err)
	if err == nil {
		require.Equal(t, 1, x.size(g))
	}
}
