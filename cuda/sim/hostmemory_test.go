package sim

import (
	"errors"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// touched reports whether an access of the host's gets through; one that does
// not is a fault.
func touched(fn func()) (ok bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			var fault runtime.Error
			if err, is := r.(error); !is || !errors.As(err, &fault) {
				panic(r)
			}
		}
	}()
	fn()
	return true
}

func TestHostFaultsOnManagedMemoryThatADeviceWorksOn(t *testing.T) {
	r := newRig(t, Options{ExclusiveManaged: true})
	require.False(t, r.Info().ConcurrentManaged)
	first, err := r.AllocManaged(8192, cuda.AllocOptions{Name: "first"})
	require.NoError(t, err)
	s, e, f := r.stream("s"), r.event(), r.storeKernel()
	var seen byte
	read := func(b cuda.ManagedBuffer) bool { return touched(func() { seen = b.Host[0] }) }
	write := func(b cuda.ManagedBuffer) bool { return touched(func() { b.Host[100] = 5 }) }
	require.True(t, read(first) && write(first))

	backlog := r.allocScaled("backlog", 1<<20, 256)
	launch := func() {
		r.submit(func(b *cuda.Batch) {
			b.Fill8(s, backlog, 1, 1<<20)
			store(b, s, f, first.Device, 4, 3)
			b.Record(s, e)
		})
	}
	launch()
	require.False(t, read(first))
	require.False(t, write(first))
	second, err := r.AllocManaged(4096, cuda.AllocOptions{Name: "second"})
	require.NoError(t, err)
	require.False(t, read(second), "any managed memory at all")
	require.NoError(t, r.Poll([]cuda.Mark{{Event: e}}))
	require.False(t, read(first), "asked, and told that it is not over")

	require.NoError(t, r.SyncStream(bg, s))
	require.Equal(t, []byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0xff}, first.Host[:13])
	require.True(t, write(first) && write(second))

	launch()
	require.NoError(t, r.world.Sleep(bg, time.Second))
	require.False(t, read(first), "over, but nobody has asked")
	require.NoError(t, r.Poll([]cuda.Mark{{Event: e}}))
	require.True(t, read(first) && write(second))

	launch()
	require.NoError(t, r.FreeManaged(second), "it waits")
	require.True(t, read(first))
	require.Equal(t, byte(5), r.read(first.Device+100, 1)[0])
	r.submit(func(b *cuda.Batch) { b.Fill8(s, first.Device, 0, 10) })
	require.True(t, read(first), "fills and copies are no launches")
	_ = seen
}

// A graph is a launch, also while it is behind other work.
func TestHostFaultsOnManagedMemoryThatAGraphWorksOn(t *testing.T) {
	r := newRig(t, Options{ExclusiveManaged: true})
	m, err := r.AllocManaged(4096, cuda.AllocOptions{Name: "m"})
	require.NoError(t, err)
	s, e, f := r.stream("s"), r.event(), r.storeKernel()
	x := r.capture(s, func(b *cuda.Batch) { store(b, s, f, m.Device, 4, 3) })
	read := func() bool { return touched(func() { m.Host[100] = m.Host[0] }) }
	require.True(t, read(), "captured, not launched")
	backlog := r.allocScaled("backlog", 1<<20, 256)
	r.submit(func(b *cuda.Batch) {
		b.Fill8(s, backlog, 1, 1<<20)
		b.LaunchGraph(s, x)
		b.Record(s, e)
	})
	require.False(t, read())
	require.NoError(t, r.Poll([]cuda.Mark{{Event: e}}))
	require.False(t, read(), "asked, and told that it is not over")
	require.NoError(t, r.SyncStream(bg, s))
	require.True(t, read())
	require.Equal(t, byte(1), m.Host[0])
}

