package sim

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// locked runs fn with the machine locked.
func (r *rig) locked(fn func()) {
	r.world.Enter(0)
	defer r.world.Exit()
	fn()
}

func TestAddressesAreTheSameFromRunToRun(t *testing.T) {
	var got [2][]cuda.DevicePtr
	for i := range got {
		d, err := New(Options{})
		require.NoError(t, err)
		r := &rig{Device: d, t: t}
		got[i] = []cuda.DevicePtr{r.alloc("a", 1), r.alloc("b", 1<<30), r.pinned("c", 5).Device, r.alloc("d", 64)}
		require.NoError(t, d.Close())
	}
	require.Equal(t, got[0], got[1])
}

func TestAddressesAreNeverUsedTwice(t *testing.T) {
	r := newRig(t, Options{})
	seen := map[cuda.DevicePtr]bool{}
	for i := range 200 {
		p := r.alloc("p", 1<<16)
		require.False(t, seen[p])
		require.Zero(t, p%256)
		seen[p] = true
		require.NoError(t, r.Free(p), i)
	}
}

func TestAllocationsHaveUnmappedMemoryBetweenThem(t *testing.T) {
	r := newRig(t, Options{})
	for _, size := range []uint64{1, 4096, 65536, 65537, 1 << 20} {
		p := uint64(r.alloc("p", size))
		next := uint64(r.pinned("next", 1).Device)
		require.GreaterOrEqual(t, next, p+size+guard)
		r.locked(func() {
			var a *AccessError
			require.ErrorAs(t, r.mem.Write(p+size+guard/2, []byte{1}), &a)
			require.Equal(t, "p", a.Name, "the one below is named")
		})
	}
}

func TestAccessErrors(t *testing.T) {
	r := newRig(t, Options{})
	p := uint64(r.alloc("kv pool", 1000))
	gone := uint64(r.alloc("gone", 64))
	require.NoError(t, r.Free(cuda.DevicePtr(gone)))
	r.locked(func() {
		for _, c := range []struct {
			addr uint64
			n    int
			says string
		}{
			{p + 999, 1, ""},
			{p, 1000, ""},
			{p + 999, 2, fmt.Sprintf(`write of 2 bytes at %#x: 1 bytes over the end: offset 0x3e7 of "kv pool" (1000 bytes at %#x)`, p+999, p)},
			{p + 1000, 1, fmt.Sprintf(`write of 1 bytes at %#x: behind the end: offset 0x3e8 of "kv pool" (1000 bytes at %#x)`, p+1000, p)},
			{p - 1, 1, fmt.Sprintf(`write of 1 bytes at %#x: no allocation there`, p-1)},
			{gone + 4, 8, fmt.Sprintf(`write of 8 bytes at %#x: use after free: offset 0x4 of "gone" (64 bytes at %#x)`, gone+4, gone)},
			{0, 8, "write of 8 bytes at 0x0: no allocation there"},
			{^uint64(0) - 3, 8, "write of 8 bytes at 0xfffffffffffffffc: no allocation there"},
		} {
			err := r.mem.Write(c.addr, make([]byte, c.n))
			if c.says == "" {
				require.NoError(t, err)
				continue
			}
			require.EqualError(t, err, c.says)
			require.ErrorIs(t, err, cuda.ErrIllegalAddress)
			require.Error(t, r.mem.Read(c.addr, make([]byte, c.n)))
			_, err = r.mem.Bytes(c.addr, uint64(c.n))
			require.Error(t, err)
		}
		require.NoError(t, r.mem.Write(p+3, []byte{1, 2, 3}))
		b, err := r.mem.Bytes(p+2, 5)
		require.NoError(t, err)
		require.Equal(t, []byte{0, 1, 2, 3, 0}, b)
		require.Equal(t, 5, cap(b), "no way past the end of an access")
	})
	require.NoError(t, r.Close())
	r.locked(func() {
		require.ErrorContains(t, r.mem.Read(p, make([]byte, 1)), "the device has been closed")
	})
}

func TestFreshMemoryIsGarbage(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, bytes.Repeat([]byte{0xff}, 100), r.read(r.alloc("p", 100), 100))
	r = newRig(t, Options{Uninitialised: true})
	require.Equal(t, make([]byte, 100), r.read(r.alloc("p", 100), 100))
}

