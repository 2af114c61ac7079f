package cudatest

import (
	"errors"
	"maps"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var poolBehaviours = map[string]Behaviour{
	"pool: memory is there behind its allocation":              testPoolUse,
	"pool: a free waits for the work before it":                testPoolFreeLater,
	"pool: another stream uses it behind an event":             testPoolOtherStream,
	"pool: the stream that freed it has it again":              testPoolSameStream,
	"pool: an event lets another stream have it":               testPoolFollowEvents,
	"pool: without an order another stream has other memory":   testPoolNoOrder,
	"pool: what is free for all is used by any stream":         testPoolOpportunistic,
	"pool: synchronising gives back what is above a threshold": testPoolThreshold,
	"pool: trimmed":                              testPoolTrim,
	"pool: destroyed with memory in use":         testPoolDestroyed,
	"pool: freed as other memory is":             testPoolFree,
	"pool: settings and figures":                 testPoolAttributes,
	"pool: what is no memory of a pool":          testPoolBadFree,
	"pool: more than there is":                   testPoolOutOfMemory,
	"pool: nothing is allocated in a capture":    testPoolCapture,
	"pool: allocations at one time are disjoint": testPoolDisjoint,
}

const mallocAsync = driverAPI + "group__CUDA__MALLOC__ASYNC.html"

// poolGuide is where reuse and thresholds are explained.
const poolGuide = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#stream-ordered-memory-allocator"

func init() {
	maps.Copy(pages, map[string]string{
		"pool: memory is there behind its allocation":              mallocAsync,
		"pool: a free waits for the work before it":                mallocAsync,
		"pool: another stream uses it behind an event":             poolGuide,
		"pool: the stream that freed it has it again":              poolGuide,
		"pool: an event lets another stream have it":               poolGuide,
		"pool: without an order another stream has other memory":   poolGuide,
		"pool: what is free for all is used by any stream":         poolGuide,
		"pool: synchronising gives back what is above a threshold": mallocAsync,
		"pool: trimmed":                              mallocAsync,
		"pool: destroyed with memory in use":         mallocAsync,
		"pool: freed as other memory is":             poolGuide,
		"pool: settings and figures":                 mallocAsync,
		"pool: what is no memory of a pool":          mallocAsync,
		"pool: more than there is":                   mallocAsync,
		"pool: nothing is allocated in a capture":    Own,
		"pool: allocations at one time are disjoint": mallocAsync,
	})
}

// pools is a bench whose device allocates in stream order, with a pool of its
// own that keeps what it has.
type pools struct {
	*bench
	a cuda.StreamAllocator
	p cuda.Pool
}

func newPools(t *testing.T, d cuda.Device) *pools {
	t.Helper()
	a, ok := d.(cuda.StreamAllocator)
	if !ok {
		t.Skipf("%s does not allocate in stream order", d.Info().Backend)
	}
	x := &pools{bench: newBench(t, d), a: a}
	var err error
	x.p, err = a.NewPool("test")
	if errors.Is(err, cuda.ErrNotSupported) {
		t.Skipf("%s: %v", d.Info().Backend, err)
	}
	require.NoError(t, err)
	x.set(cuda.PoolReleaseThreshold, math.MaxUint64)
	return x
}

func (x *pools) set(a cuda.PoolAttribute, v uint64) {
	x.t.Helper()
	require.NoError(x.t, x.a.SetPoolAttribute(x.p, a, v))
}

func (x *pools) get(a cuda.PoolAttribute) uint64 {
	x.t.Helper()
	v, err := x.a.PoolAttribute(x.p, a)
	require.NoError(x.t, err)
	return v
}

func (x *pools) take(s cuda.Stream, n uint64) cuda.DevicePtr {
	x.t.Helper()
	p, err := x.a.AllocAsync(s, n, x.p, cuda.AllocOptions{Name: x.t.Name()})
	require.NoError(x.t, err)
	return p
}

func (x *pools) give(s cuda.Stream, p cuda.DevicePtr) {
	x.t.Helper()
	require.NoError(x.t, x.a.FreeAsync(s, p))
}

// large is more than a driver reserves at a time, so that what a pool has
// reserved tells whether memory was used again; and so much that a simulator
// does not write it all.
const large = 80 << 20

func testPoolUse(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s, out, f := x.stream(), x.alloc(4000), x.kernel("fill_index")
	for _, pool := range []cuda.Pool{0, x.p} {
		x.busy(s)
		p, err := x.a.AllocAsync(s, 4000, pool, cuda.AllocOptions{})
		require.NoError(t, err)
		require.Zero(t, p%256)
		x.submit(func(b *cuda.Batch) {
			fillIndex(b, s, f, p, 1000, 9)
			b.Copy(s, out, p, 4000)
		})
		x.give(s, p)
		x.sync(s)
		require.Equal(t, counted(1000, 9), x.read(out, 4000))
		x.write(out, make([]byte, 4000))
	}
}

func testPoolFreeLater(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s, out, e := x.stream(), x.alloc(256), x.event()
	p := x.take(s, backlogBytes)
	release := x.hold(s)
	x.submit(func(b *cuda.Batch) {
		x.backlog(b, s, p)
		b.Copy(s, out, p+backlogBytes-256, 256)
		b.Record(s, e)
	})
	x.give(s, p)
	require.False(t, x.fired(e), "the free has waited")
	release()
	q := x.take(s, backlogBytes) // perhaps the same memory
	x.submit(func(b *cuda.Batch) { b.Fill8(s, q, 0xee, backlogBytes) })
	x.give(s, q)
	x.sync(s)
	require.Equal(t, words(backlogFills-1), x.read(out+252, 4))
}

func testPoolOtherStream(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s1, s2, out := x.stream(), x.stream(), x.alloc(256)
	allocated, used := x.event(), x.event()
	x.busy(s1)
	p := x.take(s1, 256)
	x.submit(func(b *cuda.Batch) {
		b.Record(s1, allocated)
		b.WaitEvent(s2, allocated)
		b.Fill8(s2, p, 5, 256)
		b.Copy(s2, out, p, 256)
		b.Record(s2, used)
		b.WaitEvent(s1, used)
	})
	x.give(s1, p)
	x.sync(s1)
	require.Equal(t, byte(5), x.read(out, 256)[255])
}

func testPoolSameStream(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	x.set(cuda.PoolOpportunistic, 0)
	x.set(cuda.PoolInternalWaits, 0)
	s := x.stream()
	x.busy(s)
	p := x.take(s, large)
	reserved := x.get(cuda.PoolReserved)
	require.GreaterOrEqual(t, reserved, uint64(large))
	for range 3 {
		x.give(s, p)
		p = x.take(s, large)
	}
	require.Equal(t, reserved, x.get(cuda.PoolReserved))
	x.give(s, p)
	x.sync(s)
}

// freed allocates memory in s and frees it behind a backlog. It returns an event
// behind that.
func (x *pools) freed(s cuda.Stream) cuda.Event {
	x.t.Helper()
	e := x.event()
	p := x.take(s, large)
	x.busy(s)
	x.give(s, p)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	return e
}

func testPoolFollowEvents(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	x.set(cuda.PoolOpportunistic, 0)
	x.set(cuda.PoolInternalWaits, 0)
	s1, s2, s3, second := x.stream(), x.stream(), x.stream(), x.event()
	e := x.freed(s1)
	reserved := x.get(cuda.PoolReserved)
	x.submit(func(b *cuda.Batch) {
		b.WaitEvent(s2, e)
		b.Record(s2, second)
	})
	p := x.take(s2, large)
	require.Equal(t, reserved, x.get(cuda.PoolReserved))
	x.submit(func(b *cuda.Batch) { b.Fill8(s2, p, 1, 4096) })
	x.give(s2, p)
	x.submit(func(b *cuda.Batch) {
		b.Record(s2, second)
		b.WaitEvent(s3, second)
	})
	x.give(s3, x.take(s3, large))
	require.Equal(t, reserved, x.get(cuda.PoolReserved))
	require.NoError(t, d.Sync(bg))
}

func testPoolNoOrder(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	x.set(cuda.PoolOpportunistic, 0)
	x.set(cuda.PoolInternalWaits, 0)
	s1, s2 := x.stream(), x.stream()
	e := x.freed(s1)
	reserved := x.get(cuda.PoolReserved)
	p := x.take(s2, large)
	require.Greater(t, x.get(cuda.PoolReserved), reserved)
	x.submit(func(b *cuda.Batch) { b.Fill8(s2, p, 1, 4096) })
	x.give(s2, p)
	x.sync(s2)
	x.sync(s1)
	require.True(t, x.fired(e))
}

func testPoolOpportunistic(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	x.set(cuda.PoolInternalWaits, 0)
	s1, s2 := x.stream(), x.stream()
	x.freed(s1)
	x.sync(s1)
	reserved := x.get(cuda.PoolReserved)
	x.give(s2, x.take(s2, large))
	require.Equal(t, reserved, x.get(cuda.PoolReserved))
	x.sync(s2)
}

func testPoolThreshold(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s := x.stream()
	x.give(s, x.take(s, large))
	x.sync(s)
	require.GreaterOrEqual(t, x.get(cuda.PoolReserved), uint64(large), "it is below the threshold")
	x.set(cuda.PoolReleaseThreshold, 0)
	p := x.take(s, 256)
	x.give(s, p)
	x.sync(s)
	if x.simulated() { // the page has the driver try to
		require.Zero(t, x.get(cuda.PoolReserved))
	}
	require.GreaterOrEqual(t, x.get(cuda.PoolReservedHigh), uint64(large))
}

func testPoolTrim(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s := x.stream()
	p := x.take(s, large)
	x.give(s, x.take(s, large))
	x.sync(s)
	before := x.get(cuda.PoolReserved)
	require.GreaterOrEqual(t, before, uint64(2*large))
	require.NoError(t, x.a.TrimPool(x.p, math.MaxUint64))
	require.Equal(t, before, x.get(cuda.PoolReserved))
	require.NoError(t, x.a.TrimPool(x.p, 0))
	left := x.get(cuda.PoolReserved)
	require.Less(t, left, before)
	require.GreaterOrEqual(t, left, uint64(large), "what is allocated stays")
	x.submit(func(b *cuda.Batch) { b.Fill8(s, p+large-4096, 1, 4096) })
	x.give(s, p)
	x.sync(s)
	require.NoError(t, x.a.TrimPool(x.p, 0))
	require.Zero(t, x.get(cuda.PoolReserved))
}

func testPoolDestroyed(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s, out := x.stream(), x.alloc(256)
	p := x.take(s, 256)
	require.NoError(t, x.a.DestroyPool(x.p))
	x.submit(func(b *cuda.Batch) {
		b.Fill8(s, p, 7, 256)
		b.Copy(s, out, p, 256)
	})
	x.give(s, p)
	x.sync(s)
	require.Equal(t, byte(7), x.read(out, 256)[255])
	require.ErrorIs(t, x.a.DestroyPool(x.p), cuda.ErrInvalidHandle)
	_, err := x.a.AllocAsync(s, 256, x.p, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
}

func testPoolFree(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s := x.stream()
	p := x.take(s, 4096)
	x.submit(func(b *cuda.Batch) { b.Fill8(s, p, 1, 4096) })
	x.sync(s)
	require.Equal(t, byte(1), x.read(p, 4096)[4095])
	require.NoError(t, d.Free(p))
	require.Zero(t, x.get(cuda.PoolUsed))
	require.ErrorIs(t, d.Free(p), cuda.ErrInvalidValue)
	require.ErrorIs(t, x.a.FreeAsync(s, p), cuda.ErrInvalidValue)
	x.give(s, x.take(s, 4096))
	x.sync(s)
}

func testPoolAttributes(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	for _, a := range []cuda.PoolAttribute{cuda.PoolFollowEvents, cuda.PoolOpportunistic, cuda.PoolInternalWaits} {
		require.EqualValues(t, 1, x.get(a), "%v is on from the start", a)
		x.set(a, 0)
		require.Zero(t, x.get(a))
	}
	require.Zero(t, x.get(cuda.PoolUsed))
	require.Zero(t, x.get(cuda.PoolUsedHigh))
	s := x.stream()
	p, q := x.take(s, 1<<20), x.take(s, 1<<20)
	require.GreaterOrEqual(t, x.get(cuda.PoolUsed), uint64(2<<20))
	x.give(s, p)
	x.give(s, q)
	x.sync(s)
	require.Zero(t, x.get(cuda.PoolUsed))
	require.GreaterOrEqual(t, x.get(cuda.PoolUsedHigh), uint64(2<<20))
	x.set(cuda.PoolUsedHigh, 0)
	require.Zero(t, x.get(cuda.PoolUsedHigh))
	require.ErrorIs(t, x.a.SetPoolAttribute(x.p, cuda.PoolUsedHigh, 1), cuda.ErrInvalidValue)
	require.ErrorIs(t, x.a.SetPoolAttribute(x.p, cuda.PoolUsed, 0), cuda.ErrInvalidValue)
	require.ErrorIs(t, x.a.SetPoolAttribute(x.p, 99, 0), cuda.ErrInvalidValue)
	_, err := x.a.PoolAttribute(x.p, 99)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	_, err = x.a.PoolAttribute(0xdead, cuda.PoolUsed)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	require.ErrorIs(t, x.a.TrimPool(0xdead, 0), cuda.ErrInvalidHandle)
	require.ErrorIs(t, x.a.DestroyPool(0), cuda.ErrInvalidValue, "the current pool")
}

func testPoolBadFree(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s := x.stream()
	p := x.take(s, 4096)
	for _, bad := range []cuda.DevicePtr{0, 0x10, p + 256, x.alloc(64)} {
		require.ErrorIs(t, x.a.FreeAsync(s, bad), cuda.ErrInvalidValue)
	}
	require.ErrorIs(t, x.a.FreeAsync(0xdead, p), cuda.ErrInvalidHandle)
	x.give(s, p)
	require.ErrorIs(t, x.a.FreeAsync(s, p), cuda.ErrInvalidValue)
	_, err := x.a.AllocAsync(s, 0, x.p, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	_, err = x.a.AllocAsync(0xdead, 64, x.p, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
	x.sync(s)
}

func testPoolOutOfMemory(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s := x.stream()
	_, err := x.a.AllocAsync(s, d.Info().Memory+1, x.p, cuda.AllocOptions{Name: "too much"})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	x.give(s, x.take(s, 256))
	x.sync(s)
}

func testPoolCapture(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	g := newGraphs(t, d)
	s := x.stream()
	p := x.take(s, 256)
	g.begin(s)
	_, err := x.a.AllocAsync(s, 256, x.p, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrStreamCapturing)
	require.ErrorIs(t, x.a.FreeAsync(s, p), cuda.ErrStreamCapturing)
	require.Equal(t, cuda.CaptureActive, g.status(s))
	x.submit(func(b *cuda.Batch) { b.Fill8(s, p, 3, 256) })
	e := g.instantiate(g.end(s))
	x.submit(func(b *cuda.Batch) { b.LaunchGraph(s, e) })
	x.sync(s)
	require.Equal(t, byte(3), x.read(p, 256)[255], "memory of a pool is used in graphs as any is")
	x.give(s, p)
	x.sync(s)
}

func testPoolDisjoint(t *testing.T, d cuda.Device) {
	x := newPools(t, d)
	s1, s2 := x.stream(), x.stream()
	end := map[cuda.DevicePtr]uint64{}
	for i, n := range []uint64{1, 255, 256, 257, 4096, 1 << 20, 256, 100_000} {
		p := x.take([]cuda.Stream{s1, s2}[i%2], n)
		for q, m := range end {
			require.False(t, p < q+cuda.DevicePtr(m) && q < p+cuda.DevicePtr(n), "%d bytes overlap %d", n, m)
		}
		end[p] = n
	}
	require.NoError(t, d.Sync(bg))
	for p := range end {
		x.give(s1, p)
	}
	x.sync(s1)
}
