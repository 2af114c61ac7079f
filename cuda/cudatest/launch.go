package cudatest

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var launchBehaviours = []behaviour{
	{name: "launch: a kernel writes what it should", page: launchPage, one: testLaunch},
	{name: "launch: kernels of a stream run in order", page: launchPage, one: testLaunchOrder},
	{name: "launch: reads and writes pinned memory", page: launchPage, one: testLaunchPinned},
	{name: "launch: geometry outside the limits", page: launchPage, one: testGeometry},
	{name: "launch: too few or too many arguments", page: launchPage, one: testArguments},
	{name: "launch: arguments are taken at the submission", page: launchPage, one: testArgumentsCopied},
	{name: "launch: arguments of mixed sizes are aligned", page: paramsPage, one: testPackedArguments},
	{name: "launch: unknown functions", page: launchPage, one: testUnknownFunction},
	{name: "launch: a function keeps its handle", page: modulePage, one: testSameFunction},
	{name: "launch: more than a stream holds at once", page: launchPage, one: testManyLaunches},
	{name: "module: refused PTX", page: modulePage, one: testBadPTX},
	{name: "module: a kernel that is not there", page: modulePage, one: testNoSuchKernel},
	{name: "module: unloaded", page: modulePage, one: testUnload},
	{name: "module: loaded twice, each has its own", page: modulePage, one: testTwoModules},
}

var stickyBehaviours = []behaviour{
	{name: "sticky: an illegal address kills the device", page: typesPage, kills: true, one: testIllegalAddress},
	{name: "sticky: a wait under way is told", page: typesPage, kills: true, one: testStickyWakes},
	{name: "sticky: work behind the fault never runs", page: typesPage, kills: true, one: testStickyStops},
}

func fillIndex(b *cuda.Batch, s cuda.Stream, f cuda.Function, p cuda.DevicePtr, n, v uint32) {
	a := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{(n + 127) / 128, 1, 1}, Block: [3]uint16{128, 1, 1}}, 16)
	binary.LittleEndian.PutUint64(a, uint64(p))
	binary.LittleEndian.PutUint32(a[8:], n)
	binary.LittleEndian.PutUint32(a[12:], v)
}

func copyWords(b *cuda.Batch, s cuda.Stream, f cuda.Function, dst, src cuda.DevicePtr, n uint32) {
	a := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{(n + 63) / 64, 1, 1}, Block: [3]uint16{64, 1, 1}}, 20)
	binary.LittleEndian.PutUint64(a, uint64(dst))
	binary.LittleEndian.PutUint64(a[8:], uint64(src))
	binary.LittleEndian.PutUint32(a[16:], n)
}

func counted(n int, v uint32) []byte {
	var b []byte
	for i := range n {
		b = binary.LittleEndian.AppendUint32(b, v+uint32(i))
	}
	return b
}

func testLaunch(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, f := x.stream(), x.alloc(4*5000), x.kernel("fill_index")
	x.write(p, make([]byte, 4*5000))
	x.submit(func(b *cuda.Batch) { fillIndex(b, s, f, p, 4999, 1000) })
	x.sync(s)
	require.Equal(t, append(counted(4999, 1000), 0, 0, 0, 0), x.read(p, 4*5000))
}

func testLaunchOrder(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, q := x.stream(), x.alloc(4*1000), x.alloc(4*1000)
	fill, copied := x.kernel("fill_index"), x.kernel("copy_words")
	x.submit(func(b *cuda.Batch) {
		for i := range uint32(5) {
			fillIndex(b, s, fill, p, 1000, i)
		}
		copyWords(b, s, copied, q, p, 1000)
		b.Fill8(s, p, 0, 4000)
	})
	x.sync(s)
	require.Equal(t, counted(1000, 4), x.read(q, 4000))
	require.Equal(t, make([]byte, 4000), x.read(p, 4000))
}

func testLaunchPinned(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, h, o, f := x.stream(), x.pinned(4000), x.pinned(4000), x.kernel("copy_words")
	copy(h.Host, pattern(4000, 8))
	x.submit(func(b *cuda.Batch) { copyWords(b, s, f, o.Device, h.Device, 1000) })
	x.sync(s)
	require.Equal(t, pattern(4000, 8), o.Host)
}

