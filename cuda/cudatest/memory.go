package cudatest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var memoryBehaviours = []behaviour{
	{name: "memory: allocations are aligned and disjoint", page: memoryPage, one: testAlloc},
	{name: "memory: nothing allocated for no bytes", page: memoryPage, one: testAllocNothing},
	{name: "memory: more than there is", page: memoryPage, one: testOutOfMemory},
	{name: "memory: the range of an address", page: memoryPage, one: testAllocRange},
	{name: "memory: read and write at any offset", page: memoryPage, one: testReadWrite},
	{name: "memory: freeing twice or in the middle", page: memoryPage, one: testBadFree},
	{name: "memory: freeing waits for earlier work", page: memoryPage, one: testFreeWaits},
	{name: "memory: pinned memory is the host's as well", page: unifiedPage, one: testPinned},
	{name: "memory: fill with bytes, at any offset and size", page: memoryPage, one: testFill8},
	{name: "memory: fill with words", page: memoryPage, one: testFill32},
	{name: "memory: fill with half words", page: memoryPage, one: testFill16},
	{name: "memory: copies in every direction", page: memoryPage, one: testCopies},
	{name: "memory: a source is read when the copy runs", page: copySyncPage, one: testSourceReadLate},
	{name: "memory: no bytes is no error", page: memoryPage, one: testNoBytes},
}

func testAlloc(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	end := map[cuda.DevicePtr]uint64{}
	for _, n := range []uint64{1, 255, 256, 257, 4096, 1 << 20} {
		p := x.alloc(n)
		require.Zero(t, p%256)
		for q, m := range end {
			require.False(t, p < q+cuda.DevicePtr(m) && q < p+cuda.DevicePtr(n), "%d bytes overlap %d", n, m)
		}
		end[p] = n
	}
	for p := range end {
		require.NoError(t, d.Free(p))
	}
}

func testAllocNothing(t *testing.T, d cuda.Device) {
	_, err := d.Alloc(0, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	_, err = d.AllocPinned(0, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}

func testOutOfMemory(t *testing.T, d cuda.Device) {
	_, err := d.Alloc(d.Info().Memory+1, cuda.AllocOptions{Name: "too much"})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	_, err = d.Alloc(1<<62, cuda.AllocOptions{Name: "far too much"})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	newBench(t, d).alloc(256)
}

func testAllocRange(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(1000)
	for _, off := range []cuda.DevicePtr{0, 1, 999} {
		base, size, err := d.AllocRange(p + off)
		require.NoError(t, err)
		require.Equal(t, p, base)
		require.GreaterOrEqual(t, size, uint64(1000)) // hardware may round it up
		if x.simulated() {
			require.Equal(t, uint64(1000), size)
		}
	}
	require.NoError(t, d.Free(p))
	_, _, err := d.AllocRange(p)
	require.True(t, errors.Is(err, cuda.ErrNotFound) || !x.simulated() && errors.Is(err, cuda.ErrInvalidValue), "%v", err)
	_, _, err = d.AllocRange(0)
	require.True(t, errors.Is(err, cuda.ErrNotFound) || !x.simulated() && errors.Is(err, cuda.ErrInvalidValue), "%v", err)
}

func testReadWrite(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(1 << 16)
	want := pattern(1<<16, 1)
	x.write(p, want)
	copy(want[777:], pattern(3001, 50))
	x.write(p+777, pattern(3001, 50))
	require.Equal(t, want, x.read(p, 1<<16))
	require.Equal(t, want[4001:4003], x.read(p+4001, 2))
}

func testBadFree(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(4096)
	require.ErrorIs(t, d.Free(p+256), cuda.ErrInvalidValue)
	require.NoError(t, d.Free(p))
	require.ErrorIs(t, d.Free(p), cuda.ErrInvalidValue)
	require.ErrorIs(t, d.Free(0x10), cuda.ErrInvalidValue)
	h := x.pinned(64)
	require.NoError(t, d.FreePinned(h))
	require.ErrorIs(t, d.FreePinned(h), cuda.ErrInvalidValue)
}

func testFreeWaits(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	p := x.busy(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	require.NoError(t, d.Free(p))
	require.True(t, x.fired(e))
	require.NoError(t, d.Sync(x.ctx))
}

func testPinned(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, h := x.stream(), x.pinned(4096)
	require.Len(t, h.Host, 4096)
	copy(h.Host, pattern(4096, 4))
	p := x.alloc(4096)
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, p, h.Device, 4096)
		b.Fill8(s, h.Device+100, 0, 10)
	})
	x.sync(s)
	require.Equal(t, pattern(4096, 4), x.read(p, 4096))
	require.Equal(t, make([]byte, 10), h.Host[100:110])
	require.Equal(t, pattern(4096, 4)[110:], h.Host[110:])
	require.Equal(t, h.Host, x.read(h.Device, 4096))
}

