package cudatest

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var graphBehaviours = []behaviour{
	{name: "graph: captured work runs when it is launched", page: capturePage, one: testGraphRuns},
	{name: "graph: every mode captures", page: streamPage, one: testCaptureModes},
	{name: "graph: keeps its place in the stream", page: graphPage, one: testGraphOrder},
	{name: "graph: launches of one run one after the other", page: graphPage, one: testGraphSerial},
	{name: "graph: streams fork and join", page: capturePage, one: testGraphFork},
	{name: "graph: its end is that of every branch", page: capturePage, one: testGraphBranches},
	{name: "graph: arguments are taken when it is captured", page: graphPage, one: testGraphArguments},
	{name: "graph: memory is read when it runs", page: graphPage, one: testGraphReadsLate},
	{name: "graph: nothing captured", page: graphPage, one: testEmptyGraph},
	{name: "graph: several of one capture's graph", page: graphPage, one: testGraphTwice},
	{name: "graph: handles end, launches go on", page: graphPage, one: testGraphHandles},
	{name: "graph: unknown handles", page: graphPage, one: testUnknownGraph},
}

// graphs is a bench whose device captures streams.
type graphs struct {
	*bench
	g cuda.Grapher
}

func newGraphs(t *testing.T, d cuda.Device) *graphs {
	t.Helper()
	g, ok := d.(cuda.Grapher)
	if !ok {
		t.Skipf("%s captures no streams", d.Info().Backend)
	}
	return &graphs{newBench(t, d), g}
}

func (x *graphs) begin(s cuda.Stream) {
	x.t.Helper()
	require.NoError(x.t, x.g.BeginCapture(s, cuda.CaptureRelaxed))
}

func (x *graphs) end(s cuda.Stream) cuda.Graph {
	x.t.Helper()
	g, err := x.g.EndCapture(s)
	require.NoError(x.t, err)
	return g
}

// exec captures what build submits in s, and returns it instantiated.
func (x *graphs) exec(s cuda.Stream, build func(b *cuda.Batch)) cuda.GraphExec {
	x.t.Helper()
	x.begin(s)
	x.submit(build)
	return x.instantiate(x.end(s))
}

func (x *graphs) instantiate(g cuda.Graph) cuda.GraphExec {
	x.t.Helper()
	e, err := x.g.Instantiate(g)
	require.NoError(x.t, err)
	require.NoError(x.t, x.g.DestroyGraph(g))
	return e
}

func (x *graphs) size(g cuda.Graph) int {
	x.t.Helper()
	n, err := x.g.GraphSize(g)
	require.NoError(x.t, err)
	return n
}

func testGraphRuns(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p, q := x.stream(), x.alloc(4000), x.alloc(4000)
	fill, copied := x.kernel("fill_index"), x.kernel("copy_words")
	x.write(p, make([]byte, 4000))
	x.write(q, make([]byte, 4000))
	x.begin(s)
	x.submit(func(b *cuda.Batch) {
		fillIndex(b, s, fill, p, 1000, 5)
		copyWords(b, s, copied, q, p, 500)
	})
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, q+2000, p+2000, 1000)
		b.Fill32(s, q+3000, 9, 250)
	})
	g := x.end(s)
	require.Equal(t, 4, x.size(g))
	x.sync(s)
	require.Equal(t, make([]byte, 4000), x.read(p, 4000), "captured work has run")
	e := x.instantiate(g)
	x.sync(s)
	require.Equal(t, make([]byte, 4000), x.read(p, 4000), "an instantiated graph has run")
	for range 2 {
		x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) })
		x.sync(s)
		want := counted(750, 5)
		for range 250 {
			want = append(want, 9, 0, 0, 0)
		}
		require.Equal(t, counted(1000, 5), x.read(p, 4000))
		require.Equal(t, want, x.read(q, 4000))
		x.write(p, make([]byte, 4000))
		x.write(q, make([]byte, 4000))
	}
}

func testCaptureModes(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	runtime.LockOSThread() // global and thread-local captures end where they began
	defer runtime.UnlockOSThread()
	s, p := x.stream(), x.alloc(64)
	for i, mode := range []cuda.CaptureMode{cuda.CaptureGlobal, cuda.CaptureThreadLocal, cuda.CaptureRelaxed} {
		require.NoError(t, x.g.BeginCapture(s, mode))
		x.submit(func(b *cuda.Batch) { b.Fill8(s, p, byte(i), 64) })
		e := x.instantiate(x.end(s))
		x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) })
		x.sync(s)
		require.Equal(t, byte(i), x.read(p, 64)[63], "%v", mode)
	}
	require.ErrorIs(t, x.g.BeginCapture(s, 7), cuda.ErrInvalidValue)
}

