package cuda

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

func TestCommandIsFlat(t *testing.T) {
	require.EqualValues(t, 64, unsafe.Sizeof(Command{}))
	require.EqualValues(t, 16, unsafe.Offsetof(Command{}.Grid)+8, "C reads these offsets")
	require.EqualValues(t, 40, unsafe.Offsetof(Command{}.A))
	require.EqualValues(t, 32, unsafe.Sizeof(Mark{}))
}

func TestEveryOpHasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := OpNone; o < opEnd; o++ {
		require.NotEmpty(t, o.String())
		require.False(t, seen[o.String()], o.String())
		seen[o.String()] = true
	}
	require.Equal(t, "op 200", Op(200).String())
}

func TestBatch(t *testing.T) {
	var b Batch
	for range 2 { // the second time with memory that has been used
		b.Fill8(7, 100, 3, 5)
		a := b.Launch(9, 33, Geometry{Grid: [3]uint32{4, 5, 6}, Block: [3]uint16{7, 8, 9}, Shared: 10}, 12)
		require.Equal(t, make([]byte, 12), a, "arguments start as zero")
		for i := range a {
			a[i] = byte(i + 1)
		}
		require.Len(t, b.Launch(7, 34, Geometry{}, 3), 3)
		b.Copy(9, 1, 2, 3)
		b.Fill32(7, 4, 5, 6)
		b.Record(9, 11)
		b.WaitEvent(7, 11)

		require.Equal(t, []Stream{7, 9}, b.Streams())
		require.Equal(t, 7, b.Len())
		c := b.Commands()
		require.Equal(t, Command{Op: OpFill, A: 100, B: 3, C: 5}, c[0])
		require.Equal(t, Command{Op: OpLaunch, Stream: 1, A: 33, Grid: [3]uint32{4, 5, 6}, Block: [3]uint16{7, 8, 9}, Shared: 10, Len: 12}, c[1])
		require.Equal(t, Command{Op: OpLaunch, A: 34, Off: 16, Len: 3}, c[2])
		require.Equal(t, Command{Op: OpCopy, Stream: 1, A: 1, B: 2, C: 3}, c[3])
		require.Equal(t, Command{Op: OpFill, Flags: 2, A: 4, B: 5, C: 6}, c[4])
		require.Equal(t, Command{Op: OpRecord, Stream: 1, A: 11}, c[5])
		require.Equal(t, Command{Op: OpWaitEvent, A: 11}, c[6])
		require.Equal(t, byte(12), b.Arena()[11])

		p := b.Part(3, 6)
		require.Equal(t, c[3:6], p.Commands())
		require.Equal(t, b.Streams(), p.Streams())
		b.Reset()
		require.Zero(t, b.Len()+len(b.Streams())+len(b.Arena()))
	}
}

func TestBatchAllocatesNothingWhenUsedAgain(t *testing.T) {
	var b Batch
	build := func() {
		b.Reset()
		for i := range 50 {
			b.Launch(Stream(i%3), 1, Geometry{}, 100)
			b.Record(Stream(i%3), Event(i))
		}
	}
	build()
	require.Zero(t, testing.AllocsPerRun(20, build))
}

func TestBatchOverTooManyStreams(t *testing.T) {
	if testing.Short() {
		t.Skip("adds 65,537 streams to one batch")
	}
	var b Batch
	b.streams = make([]Stream, math.MaxUint16+1)
	for i := range b.streams {
		b.streams[i] = Stream(i)
	}
	b.Record(math.MaxUint16, 1)
	require.Panics(t, func() { b.Record(math.MaxUint16+1, 1) })
}

func BenchmarkBatchAdd(b *testing.B) {
	var x Batch
	b.ReportAllocs()
	for b.Loop() {
		x.Reset()
		x.Launch(1, 2, Geometry{}, 64)
		x.Record(1, 3)
		x.WaitEvent(2, 3)
	}
}

func TestLaunchWithImpossibleArguments(t *testing.T) {
	var b Batch
	require.Len(t, b.Launch(7, 33, Geometry{}, MaxArgBytes), MaxArgBytes)
	g := Geometry{Grid: [3]uint32{4, 5, 6}, Block: [3]uint16{7, 8, 9}, Shared: 10}
	for n, want := range map[int]uint32{
		-1: math.MaxUint32, math.MinInt: math.MaxUint32, math.MaxInt: math.MaxUint32, math.MaxUint32: math.MaxUint32,
		MaxArgBytes + 1: MaxArgBytes + 1, math.MaxUint32 - 1: math.MaxUint32 - 1,
	} {
		before := b.Len()
		args := b.Launch(9, 34, g, n)
		require.Nil(t, args, n)
		require.Zero(t, copy(args, "nowhere"))
		require.Equal(t, Command{Op: OpLaunch, Stream: 1, A: 34, Grid: g.Grid, Block: g.Block, Shared: 10, Len: want}, b.Commands()[before], n)
		require.Len(t, b.Arena(), MaxArgBytes, "nothing was taken")
	}
}

func TestWordsAndSignals(t *testing.T) {
	var b Batch
	b.WriteWord(5, 16, 7)
	b.WaitWord(6, 20, 8)
	b.WaitWordFlush(5, 24, 9)
	b.Signal(6, 33, 1<<40)
	require.Equal(t, []Command{
		{Op: OpWriteWord, A: 16, B: 7},
		{Op: OpWaitWord, Stream: 1, A: 20, B: 8},
		{Op: OpWaitWord, Flags: WaitFlush, A: 24, B: 9},
		{Op: OpSignal, Stream: 1, A: 33, B: 1 << 40},
	}, b.Commands())
	p := PinnedBuffer{Host: make([]byte, 64)}
	p.Word(60).Store(0x01020304)
	require.Equal(t, uint32(0x01020304), p.Word(60).Load())
	require.NotZero(t, p.Host[60])
	require.Panics(t, func() { p.Word(61) })
	require.Panics(t, func() { p.Word(64) })
	require.Panics(t, func() { p.Word(58) }, "not aligned")
}
