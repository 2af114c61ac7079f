package cudatest

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var limitBehaviours = []behaviour{
	{name: "limits: more shared memory is had for the asking", page: launchPage, one: testSharedOptIn},
	{name: "limits: static shared memory counts as well", page: limitsPage, one: testStaticShared},
	{name: "limits: threads that the kernel itself allows", page: maxntidPage, one: testKernelThreads},
	{name: "limits: the ends of each axis", page: limitsPage, one: testAxisEnds},
	{name: "limits: the most parameters that a kernel takes", page: paramsPage, one: testMostParameters},
	{name: "limits: a refused launch leaves nothing behind", page: launchPage, one: testRefusedLaunch},
}

func shape(grid, block [3]int, shared uint32) cuda.Geometry {
	return cuda.Geometry{Grid: [3]uint32{uint32(grid[0]), uint32(grid[1]), uint32(grid[2])},
		Block: [3]uint16{uint16(block[0]), uint16(block[1]), uint16(block[2])}, Shared: shared}
}

var one = [3]int{1, 1, 1}

// launchAt launches a kernel whose argument is a place, and returns what Submit says.
func (x *bench) launchAt(s cuda.Stream, f cuda.Function, g cuda.Geometry, p cuda.DevicePtr) error {
	x.b.Reset()
	binary.LittleEndian.PutUint64(x.b.Launch(s, f, g, 8), uint64(p))
	return x.Submit(&x.b)
}

// dynamic_shared stores 7 in the last word of its shared memory and writes it
// to its argument.
func testSharedOptIn(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, p := x.stream(), x.kernel("dynamic_shared"), x.word(0)
	by, most := d.Info().SharedMemory, d.Info().SharedOptIn
	require.NoError(t, x.launchAt(s, f, shape(one, one, by), p))
	require.ErrorIs(t, x.launchAt(s, f, shape(one, one, by+16), p), cuda.ErrInvalidValue)
	if err := d.AllowShared(f, by); errors.Is(err, cuda.ErrNotSupported) {
		t.Skipf("%s: %v", d.Info().Backend, err)
	}
	require.ErrorIs(t, d.AllowShared(f, most+1), cuda.ErrInvalidValue)
	require.ErrorIs(t, d.AllowShared(0xdead, most), cuda.ErrInvalidHandle)
	require.ErrorIs(t, x.launchAt(s, f, shape(one, one, most), p), cuda.ErrInvalidValue, "before it was asked for")
	require.NoError(t, d.AllowShared(f, most))
	require.NoError(t, x.launchAt(s, f, shape(one, one, most), p))
	require.ErrorIs(t, x.launchAt(s, f, shape(one, one, most+16), p), cuda.ErrInvalidValue)
	x.sync(s)
	require.Equal(t, uint32(7), x.load(p))
}

// static_shared has 16 KiB of its own.
func testStaticShared(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, p := x.stream(), x.kernel("static_shared"), x.word(0)
	rest := d.Info().SharedMemory - 16<<10
	require.NoError(t, x.launchAt(s, f, shape(one, one, rest), p))
	require.ErrorIs(t, x.launchAt(s, f, shape(one, one, rest+16), p), cuda.ErrInvalidValue)
	x.sync(s)
	require.Equal(t, uint32(9), x.load(p))
}

// few_threads is declared for at most 64. Which of two codes a launch of more
// gets, no page says.
func testKernelThreads(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, p := x.stream(), x.kernel("few_threads"), x.word(0)
	require.NoError(t, x.launchAt(s, f, shape(one, [3]int{8, 8, 1}, 0), p))
	for _, block := range [][3]int{{65, 1, 1}, {13, 5, 1}, {1024, 1, 1}} {
		err := x.launchAt(s, f, shape(one, block, 0), p)
		require.True(t, errors.Is(err, cuda.ErrInvalidValue) || errors.Is(err, cuda.ErrLaunchResources), "%v: %v", block, err)
	}
	x.sync(s)
	require.Equal(t, uint32(3), x.load(p))
}

func testAxisEnds(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f := x.stream(), x.kernel("fill_index")
	for _, g := range []cuda.Geometry{
		shape([3]int{1, 65535, 1}, one, 0), shape([3]int{1, 1, 65535}, one, 0),
		shape(one, [3]int{1024, 1, 1}, 0), shape(one, [3]int{1, 1024, 1}, 0), shape(one, [3]int{1, 16, 64}, 0),
	} {
		x.submit(func(b *cuda.Batch) { b.Launch(s, f, g, 16) }) // no words to fill
	}
	x.sync(s)
	for _, g := range []cuda.Geometry{
		shape([3]int{0, 1, 1}, one, 0), shape([3]int{1, 0, 1}, one, 0), shape([3]int{1, 1, 0}, one, 0),
		shape(one, [3]int{0, 1, 1}, 0), shape(one, [3]int{1, 0, 1}, 0), shape(one, [3]int{1, 1, 0}, 0),
		shape([3]int{1, 65536, 1}, one, 0), shape([3]int{1, 1, 65536}, one, 0), shape([3]int{1 << 31, 1, 1}, one, 0),
		shape(one, [3]int{1025, 1, 1}, 0), shape(one, [3]int{1, 1025, 1}, 0), shape(one, [3]int{1, 1, 65}, 0),
		shape(one, [3]int{2, 513, 1}, 0), shape(one, [3]int{17, 1, 64}, 0),
	} {
		x.b.Reset()
		x.b.Launch(s, f, g, 16)
		require.ErrorIs(t, d.Submit(&x.b), cuda.ErrInvalidValue, "grid %v, block %v", g.Grid, g.Block)
	}
}

// most_parameters takes 4,096 bytes: it writes the last word to the address in
// the first.
func testMostParameters(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, p := x.stream(), x.kernel("most_parameters"), x.word(0)
	x.submit(func(b *cuda.Batch) {
		a := b.Launch(s, f, shape(one, one, 0), cuda.MaxArgBytes)
		binary.LittleEndian.PutUint64(a, uint64(p))
		binary.LittleEndian.PutUint32(a[cuda.MaxArgBytes-4:], 4711)
	})
	x.sync(s)
	require.Equal(t, uint32(4711), x.load(p))
	x.b.Reset()
	x.b.Launch(s, f, shape(one, one, 0), cuda.MaxArgBytes+8)
	require.ErrorIs(t, d.Submit(&x.b), cuda.ErrInvalidValue)
}

func testRefusedLaunch(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, f, p, e := x.stream(), x.kernel("static_shared"), x.word(0), x.event()
	x.b.Reset()
	binary.LittleEndian.PutUint64(x.b.Launch(s, f, shape(one, one, 0), 8), uint64(p))
	binary.LittleEndian.PutUint64(x.b.Launch(s, f, shape(one, one, 1<<20), 8), uint64(p))
	x.b.Record(s, e)
	var se *cuda.SubmitError
	require.ErrorAs(t, d.Submit(&x.b), &se)
	require.ErrorIs(t, se, cuda.ErrInvalidValue)
	require.Equal(t, 1, se.Index)
	require.Equal(t, []int{1}, se.Done)
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.sync(s)
	require.True(t, x.fired(e))
	require.Equal(t, uint32(9), x.load(p))
}