func testGraphOrder(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p := x.stream(), x.alloc(backlogBytes)
	dst, after := x.alloc(64), x.alloc(64)
	e := x.exec(s, func(b *cuda.Batch) { b.Copy(s, dst, p+backlogBytes-64, 64) })
	behind := x.event()
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) }) // the first may allocate
	x.sync(s)
	release := x.hold(s)
	x.submit(func(b *cuda.Batch) {
		x.backlog(b, s, p)
		b.LaunchGraph(s, e)
		b.Copy(s, after, dst, 64)
		b.Record(s, behind)
	})
	x.unfired(behind, "the stream is held")
	release()
	x.sync(s)
	require.True(t, x.fired(behind))
	require.Equal(t, words(backlogFills-1), x.read(dst, 4), "the graph ran before what was in the stream")
	require.Equal(t, words(backlogFills-1), x.read(after, 4), "what follows ran before the graph")
}

// The graph moves a row of words by one place, by way of a second row, so that
// runs at the same time would spoil it.
func testGraphSerial(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	const n = 1 << 16
	s1, s2, p, q := x.stream(), x.stream(), x.alloc(n), x.alloc(n)
	start := pattern(n, 3)
	x.write(p, start)
	e := x.exec(s1, func(b *cuda.Batch) {
		b.Copy(s1, q, p, n)
		b.Copy(s1, p+4, q, n-4)
	})
	x.submit(func(b *cuda.Batch) {
		for range 4 {
			b.LaunchGraph(s1, e)
			b.LaunchGraph(s2, e)
		}
		b.LaunchGraph(s2, e)
	})
	x.sync(s1)
	x.sync(s2)
	want := append([]byte(nil), start...)
	for range 9 {
		copy(want[4:], append([]byte(nil), want[:n-4]...))
	}
	require.Equal(t, want, x.read(p, n))
}

func testGraphFork(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s1, s2, s3 := x.stream(), x.stream(), x.stream()
	forked, left, right := x.event(), x.event(), x.event()
	p, q, r := x.alloc(backlogBytes), x.alloc(256), x.alloc(256)
	x.begin(s1)
	x.submit(func(b *cuda.Batch) {
		x.backlog(b, s1, p)
		b.Record(s1, forked)
		b.WaitEvent(s2, forked)
		b.WaitEvent(s3, forked)
		b.Copy(s2, q, p+backlogBytes-128, 128)
		b.Copy(s3, q+128, p+backlogBytes-128, 128)
		b.Record(s2, left)
		b.Record(s3, right)
	})
	for _, s := range []cuda.Stream{s1, s2, s3} {
		st, err := x.g.CaptureStatus(s)
		require.NoError(t, err)
		require.Equal(t, cuda.CaptureActive, st)
	}
	x.submit(func(b *cuda.Batch) {
		b.WaitEvent(s1, left)
		b.WaitEvent(s1, right)
		b.Copy(s1, r, q, 256)
	})
	g := x.end(s1)
	require.Equal(t, backlogFills+3, x.size(g), "records and waits are no nodes")
	e := x.instantiate(g)
	for _, s := range []cuda.Stream{s1, s2, s3} {
		st, err := x.g.CaptureStatus(s)
		require.NoError(t, err)
		require.Equal(t, cuda.CaptureNone, st)
	}
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s2, e) })
	x.sync(s2)
	for _, off := range []cuda.DevicePtr{0, 128} {
		require.Equal(t, words(backlogFills-1), x.read(r+off, 4))
	}
}

// One branch is long, the other one short: the graph's end is that of both.
func testGraphBranches(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s1, s2, forked, joined := x.stream(), x.stream(), x.event(), x.event()
	p, q := x.alloc(backlogBytes), x.alloc(64)
	e := x.exec(s1, func(b *cuda.Batch) {
		b.Record(s1, forked)
		b.WaitEvent(s2, forked)
		b.Fill8(s2, q, 1, 64)
		b.Record(s2, joined)
		x.backlog(b, s1, p)
		b.WaitEvent(s1, joined)
	})
	x.write(q, make([]byte, 64))
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s1, e) })
	x.sync(s1)
	require.Equal(t, byte(1), x.read(q, 64)[63])
	require.Equal(t, words(backlogFills-1), x.read(p+backlogBytes-4, 4), "the end of the graph is that of all branches")
}

