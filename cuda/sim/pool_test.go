package sim

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

func (r *rig) take(s cuda.Stream, name string, n uint64) cuda.DevicePtr {
	r.t.Helper()
	p, err := r.AllocAsync(s, n, 0, cuda.AllocOptions{Name: name})
	require.NoError(r.t, err)
	return p
}

func (r *rig) give(s cuda.Stream, p cuda.DevicePtr) {
	r.t.Helper()
	require.NoError(r.t, r.FreeAsync(s, p))
}

// keep has the current pool keep its memory, and use it again by these rules
// only.
func (r *rig) keep(rules ...cuda.PoolAttribute) {
	r.t.Helper()
	require.NoError(r.t, r.SetPoolAttribute(0, cuda.PoolReleaseThreshold, math.MaxUint64))
	for a := cuda.PoolFollowEvents; a <= cuda.PoolInternalWaits; a++ {
		require.NoError(r.t, r.SetPoolAttribute(0, a, 0))
	}
	for _, a := range rules {
		require.NoError(r.t, r.SetPoolAttribute(0, a, 1))
	}
}

// held keeps a stream busy for long.
func (r *rig) held(s cuda.Stream) {
	r.t.Helper()
	f, err := r.NewModel("long", func(k *ModelLaunch) error { k.Time = 1e9; return nil })
	require.NoError(r.t, err)
	r.submit(func(b *cuda.Batch) { b.Launch(s, f, one, 0) })
}

func TestPoolUseAfterFree(t *testing.T) {
	for name, prepare := range map[string]func(r *rig, s cuda.Stream, p cuda.DevicePtr) func(b *cuda.Batch){
		"kernel": func(r *rig, s cuda.Stream, p cuda.DevicePtr) func(b *cuda.Batch) {
			f := r.storeKernel()
			return func(b *cuda.Batch) { store(b, s, f, p, 0, 1) }
		},
		"copy of a graph": func(r *rig, s cuda.Stream, p cuda.DevicePtr) func(b *cuda.Batch) {
			x := r.capture(s, func(b *cuda.Batch) { b.Copy(s, p, p+32, 32) })
			return func(b *cuda.Batch) { b.LaunchGraph(s, x) }
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			r.keep()
			s := r.stream("s")
			p := r.take(s, "scratch", 64)
			use := prepare(r, s, p)
			r.submit(use)
			r.give(s, p)
			var b cuda.Batch
			b.Fill8(s, p, 1, 64)
			err := r.Submit(&b)
			require.ErrorIs(t, err, cuda.ErrInvalidValue, "what names the memory is refused at once")
			require.ErrorContains(t, err, "use after free")
			_, _, err = r.AllocRange(p)
			require.ErrorIs(t, err, cuda.ErrNotFound)
			require.NoError(t, r.SyncStream(bg, s))
			r.submit(use)
			err = r.SyncStream(bg, s)
			require.ErrorIs(t, err, cuda.ErrIllegalAddress)
			require.ErrorContains(t, err, "use after free")
			require.ErrorContains(t, err, `"scratch"`)
		})
	}
}

func TestPoolUseAheadOfTheAllocation(t *testing.T) {
	r := newRig(t, Options{})
	s, o := r.stream("s"), r.stream("o")
	r.held(s)
	p := r.take(s, "scratch", 64)
	base, size, err := r.AllocRange(p + 3)
	require.NoError(t, err)
	require.Equal(t, p, base)
	require.EqualValues(t, 64, size)
	require.ErrorIs(t, r.Read(make([]byte, 8), p), cuda.ErrInvalidValue, "the host has to wait as well")
	r.submit(func(b *cuda.Batch) { b.Fill8(o, p, 1, 64) })
	err = r.SyncStream(bg, o)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	require.ErrorContains(t, err, `before the stream has reached its allocation: offset 0x0 of "scratch"`)
}

func TestPoolFreeThatOvertakes(t *testing.T) {
	r := newRig(t, Options{})
	s, o := r.stream("s"), r.stream("o")
	r.held(s)
	r.give(o, r.take(s, "scratch", 64))
	err := r.SyncStream(bg, o)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	require.ErrorContains(t, err, "free in stream order")
	require.ErrorContains(t, err, "before the stream has reached its allocation")
}

// A stream has the memory that it freed again at once, though the device has
// reached neither; the content is nobody's.
func TestPoolSameAddressAgain(t *testing.T) {
	r := newRig(t, Options{})
	r.keep()
	s, o := r.stream("s"), r.stream("o")
	out := r.alloc("out", 192)
	r.held(s)
	p := r.take(s, "first", 64)
	r.submit(func(b *cuda.Batch) {
		b.Fill8(s, p, 1, 64)
		b.Copy(s, out, p, 64)
	})
	r.give(s, p)
	require.NotEqual(t, p, r.take(o, "of another stream", 64))
	q := r.take(s, "second", 40)
	require.Equal(t, p, q)
	var b cuda.Batch
	b.Fill8(s, q, 1, 41)
	require.ErrorIs(t, r.Submit(&b), cuda.ErrInvalidValue, "it is shorter now")
	r.submit(func(b *cuda.Batch) {
		b.Copy(s, out+64, q, 40)
		b.Fill8(s, q, 2, 40)
		b.Copy(s, out+128, q, 40)
	})
	require.NoError(t, r.SyncStream(bg, s))
	got := r.read(out, 192)
	require.Equal(t, bytes.Repeat([]byte{1}, 64), got[:64])
	require.Equal(t, bytes.Repeat([]byte{0xff}, 40), got[64:104])
	require.Equal(t, bytes.Repeat([]byte{2}, 40), got[128:168])
}