func TestScaledBytesCountAgainstTheDevicesMemory(t *testing.T) {
	r := newRig(t, Options{Memory: 1 << 30})
	p := r.allocScaled("pool", 1<<20, 1000)
	_, err := r.Alloc(1<<20, cuda.AllocOptions{Name: "second pool", CostScale: 1000})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.ErrorContains(t, err, `1000 x 1048576 bytes for "second pool", 25165824 of 1073741824 are free`)
	r.alloc("rest", 25165824)
	_, err = r.Alloc(1, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	r.pinned("host memory is no device memory", 1<<20)
	require.NoError(t, r.Free(p))
	r.allocScaled("again", 1<<20, 1000)
	r.locked(func() {
		require.Equal(t, uint32(1000), r.mem.Scale(uint64(r.mem.regions[len(r.mem.regions)-1].base)))
		require.Equal(t, uint32(1), r.mem.Scale(5))
	})
}

func TestOldFreedAllocationsAreForgotten(t *testing.T) {
	r := newRig(t, Options{})
	m := r.mem
	r.locked(func() {
		live, err := m.alloc(1, cuda.PinnedMemory, cuda.AllocOptions{Name: "live"})
		require.NoError(t, err)
		for range 10 {
			x, err := m.alloc(1, cuda.PinnedMemory, cuda.AllocOptions{})
			require.NoError(t, err)
			require.NoError(t, m.release(x))
		}
		require.Equal(t, 10, m.freed)
		m.forget()
		require.Equal(t, 5, m.freed)
		require.Len(t, m.regions, 6)
		require.Same(t, live, m.at(live.base))
	})
}

func TestAddressSpaceUsedUp(t *testing.T) {
	r := newRig(t, Options{Memory: 1 << 60})
	_, err := r.Alloc(1<<50, cuda.AllocOptions{Name: "huge"})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.ErrorContains(t, err, "address space is used up")
	_, err = r.AllocPinned(1<<50, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	r.alloc("small", 1)
}

// A device takes more address space when it needs it.
func TestAddressSpaceGrows(t *testing.T) {
	r := newRig(t, Options{Memory: 1 << 60, Uninitialised: true})
	s := r.stream("s")
	var p []cuda.DevicePtr
	for _, size := range []uint64{firstReserve - 3*guard, 1, 4096, growReserve - guard, 2 * growReserve, 5} {
		p = append(p, r.alloc(fmt.Sprint(size), size))
	}
	for i, a := range p {
		r.submit(func(b *cuda.Batch) { b.Fill8(s, a, uint8(i), 1) })
	}
	require.NoError(t, r.Sync(bg))
	for i, a := range p {
		require.Equal(t, byte(i), r.read(a, 1)[0])
		base, _, err := r.AllocRange(a)
		require.NoError(t, err)
		require.Equal(t, a, base)
	}
	for _, a := range p {
		require.NoError(t, r.Free(a))
	}
}

func TestManyDevicesAtOnce(t *testing.T) {
	for range 200 {
		newRig(t, Options{})
	}
}

func TestTwoDevicesInOneWorld(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	defer w.Close()
	a := newRig(t, Options{Name: "a", World: w})
	b := newRig(t, Options{Name: "b", World: w})
	require.Same(t, w, a.World())
	pa, pb := a.alloc("pool", 4096), b.alloc("pool", 4096)
	_, _, err := a.AllocRange(pb)
	require.ErrorIs(t, err, cuda.ErrNotFound)
	s := b.stream("s")
	b.submit(func(x *cuda.Batch) { x.Fill8(s, pb, 3, 4096) })
	require.NoError(t, a.Close())
	require.NoError(t, b.Sync(bg), "closing one leaves the other and the world alone")
	require.Equal(t, byte(3), b.read(pb, 1)[0])
	require.NotEqual(t, pa, pb)
}

func TestBadOptions(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	defer w.Close()
	for _, o := range []Options{
		{World: w, Real: true}, {World: w, Seed: 1}, {Slow: 2}, {Real: true, Slow: 0.5},
		{Bandwidth: -1}, {SMs: -1}, {Costs: &Costs{}},
		{Costs: func() *Costs { c := DefaultCosts(); c.Chunks = 0; return &c }()},
	} {
		_, err := New(o)
		require.ErrorIs(t, err, cuda.ErrInvalidValue)
	}
}