func testGeometry(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f := x.stream(), x.kernel("fill_index")
	one := cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}
	for name, change := range map[string]func(g *cuda.Geometry){
		"grid of 0":         func(g *cuda.Geometry) { g.Grid[0] = 0 },
		"grid x of 2^31":    func(g *cuda.Geometry) { g.Grid[0] = 1 << 31 },
		"grid y of 65,536":  func(g *cuda.Geometry) { g.Grid[1] = 65536 },
		"grid z of 65,536":  func(g *cuda.Geometry) { g.Grid[2] = 65536 },
		"block of 0":        func(g *cuda.Geometry) { g.Block[1] = 0 },
		"block of 1,025":    func(g *cuda.Geometry) { g.Block[0] = 1025 },
		"block of 1,056":    func(g *cuda.Geometry) { g.Block = [3]uint16{33, 32, 1} },
		"block z of 65":     func(g *cuda.Geometry) { g.Block[2] = 65 },
		"256 MiB of shared": func(g *cuda.Geometry) { g.Shared = 256 << 20 },
	} {
		g := one
		change(&g)
		var b cuda.Batch
		b.Launch(s, f, g, 16)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue, name)
	}
	// The limits themselves are fine: n is 0, so nothing is written.
	x.submit(func(b *cuda.Batch) {
		b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{1, 3, 5}, Block: [3]uint16{16, 1, 64}}, 16)
		b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1024, 1, 1}, Shared: 48 << 10}, 16)
	})
	x.sync(s)
}

func testArguments(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f := x.stream(), x.kernel("fill_index")
	one := cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}
	wrong := []int{cuda.MaxArgBytes + 16, 1 << 40, -1}
	if v := d.Info().Driver; x.simulated() || v == 0 || v >= 12040 {
		// An older driver does not say what a kernel takes, and none checks it.
		wrong = append(wrong, 0, 8, 12, 24)
	}
	for _, n := range wrong {
		var b cuda.Batch
		b.Launch(s, f, one, n)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue, "%d bytes", n)
	}
}

// packed takes a u8, the address, a u16, a u32 and three bytes, each at a multiple
// of its size, and writes all but the address to words at it.
func testPackedArguments(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, f := x.stream(), x.alloc(64), x.kernel("packed")
	x.write(p, words(9, 9, 9, 9, 9, 9, 9))
	x.submit(func(b *cuda.Batch) {
		a := b.Launch(s, f, shape(one, one, 0), 27)
		for i := range a {
			a[i] = 0xee // what is between them is nobody's
		}
		a[0] = 0x81
		binary.LittleEndian.PutUint64(a[8:], uint64(p))
		binary.LittleEndian.PutUint16(a[16:], 0x9234)
		binary.LittleEndian.PutUint32(a[20:], 0xa2345678)
		copy(a[24:], []byte{0xb1, 0xb2, 0xb3})
	})
	x.sync(s)
	require.Equal(t, words(0x81, 0x9234, 0xa2345678, 0xb1, 0xb2, 0xb3, 9), x.read(p, 28))
}

func testArgumentsCopied(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, f := x.stream(), x.alloc(400), x.kernel("fill_index")
	x.busy(s)
	var b cuda.Batch
	fillIndex(&b, s, f, p, 100, 7)
	require.NoError(t, d.Submit(&b))
	clear(b.Arena())
	b.Reset()
	x.sync(s)
	require.Equal(t, counted(100, 7), x.read(p, 400))
}

func testUnknownFunction(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s := x.stream()
	for _, f := range []cuda.Function{0, 0xdead, cuda.Function(s)} {
		var b cuda.Batch
		fillIndex(&b, s, f, 0, 0, 0)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidHandle)
	}
}

func testBadPTX(t *testing.T, d cuda.Device) {
	for _, src := range []string{"", "not PTX", ".version 7.8\n.target sm_70\n.address_size 64\n.visible .entry k()\n{\n\tfrobnicate.u32 %r1;\n}\n"} {
		_, err := d.LoadModule([]byte(src))
		require.Error(t, err, "%q", src)
		ok := errors.Is(err, cuda.ErrInvalidPTX) || errors.Is(err, cuda.ErrInvalidImage)
		if src == "" && !newBench(t, d).simulated() { // no page says which of the call's codes it is
			ok = ok || errors.Is(err, cuda.ErrInvalidValue) || errors.Is(err, cuda.ErrNotFound)
		}
		require.True(t, ok, "%q: %v", src, err)
	}
}

