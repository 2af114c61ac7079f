package cudatest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
)

var hostMemoryBehaviours = []behaviour{
	{name: "managed: host and device reach it at one address", page: unifiedPage, one: testManaged},
	{name: "managed: kernels see what the host wrote before", page: memoryPage, one: testManagedKernels},
	{name: "managed: freeing waits for earlier work", page: memoryPage, one: testManagedFree},
	{name: "managed: what is freed is what was allocated", page: memoryPage, one: testManagedBadFree},
	{name: "managed: nothing allocated for no bytes", page: memoryPage, one: testManagedNothing},
	{name: "pageable: the source may change after the copy in", page: copySyncPage, one: testCopyIn},
	{name: "pageable: a copy in keeps its place in the stream", page: copySyncPage, one: testCopyInOrder},
	{name: "pageable: a copy out is over when it returns", page: copySyncPage, one: testCopyOut},
	{name: "pageable: a copy out keeps its place in the stream", page: copySyncPage, one: testCopyOutOrder},
	{name: "pageable: a large copy in, and out again", page: copySyncPage, one: testCopyLarge},
	{name: "pageable: addresses outside of allocations", page: memoryPage, one: testCopyOutside},
	{name: "pageable: pinned memory is refused", page: ownPage, one: testCopyPinned},
	{name: "pinned: registered memory is the device's as well", page: memoryPage, one: testRegister},
	{name: "pinned: a registered source is read late", page: copySyncPage, one: testRegisteredLate},
	{name: "pinned: registered twice", page: memoryPage, one: testRegisterTwice},
	{name: "pinned: unregistered, it is nobody's", page: memoryPage, one: testUnregister},
	{name: "pinned: each kind is let go of in its own way", page: memoryPage, one: testRegisterKinds},
}

// managed allocates managed memory, or skips.
func (x *bench) managed(size uint64) (cuda.Managed, cuda.ManagedBuffer) {
	x.t.Helper()
	d, ok := x.Device.(cuda.Managed)
	if !ok {
		x.t.Skipf("%s: has no managed memory", x.Info().Backend)
	}
	b, err := d.AllocManaged(size, cuda.AllocOptions{Name: x.t.Name()})
	if errors.Is(err, cuda.ErrNotSupported) {
		x.t.Skipf("%s: %v", x.Info().Backend, err)
	}
	require.NoError(x.t, err)
	return d, b
}

func testManaged(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	_, m := x.managed(1 << 16)
	require.Len(t, m.Host, 1<<16)
	copy(m.Host, pattern(1<<16, 5))
	require.Equal(t, pattern(1<<16, 5), x.read(m.Device, 1<<16))
	x.write(m.Device+100, []byte("from the device"))
	require.Equal(t, "from the device", string(m.Host[100:115]))
	base, size, err := d.AllocRange(m.Device + 4711)
	require.NoError(t, err)
	require.Equal(t, m.Device, base)
	require.Equal(t, uint64(1<<16), size)
}

func testManagedKernels(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(4000)
	fill, copied := x.kernel("fill_index"), x.kernel("copy_words")
	_, m := x.managed(8000)
	copy(m.Host, counted(1000, 50))
	x.submit(func(b *cuda.Batch) {
		copyWords(b, s, copied, p, m.Device, 1000)
		fillIndex(b, s, fill, m.Device+4000, 500, 7)
		b.Fill32(s, m.Device+6000, 9, 10)
		b.Copy(s, m.Device+6040, p, 40)
	})
	x.sync(s)
	require.Equal(t, counted(1000, 50), x.read(p, 4000))
	require.Equal(t, counted(500, 7), m.Host[4000:6000])
	require.Equal(t, words(9, 9, 9, 9, 9, 9, 9, 9, 9, 9), m.Host[6000:6040])
	require.Equal(t, counted(10, 50), m.Host[6040:6080])
}

func testManagedFree(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	g, m := x.managed(4096)
	x.busy(s)
	x.submit(func(b *cuda.Batch) {
		b.Fill8(s, m.Device, 1, 4096)
		b.Record(s, e)
	})
	require.NoError(t, g.FreeManaged(m))
	require.True(t, x.fired(e))
}

