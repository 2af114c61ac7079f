package cudatest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var legacyBehaviours = []behaviour{
	{name: "legacy: waits for earlier work of blocking streams", page: streamSyncPage, one: testLegacyWaits},
	{name: "legacy: later work of blocking streams waits for it", page: streamSyncPage, one: testBlockingWaitsForLegacy},
	{name: "legacy: does not wait for non-blocking streams", page: streamSyncPage, one: testLegacyIgnoresNonBlocking},
	{name: "legacy: non-blocking streams do not wait for it", page: streamSyncPage, one: testNonBlockingIgnoresLegacy},
	{name: "legacy: orders the blocking streams among each other", page: streamSyncPage, one: testLegacyOrdersOthers},
	{name: "legacy: blocking streams have no order without it", page: streamSyncPage, one: testBlockingWithoutLegacy},
	{name: "legacy: synchronising with it waits for blocking ones", page: streamSyncPage, one: testSyncLegacy},
	{name: "legacy: synchronising with a blocking stream includes it", page: streamSyncPage, one: testSyncBlocking},
	{name: "legacy: adopted twice, and let go of", page: ownPage, one: testLegacyHandles},
}

func (x *bench) legacy() cuda.Stream {
	x.t.Helper()
	s, err := x.LegacyStream()
	require.NoError(x.t, err)
	return s
}

func (x *bench) blockingStream() cuda.Stream {
	x.t.Helper()
	s, err := x.NewStream(cuda.StreamOptions{Blocking: true})
	require.NoError(x.t, err)
	return s
}

// last is what a backlog leaves in its last word.
func last() []byte { return words(backlogFills - 1) }

func testLegacyWaits(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, l, q := x.blockingStream(), x.legacy(), x.alloc(64)
	p := x.busy(s)
	x.submit(func(b *cuda.Batch) { b.Copy(l, q, p+backlogBytes-4, 4) })
	x.sync(l)
	require.Equal(t, last(), x.read(q, 4))
}

func testBlockingWaitsForLegacy(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, l, q := x.blockingStream(), x.legacy(), x.alloc(64)
	p := x.busy(l)
	x.submit(func(b *cuda.Batch) { b.Copy(s, q, p+backlogBytes-4, 4) })
	x.sync(s)
	require.Equal(t, last(), x.read(q, 4))
}

// overtakes has s busy, and requires that work in o is over before.
func (x *bench) overtakes(s, o cuda.Stream) {
	x.t.Helper()
	p, busy, done := x.alloc(64), x.event(), x.event()
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) {
		b.Record(s, busy)
		b.Fill8(o, p, 3, 64)
		b.Record(o, done)
	})
	x.fires(done)
	x.unfired(busy, "work in one stream waited for the other")
	release()
	x.sync(s)
}

func testLegacyIgnoresNonBlocking(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	x.overtakes(x.stream(), x.legacy())
}

func testNonBlockingIgnoresLegacy(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	x.overtakes(x.legacy(), x.stream())
}

func testBlockingWithoutLegacy(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	x.overtakes(x.blockingStream(), x.blockingStream())
}

// What is in the legacy stream comes behind the first stream's work and before
// the second one's, be it no more than a mark.
func testLegacyOrdersOthers(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, l, q, e := x.blockingStream(), x.blockingStream(), x.legacy(), x.alloc(64), x.event()
	p := x.busy(s1)
	x.submit(func(b *cuda.Batch) {
		b.Record(l, e)
		b.Copy(s2, q, p+backlogBytes-4, 4)
	})
	x.sync(s2)
	require.True(t, x.fired(e))
	require.Equal(t, last(), x.read(q, 4))
}

func testSyncLegacy(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, l, e := x.blockingStream(), x.legacy(), x.event()
	x.busy(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.sync(l)
	require.True(t, x.fired(e))
}

func testSyncBlocking(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, l, e := x.blockingStream(), x.legacy(), x.event()
	x.busy(l)
	x.submit(func(b *cuda.Batch) { b.Record(l, e) })
	x.sync(s)
	require.True(t, x.fired(e))
}

func testLegacyHandles(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	l1, l2, e := x.legacy(), x.legacy(), x.event()
	require.NotZero(t, l1)
	require.NotZero(t, l2)
	p := x.busy(l1)
	require.NoError(t, d.DestroyStream(l1))
	require.ErrorIs(t, d.DestroyStream(l1), cuda.ErrInvalidHandle)
	x.submit(func(b *cuda.Batch) { b.Record(l2, e) })
	x.sync(l2)
	require.True(t, x.fired(e))
	require.Equal(t, last(), x.read(p+backlogBytes-4, 4))
}
