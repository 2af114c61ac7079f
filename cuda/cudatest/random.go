package cudatest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// Random work whose order events fix, against a plain twin in Go.
var randomBehaviours = []behaviour{
	{name: "graph: random work leaves what it leaves uncaptured", page: capturePage, one: testGraphRandom},
}

const (
	cellBytes = 256
	cells     = 6
)

// cellOp is a step of a program over cells of memory.
type cellOp struct {
	stream   int
	fill     bool // of dst with v; else a copy, or with kernel one by a kernel
	kernel   bool
	dst, src int
	v        byte
	after    []int // steps in other streams that touch the same cells
}

// program makes a random program. Two steps that touch a cell, of which one
// writes it, are in the order of the list.
func program(r *rand.Rand, steps, streams int) []cellOp {
	var ops []cellOp
	for range steps {
		op := cellOp{stream: r.IntN(streams), fill: r.IntN(2) == 0, kernel: r.IntN(2) == 0, dst: r.IntN(cells), v: byte(1 + r.IntN(255))}
		op.src = (op.dst + 1 + r.IntN(cells-1)) % cells
		for i, earlier := range ops {
			conflict := earlier.dst == op.dst || !earlier.fill && earlier.src == op.dst || !op.fill && earlier.dst == op.src
			if conflict && earlier.stream != op.stream {
				op.after = append(op.after, i)
			}
		}
		ops = append(ops, op)
	}
	return ops
}

func (op cellOp) plain(mem []byte) {
	dst := mem[op.dst*cellBytes:][:cellBytes]
	if op.fill {
		copy(dst, bytes.Repeat([]byte{op.v}, cellBytes))
	} else {
		copy(dst, mem[op.src*cellBytes:][:cellBytes])
	}
}

func testGraphRandom(t *testing.T, d cuda.Device) {
	x := newGraphs(t, d)
	streams := []cuda.Stream{x.stream(), x.stream(), x.stream()}
	kernel, p := x.kernel("copy_words"), x.alloc(cells*cellBytes)
	cell := func(i int) cuda.DevicePtr { return p + cuda.DevicePtr(i*cellBytes) }
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 7))
		ops := program(r, 16, len(streams))
		var done []cuda.Event
		for range len(ops) + len(streams) {
			done = append(done, x.event())
		}
		build := func(b *cuda.Batch) {
			b.Record(streams[0], done[len(ops)])
			for _, s := range streams[1:] {
				b.WaitEvent(s, done[len(ops)])
			}
			for i, op := range ops {
				s := streams[op.stream]
				for _, j := range op.after {
					b.WaitEvent(s, done[j])
				}
				switch {
				case op.fill:
					b.Fill8(s, cell(op.dst), op.v, cellBytes)
				case op.kernel:
					copyWords(b, s, kernel, cell(op.dst), cell(op.src), cellBytes/4)
				default:
					b.Copy(s, cell(op.dst), cell(op.src), cellBytes)
				}
				b.Record(s, done[i])
			}
			for i, s := range streams[1:] {
				b.Record(s, done[len(ops)+1+i])
				b.WaitEvent(streams[0], done[len(ops)+1+i])
			}
		}
		want := pattern(cells*cellBytes, byte(seed))
		x.write(p, want)
		e := x.exec(streams[0], build)
		require.Equal(t, want, x.read(p, len(want)), "seed %d: captured work has run", seed)
		for _, run := range []func(b *cuda.Batch){build, func(b *cuda.Batch) { b.LaunchGraph(streams[seed%3], e) }, func(b *cuda.Batch) { b.LaunchGraph(streams[0], e) }} {
			x.submit(run)
			for _, s := range streams {
				x.sync(s)
			}
			for _, op := range ops {
				op.plain(want)
			}
			require.Equal(t, want, x.read(p, len(want)), "seed %d", seed)
		}
		require.NoError(t, x.g.DestroyGraphExec(e))
		for _, e := range done {
			require.NoError(t, d.DestroyEvent(e))
		}
	}
}