func testFill8(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(512)
	for _, off := range []int{0, 1, 3, 15, 16, 31} {
		for _, n := range []int{1, 2, 15, 16, 17, 33, 257} {
			want := pattern(512, byte(n))
			x.write(p, want)
			x.submit(func(b *cuda.Batch) { b.Fill8(s, p+cuda.DevicePtr(off), 0xa5, uint64(n)) })
			x.sync(s)
			for i := range n {
				want[off+i] = 0xa5
			}
			require.Equal(t, want, x.read(p, 512), "offset %d, %d bytes", off, n)
		}
	}
}

func testFill32(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(512)
	x.write(p, make([]byte, 512))
	x.submit(func(b *cuda.Batch) { b.Fill32(s, p+4, 0x01020304, 3) })
	x.sync(s)
	require.Equal(t, words(0, 0x01020304, 0x01020304, 0x01020304, 0), x.read(p, 20))
	var b cuda.Batch
	b.Fill32(s, p+2, 1, 1)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue)
}

func testCopies(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s := x.stream()
	h1, h2 := x.pinned(1<<17), x.pinned(1<<17)
	p1, p2 := x.alloc(1<<17), x.alloc(1<<17)
	want := pattern(1<<17, 77)
	copy(h1.Host, want)
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, p1, h1.Device, 1<<17)
		b.Copy(s, p2, p1, 1<<17)
		b.Copy(s, h2.Device, p2, 1<<17)
	})
	x.sync(s)
	require.Equal(t, want, h2.Host)
	h3 := x.pinned(1 << 17)
	x.submit(func(b *cuda.Batch) { b.Copy(s, h3.Device+5, h1.Device+5, 1<<17-5) })
	x.sync(s)
	require.Equal(t, want[5:], h3.Host[5:])
}

func testSourceReadLate(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, h, p := x.stream(), x.pinned(256), x.alloc(256)
	copy(h.Host, pattern(256, 1))
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Copy(s, p, h.Device, 256) })
	copy(h.Host, pattern(256, 2))
	release()
	x.sync(s)
	require.Equal(t, pattern(256, 2), x.read(p, 256))
}

func testNoBytes(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, e := x.stream(), x.alloc(256), x.event()
	x.submit(func(b *cuda.Batch) {
		b.Fill8(s, p, 1, 0)
		b.Copy(s, p, p+128, 0)
		b.Record(s, e)
	})
	x.sync(s)
	require.True(t, x.fired(e))
	x.write(p, nil)
	x.read(p, 0)
}

func testFill16(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(64)
	half := func(b *cuda.Batch, p cuda.DevicePtr, v, n uint64) {
		b.Fill8(s, p, 0, n)
		c := &b.Commands()[b.Len()-1]
		c.Flags, c.B = 1, v
	}
	x.write(p, make([]byte, 64))
	x.submit(func(b *cuda.Batch) { half(b, p+2, 0x0102, 3) })
	x.sync(s)
	require.Equal(t, []byte{0, 0, 2, 1, 2, 1, 2, 1, 0, 0}, x.read(p, 10))
	var b cuda.Batch
	half(&b, p+1, 1, 1)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue, "not aligned")
	b.Reset()
	half(&b, p, 0x10000, 1)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue, "more than 16 bits")
}