func TestManagedMemoryBesideTheDevice(t *testing.T) {
	r := newRig(t, Options{Memory: 4096})
	require.True(t, r.Info().ConcurrentManaged)
	m, err := r.AllocManaged(1<<20, cuda.AllocOptions{})
	require.NoError(t, err, "it may be larger than the device's memory")
	s, f := r.stream("s"), r.storeKernel()
	r.submit(func(b *cuda.Batch) { store(b, s, f, m.Device, 4, 1) })
	require.True(t, touched(func() { m.Host[1<<19] = 1 }))
	require.NoError(t, r.Sync(bg))
}

// A copy from pinned memory reads its source piece by piece, as it runs; one from
// pageable memory has read it when the call returns, for which the host pays.
func TestPinnedSourcesAreTornAndPageableOnesAreNot(t *testing.T) {
	const n = 1 << 20
	r := newRig(t, Options{})
	s, p, q := r.stream("s"), r.alloc("p", n), r.alloc("q", n)
	h := r.pinned("h", n)
	copy(h.Host, make([]byte, n))
	src := make([]byte, n)

	begin := r.world.Now()
	require.NoError(t, r.CopyIn(s, q, src))
	require.GreaterOrEqual(t, r.world.Now()-begin, r.costs.HostCopy)
	require.NoError(t, r.SyncStream(bg, s))
	r.submit(func(b *cuda.Batch) { b.Copy(s, p, h.Device, n) })
	require.NoError(t, r.CopyIn(s, q, src))
	// Half of the first copy later.
	require.NoError(t, r.SyncStream(bg, s))
	r.submit(func(b *cuda.Batch) { b.Copy(s, p, h.Device, n) })
	require.NoError(t, r.world.Sleep(bg, r.costs.CopyLatency+time.Duration(n/2/r.costs.HostLink*1e9)))
	fill(h.Host, 0, 9)
	require.NoError(t, r.SyncStream(bg, s))
	got := r.read(p, n)
	require.Equal(t, byte(0), got[0])
	require.Equal(t, byte(9), got[n-1])

	require.NoError(t, r.CopyIn(s, q, src))
	fill(src, 0, 9)
	require.NoError(t, r.SyncStream(bg, s))
	got = r.read(q, n)
	require.Equal(t, byte(0), got[0])
	require.Equal(t, byte(0), got[n-1])
}

func TestPageableCopiesOnADyingDevice(t *testing.T) {
	r := newRig(t, Options{})
	s, p := r.stream("s"), r.alloc("p", 64)
	big := r.allocScaled("big", 1<<20, 256)
	r.submit(func(b *cuda.Batch) { b.Fill8(s, big, 1, 1<<20) })
	r.world.Go("killer", func() {
		_ = r.world.Sleep(bg, 20*time.Microsecond)
		_ = r.Kill(cuda.ErrECC, "test")
	})
	require.ErrorIs(t, r.CopyOut(s, make([]byte, 64), p), cuda.ErrECC)
	require.ErrorIs(t, r.CopyIn(s, p, make([]byte, 64)), cuda.ErrECC)
}

func TestRegisteredPiecesOfMemory(t *testing.T) {
	r := newRig(t, Options{})
	mem := r.pinned("stands for memory of C's", 4096).Host
	_, err := r.RegisterHost(mem[100:200])
	require.ErrorIs(t, err, cuda.ErrHostRegistered)
	require.ErrorContains(t, err, "stands for memory of C's")
	other := newRig(t, Options{})
	a, err := other.RegisterHost(mem[100:200])
	require.NoError(t, err)
	_, err = other.RegisterHost(mem[:101])
	require.ErrorIs(t, err, cuda.ErrHostRegistered, "the end of it is")
	_, err = other.RegisterHost(mem[:4096])
	require.ErrorIs(t, err, cuda.ErrHostRegistered, "the middle of it is")
	require.NoError(t, other.UnregisterHost(a))
	b, err := other.RegisterHost(mem[:4096])
	require.NoError(t, err)
	base, size, err := other.AllocRange(a.Device)
	require.NoError(t, err)
	require.Equal(t, b.Device, base, "what was registered there before is forgotten")
	require.Equal(t, uint64(4096), size)
	require.NoError(t, other.UnregisterHost(b))
}