func testManagedBadFree(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	g, m := x.managed(4096)
	inside := m
	inside.Device += 256
	require.ErrorIs(t, g.FreeManaged(inside), cuda.ErrInvalidValue)
	require.ErrorIs(t, g.FreeManaged(cuda.ManagedBuffer{Device: x.alloc(64)}), cuda.ErrInvalidValue)
	require.NoError(t, g.FreeManaged(m))
	require.ErrorIs(t, g.FreeManaged(m), cuda.ErrInvalidValue)
	_, _, err := d.AllocRange(m.Device)
	require.ErrorIs(t, err, cuda.ErrNotFound)
}

func testManagedNothing(t *testing.T, d cuda.Device) {
	g, _ := newBench(t, d).managed(1)
	_, err := g.AllocManaged(0, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}

// host returns the device's way with host memory, or skips.
func (x *bench) host() cuda.HostMemory {
	x.t.Helper()
	d, ok := x.Device.(cuda.HostMemory)
	if !ok {
		x.t.Skipf("%s: copies no pageable memory", x.Info().Backend)
	}
	return d
}

// supported skips where a call is not supported and fails for other errors.
func (x *bench) supported(err error) {
	x.t.Helper()
	if errors.Is(err, cuda.ErrNotSupported) {
		x.t.Skipf("%s: %v", x.Info().Backend, err)
	}
	require.NoError(x.t, err)
}

func testCopyIn(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(1<<16)
	x.busy(s)
	src := pattern(1<<16, 1)
	x.supported(x.host().CopyIn(s, p, src))
	copy(src, pattern(1<<16, 2)) // the copy need not have run
	x.sync(s)
	require.Equal(t, pattern(1<<16, 1), x.read(p, 1<<16))
}

func testCopyInOrder(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, q := x.stream(), x.alloc(4096), x.alloc(4096)
	x.busy(s)
	x.submit(func(b *cuda.Batch) { b.Fill8(s, p, 1, 4096) })
	x.supported(x.host().CopyIn(s, p+100, []byte("in between")))
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, q, p, 4096)
		b.Fill8(s, p, 2, 4096)
	})
	x.sync(s)
	got := x.read(q, 4096)
	require.Equal(t, byte(1), got[99])
	require.Equal(t, "in between", string(got[100:110]))
	require.Equal(t, byte(1), got[110])
	require.Equal(t, byte(2), x.read(p+105, 1)[0])
}

func testCopyOut(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, e := x.stream(), x.alloc(1<<16), x.event()
	x.write(p, pattern(1<<16, 8))
	x.busy(s)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	dst := make([]byte, 1<<16)
	x.supported(x.host().CopyOut(s, dst, p))
	require.Equal(t, pattern(1<<16, 8), dst)
	require.True(t, x.fired(e), "it is behind the work in its stream")
}

func testCopyOutOrder(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, other, p, f := x.stream(), x.stream(), x.alloc(4000), x.kernel("fill_index")
	e := x.event()
	x.busy(other)
	x.submit(func(b *cuda.Batch) {
		b.Record(other, e)
		fillIndex(b, s, f, p, 1000, 3)
	})
	dst := make([]byte, 4000)
	x.supported(x.host().CopyOut(s, dst, p))
	require.Equal(t, counted(1000, 3), dst)
	x.sync(other)
}

func testCopyLarge(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	const n = 9<<20 + 13
	s, p := x.stream(), x.alloc(n)
	x.supported(x.host().CopyIn(s, p, pattern(n, 4)))
	dst := make([]byte, n)
	require.NoError(t, x.host().CopyOut(s, dst, p))
	require.Equal(t, pattern(n, 4), dst)
}

func testCopyOutside(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(64)
	h := x.host()
	x.supported(h.CopyIn(s, p, make([]byte, 64)))
	require.ErrorIs(t, h.CopyIn(s, p+1, make([]byte, 64)), cuda.ErrInvalidValue)
	require.ErrorIs(t, h.CopyIn(s, 0x10, make([]byte, 64)), cuda.ErrInvalidValue)
	require.ErrorIs(t, h.CopyOut(s, make([]byte, 65), p), cuda.ErrInvalidValue)
	require.ErrorIs(t, h.CopyOut(0xdead, make([]byte, 64), p), cuda.ErrInvalidHandle)
	require.NoError(t, h.CopyIn(s, p, nil))
	require.NoError(t, h.CopyOut(s, nil, p))
	x.sync(s)
}