// Where the device has no more, a stream is made to wait for what another one
// has yet to free, if the rule allows it.
func TestPoolInternalWaits(t *testing.T) {
	for _, allowed := range []bool{true, false} {
		r := newRig(t, Options{Memory: 1 << 20})
		r.keep()
		if allowed {
			r.keep(cuda.PoolInternalWaits)
		}
		s, o, e := r.stream("s"), r.stream("o"), r.event()
		p := r.take(s, "all", 1<<20)
		r.held(s)
		r.give(s, p)
		r.submit(func(b *cuda.Batch) { b.Record(s, e) })
		q, err := r.AllocAsync(o, 1<<20, 0, cuda.AllocOptions{Name: "again"})
		if !allowed {
			require.ErrorIs(t, err, cuda.ErrOutOfMemory)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, p, q)
		r.submit(func(b *cuda.Batch) { b.Fill8(o, q, 1, 64) })
		require.NoError(t, r.SyncStream(bg, o))
		m := []cuda.Mark{{Event: e}}
		require.NoError(t, r.Poll(m))
		require.Equal(t, cuda.MarkFired, m[0].State)
	}
}

// Pools give back what they hold before the device is out of memory.
func TestPoolsGiveWay(t *testing.T) {
	r := newRig(t, Options{Memory: 3 << 20})
	r.keep()
	s := r.stream("s")
	other, err := r.NewPool("other")
	require.NoError(t, err)
	require.NoError(t, r.SetPoolAttribute(other, cuda.PoolReleaseThreshold, math.MaxUint64))
	p, err := r.AllocAsync(s, 2<<20, other, cuda.AllocOptions{})
	require.NoError(t, err)
	r.give(s, p)
	require.NoError(t, r.SyncStream(bg, s))
	reserved, err := r.PoolAttribute(other, cuda.PoolReserved)
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, reserved)
	r.take(s, "large", 3<<20)
	reserved, err = r.PoolAttribute(other, cuda.PoolReserved)
	require.NoError(t, err)
	require.Zero(t, reserved)
	require.NoError(t, r.SyncStream(bg, s))
}

// A pool that was destroyed gives its memory back when the last of it has been
// freed, and its addresses are not used again.
func TestDestroyedPool(t *testing.T) {
	r := newRig(t, Options{})
	s := r.stream("s")
	pool, err := r.NewPool("short")
	require.NoError(t, err)
	p, err := r.AllocAsync(s, 64, pool, cuda.AllocOptions{Name: "last"})
	require.NoError(t, err)
	require.NoError(t, r.DestroyPool(pool))
	r.give(s, p)
	require.EqualValues(t, 256, r.mem.used)
	require.NoError(t, r.SyncStream(bg, s))
	require.Zero(t, r.mem.used)
	require.Empty(t, r.ending)
	var b cuda.Batch
	b.Fill8(s, p, 1, 64)
	require.ErrorContains(t, r.Submit(&b), `use after free: offset 0x0 of "last"`)
}

// A pool that is to keep its memory keeps none once it is destroyed, also where
// what was left is freed by the host.
func TestDestroyedPoolForgetsItsThreshold(t *testing.T) {
	r := newRig(t, Options{})
	s := r.stream("s")
	pool, err := r.NewPool("keeper")
	require.NoError(t, err)
	require.NoError(t, r.SetPoolAttribute(pool, cuda.PoolReleaseThreshold, math.MaxUint64))
	p, err := r.AllocAsync(s, 64, pool, cuda.AllocOptions{Name: "last"})
	require.NoError(t, err)
	require.NoError(t, r.SyncStream(bg, s))
	require.NoError(t, r.DestroyPool(pool))
	require.NoError(t, r.Free(p))
	require.NoError(t, r.Sync(bg))
	require.Zero(t, r.mem.used)
	require.Empty(t, r.ending)
}

// A block goes to an allocation of half its size at least.
func TestPoolKeepsBigBlocksForBigAllocations(t *testing.T) {
	r := newRig(t, Options{})
	r.keep()
	s := r.stream("s")
	big := r.take(s, "big", 4096)
	r.give(s, big)
	require.NotEqual(t, big, r.take(s, "less than half", 2048-256))
	require.EqualValues(t, 4096+2048-256, r.mem.used)
	require.Equal(t, big, r.take(s, "half", 2048-255))
	require.EqualValues(t, 4096+2048-256, r.mem.used)
}

func TestPoolMemoryIsNotExported(t *testing.T) {
	r := newRig(t, Options{Shareable: true})
	s := r.stream("s")
	p := r.take(s, "scratch", 64)
	_, err := r.ExportMemory(p)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.ErrorContains(t, err, "memory of a pool")
}