func testNoSuchKernel(t *testing.T, d cuda.Device) {
	m, err := d.LoadModule(image)
	require.NoError(t, err)
	_, err = d.Function(m, "no_such_kernel")
	require.ErrorIs(t, err, cuda.ErrNotFound)
	_, err = d.Function(0, "fill_index")
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
}

func testUnload(t *testing.T, d cuda.Device) {
	m, err := d.LoadModule(image)
	require.NoError(t, err)
	require.NoError(t, d.UnloadModule(m))
	require.ErrorIs(t, d.UnloadModule(m), cuda.ErrInvalidHandle)
	_, err = d.Function(m, "fill_index")
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
}

func testIllegalAddress(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, e, f := x.stream(), x.event(), x.kernel("fill_index")
	release := x.hold(s) // the kernel fails when all is submitted
	x.submit(func(b *cuda.Batch) {
		fillIndex(b, s, f, 0x1000, 128, 0)
		b.Record(s, e)
	})
	release()
	err := d.SyncStream(x.ctx, s)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	require.True(t, cuda.Sticky(err))
	for what, err := range map[string]error{
		"poll": d.Poll([]cuda.Mark{{Event: e}}), "sync": d.Sync(x.ctx), "read": d.Read(make([]byte, 1), 0x1000),
	} {
		require.ErrorIs(t, err, cuda.ErrIllegalAddress, what)
	}
	var b cuda.Batch
	b.Record(s, e)
	var se *cuda.SubmitError
	require.ErrorAs(t, d.Submit(&b), &se)
	require.ErrorIs(t, se, cuda.ErrIllegalAddress)
	require.Equal(t, []int{0}, se.Done)
	_, err = d.NewEvent()
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
}

func testSameFunction(t *testing.T, d cuda.Device) {
	m, err := d.LoadModule(image)
	require.NoError(t, err)
	f, err := d.Function(m, "fill_index")
	require.NoError(t, err)
	again, err := d.Function(m, "fill_index")
	require.NoError(t, err)
	require.Equal(t, f, again)
	other, err := d.Function(m, "copy_words")
	require.NoError(t, err)
	require.NotEqual(t, f, other)
}

// More launches than may be pending: Submit waits for room and loses none.
func testManyLaunches(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, f := x.stream(), x.alloc(4*1100), x.kernel("fill_index")
	x.submit(func(b *cuda.Batch) {
		for i := range uint32(1100) {
			fillIndex(b, s, f, p+cuda.DevicePtr(4*i), 1, i)
		}
	})
	x.sync(s)
	require.Equal(t, counted(1100, 0), x.read(p, 4*1100))
}

func testTwoModules(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	m1, err := d.LoadModule(image)
	require.NoError(t, err)
	m2, err := d.LoadModule(image)
	require.NoError(t, err)
	require.NotEqual(t, m1, m2)
	f1, err := d.Function(m1, "fill_index")
	require.NoError(t, err)
	f2, err := d.Function(m2, "fill_index")
	require.NoError(t, err)
	require.NotEqual(t, f1, f2)
	require.NoError(t, d.UnloadModule(m1))
	s, p := x.stream(), x.alloc(40)
	x.submit(func(b *cuda.Batch) { fillIndex(b, s, f2, p, 10, 5) })
	x.sync(s)
	require.Equal(t, counted(10, 5), x.read(p, 40))
}

func testStickyWakes(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f := x.stream(), x.kernel("fill_index")
	_, release := x.held(s)
	x.submit(func(b *cuda.Batch) { fillIndex(b, s, f, 0x1000, 128, 0) })
	told := make(chan error, 3)
	for range cap(told) {
		d.Clock().Go("waiter", func() { told <- d.SyncStream(x.ctx, s) })
	}
	release()
	x.until("all waiters are told", func() bool { return len(told) == cap(told) })
	for range cap(told) {
		require.ErrorIs(t, <-told, cuda.ErrIllegalAddress)
	}
}

func testStickyStops(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, h := x.stream(), x.kernel("fill_index"), x.pinned(64)
	copy(h.Host, pattern(64, 1))
	release := x.hold(s)
	x.submit(func(b *cuda.Batch) {
		fillIndex(b, s, f, 0x1000, 128, 0)
		b.Fill8(s, h.Device, 0, 64)
	})
	release()
	require.ErrorIs(t, d.SyncStream(x.ctx, s), cuda.ErrIllegalAddress)
	require.Equal(t, pattern(64, 1), h.Host)
}