func testCopyPinned(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, pinned := x.stream(), x.alloc(64), x.pinned(64)
	h := x.host()
	require.ErrorIs(t, h.CopyIn(s, p, pinned.Host), cuda.ErrInvalidValue)
	require.ErrorIs(t, h.CopyOut(s, pinned.Host, p), cuda.ErrInvalidValue)
}

// mapped returns host memory that is not of Go's heap, on pages of its own.
func (x *bench) mapped(n int) []byte {
	x.t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	require.NoError(x.t, err)
	x.t.Cleanup(func() { require.NoError(x.t, unix.Munmap(b)) })
	return b
}

func (x *bench) register(b []byte) cuda.PinnedBuffer {
	x.t.Helper()
	h, err := x.host().RegisterHost(b)
	x.supported(err)
	// The device must be done with the memory before it is unmapped.
	x.t.Cleanup(func() { _ = x.host().UnregisterHost(h) })
	return h
}

func testRegister(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	mem := x.mapped(1 << 16)
	h := x.register(mem)
	require.Equal(t, &mem[0], &h.Host[0])
	require.Len(t, h.Host, 1<<16)
	copy(mem, pattern(1<<16, 6))
	s, p, f := x.stream(), x.alloc(1<<16), x.kernel("fill_index")
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, p, h.Device, 1<<16)
		fillIndex(b, s, f, h.Device+4096, 1000, 1)
		b.Fill8(s, h.Device, 3, 10)
	})
	x.sync(s)
	require.Equal(t, pattern(1<<16, 6), x.read(p, 1<<16))
	require.Equal(t, counted(1000, 1), mem[4096:8096])
	require.Equal(t, []byte{3, 3, 3, 3, 3, 3, 3, 3, 3, 3}, mem[:10])
	m := []cuda.Mark{{Word: h.Device + 4096, Want: 1}}
	require.NoError(t, d.Poll(m))
	require.Equal(t, cuda.MarkFired, m[0].State, "a word in it is a mark")
	require.NoError(t, x.host().UnregisterHost(h))
}

func testRegisteredLate(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	mem := x.mapped(4096)
	h := x.register(mem)
	s, p := x.stream(), x.alloc(4096)
	copy(mem, pattern(4096, 1))
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) { b.Copy(s, p, h.Device, 4096) })
	copy(mem, pattern(4096, 2))
	release()
	x.sync(s)
	require.Equal(t, pattern(4096, 2), x.read(p, 4096))
	require.NoError(t, x.host().UnregisterHost(h))
}

func testRegisterTwice(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	mem := x.mapped(1 << 16)
	h := x.register(mem)
	_, err := x.host().RegisterHost(mem)
	require.ErrorIs(t, err, cuda.ErrHostRegistered)
	require.NoError(t, x.host().UnregisterHost(h))
	require.ErrorIs(t, x.host().UnregisterHost(h), cuda.ErrHostNotRegistered)
	again, err := x.host().RegisterHost(mem)
	require.NoError(t, err)
	require.NoError(t, x.host().UnregisterHost(again))
	_, err = x.host().RegisterHost(nil)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
}

func testUnregister(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	mem := x.mapped(1 << 16)
	h := x.register(mem)
	s, p := x.stream(), x.alloc(1<<16)
	require.NoError(t, x.host().UnregisterHost(h))
	var b cuda.Batch
	b.Copy(s, p, h.Device, 1<<16)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue)
	copy(mem, pattern(1<<16, 7))
	require.NoError(t, x.host().CopyIn(s, p, mem), "it is pageable again")
	x.sync(s)
	require.Equal(t, pattern(1<<16, 7), x.read(p, 1<<16))
}

func testRegisterKinds(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	h := x.register(x.mapped(4096))
	require.ErrorIs(t, d.FreePinned(h), cuda.ErrInvalidValue)
	require.ErrorIs(t, d.Free(h.Device), cuda.ErrInvalidValue)
	require.ErrorIs(t, x.host().UnregisterHost(x.pinned(64)), cuda.ErrHostNotRegistered)
	require.NoError(t, x.host().UnregisterHost(h))
}