func testGraphArguments(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p, f := x.stream(), x.alloc(400), x.kernel("fill_index")
	x.begin(s)
	var b cuda.Batch
	fillIndex(&b, s, f, p, 100, 7)
	require.NoError(t, d.Submit(&b))
	clear(b.Arena())
	e := x.instantiate(x.end(s))
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) })
	x.sync(s)
	require.Equal(t, counted(100, 7), x.read(p, 400))
}

func testGraphReadsLate(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p, q, f := x.stream(), x.alloc(4000), x.alloc(4000), x.kernel("copy_words")
	e := x.exec(s, func(b *cuda.Batch) { copyWords(b, s, f, q, p, 1000) })
	for i := range byte(3) {
		x.write(p, pattern(4000, i))
		x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) })
		x.sync(s)
		require.Equal(t, pattern(4000, i), x.read(q, 4000))
	}
}

func testEmptyGraph(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, fired := x.stream(), x.event()
	x.begin(s)
	g := x.end(s)
	require.Zero(t, x.size(g))
	e := x.instantiate(g)
	x.submit(func(b *cuda.Batch) {
		b.LaunchGraph(s, e)
		b.Record(s, fired)
	})
	x.sync(s)
	require.True(t, x.fired(fired))
}

func testGraphTwice(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s1, s2, p := x.stream(), x.stream(), x.alloc(64)
	x.begin(s1)
	x.submit(func(b *cuda.Batch) { b.Fill8(s1, p, 4, 64) })
	g := x.end(s1)
	e1, err := x.g.Instantiate(g)
	require.NoError(t, err)
	e2, err := x.g.Instantiate(g)
	require.NoError(t, err)
	require.NotEqual(t, e1, e2)
	x.submit(func(b *cuda.Batch) {
		b.LaunchGraph(s1, e1)
		b.LaunchGraph(s2, e2)
	})
	x.sync(s1)
	x.sync(s2)
	require.Equal(t, byte(4), x.read(p, 1)[0])
}

func testGraphHandles(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s, p, e := x.stream(), x.alloc(backlogBytes), x.event()
	g := x.exec(s, func(b *cuda.Batch) { x.backlog(b, s, p) }) // whose graph is gone
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, g) })      // the first may allocate
	x.sync(s)
	release := x.hold(s)
	x.submit(func(b *cuda.Batch) {
		b.LaunchGraph(s, g)
		b.Record(s, e)
	})
	require.NoError(t, x.g.DestroyGraphExec(g))
	x.unfired(e, "the stream is held")
	release()
	x.sync(s)
	require.Equal(t, words(backlogFills-1), x.read(p+backlogBytes-4, 4))
	var b cuda.Batch
	b.LaunchGraph(s, g)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidHandle)
}

func testUnknownGraph(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	s := x.stream()
	for _, h := range []uint64{0, 0xdead, uint64(s)} {
		require.ErrorIs(t, x.g.DestroyGraph(cuda.Graph(h)), cuda.ErrInvalidHandle)
		require.ErrorIs(t, x.g.DestroyGraphExec(cuda.GraphExec(h)), cuda.ErrInvalidHandle)
		_, err := x.g.Instantiate(cuda.Graph(h))
		require.ErrorIs(t, err, cuda.ErrInvalidHandle)
		_, err = x.g.GraphSize(cuda.Graph(h))
		require.ErrorIs(t, err, cuda.ErrInvalidHandle)
		var b cuda.Batch
		b.LaunchGraph(s, cuda.GraphExec(h))
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidHandle)
	}
	for _, h := range []cuda.Stream{0, 0xdead} {
		require.ErrorIs(t, x.g.BeginCapture(h, cuda.CaptureRelaxed), cuda.ErrInvalidHandle)
		_, err := x.g.EndCapture(h)
		require.ErrorIs(t, err, cuda.ErrInvalidHandle)
		_, err = x.g.CaptureStatus(h)
		require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	}
}
