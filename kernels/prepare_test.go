package kernels

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// stepRig is an arena with two pools of two tables each.
type stepRig struct {
	*rig
	tables []*Table
	row    cuda.DevicePtr // of the longest block
	bytes  []byte         // of row
	mem    []byte
}

func newStepRig(t testing.TB, size uint64) *stepRig {
	r := &stepRig{rig: newRig(t, size)}
	r.bytes = make([]byte, 4096)
	rand.NewChaCha8([32]byte{8}).Read(r.bytes)
	r.row = r.upload(t, r.bytes)
	r.mem = make([]byte, size)
	rand.NewChaCha8([32]byte{9}).Read(r.mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), r.mem))
	return r
}

// setUp makes two pools, each with a table of all its pages and one of some.
func (r *stepRig) setUp(t testingT, blocks int, pages [4]uint64, tile uint64) {
	at := r.arena
	for pool := range kv.PoolID(2) {
		l := layout.Table{Pool: pool, Blocks: blocks, RealNull: pool == 1}
		for _, page := range pages[2*pool : 2*pool+2] {
			l.Segments = append(l.Segments, layout.Segment{Base: at, Stride: page + 3, Page: page})
			at += uint64(blocks) * (page + 3)
		}
		some := l
		some.Segments = l.Segments[1:]
		r.tables = append(r.tables, r.table(t, l, tile), r.table(t, some, tile))
	}
}

func (r *stepRig) closeTables(t testingT) {
	for _, table := range r.tables {
		require.NoError(t, table.Close())
	}
	r.tables = r.tables[:0]
}

// stepOp is one thing that a step needs: what the twin does, one after the other.
type stepOp struct {
	table int
	kind  int // 0 zero, 1 reset to a row, 2 reset to zeros, 3 copy
	pairs []Pair
}

func (o stepOp) ids() []kv.Block {
	var ids []kv.Block
	for _, p := range o.pairs {
		ids = append(ids, p.Dst)
	}
	return ids
}

func (r *stepRig) add(p *Preparation, o stepOp) error {
	t := r.tables[o.table]
	switch o.kind {
	case 0:
		return p.Zero(t, o.ids())
	case 1:
		return p.ResetState(t, o.ids(), r.row)
	case 2:
		return p.ResetState(t, o.ids(), 0)
	}
	return p.Copy(t, o.pairs)
}

func (r *stepRig) plain(o stepOp) {
	l := r.tables[o.table].Layout()
	switch o.kind {
	case 0, 2:
		plainZero(l, r.arena, r.mem, o.ids())
	case 1:
		plainReset(l, r.arena, r.mem, o.ids(), r.bytes)
	default:
		for _, p := range o.pairs {
			plainCopy(l, r.arena, r.mem, []Pair{p})
		}
	}
}

// levels is the plain twin of how many launches a list of operations takes: the
// longest chain of blocks that are written again, or read and written.
func (r *stepRig) levels(ops []stepOp) int {
	type access struct {
		pool        kv.PoolID
		block       kv.Block
		level       int
		write       bool
		table, kind int
	}
	var done []access
	most := 0
	for _, o := range ops {
		l := r.tables[o.table].Layout()
		kind := o.kind
		if kind == 2 {
			kind = 0
		}
		for _, p := range o.pairs {
			if !written(l, p.Dst) || kind == 3 && (!written(l, p.Src) || p.Dst == p.Src) {
				continue
			}
			level, again := 0, false
			for _, a := range done {
				if a.pool != l.Pool {
					continue
				}
				if a.block == p.Dst || kind == 3 && a.block == p.Src && a.write {
					level = max(level, a.level)
				}
				if a.block == p.Dst && a.write {
					again = a.table == o.table && a.kind == kind && kind != 3
				}
			}
			if again {
				continue
			}
			level++
			done = append(done, access{l.Pool, p.Dst, level, true, o.table, kind})
			if kind == 3 {
				done = append(done, access{pool: l.Pool, block: p.Src, level: level})
			}
			most = max(most, level)
		}
	}
	return most
}

func drawOps(t *rapid.T) []stepOp {
	id := rapid.Int32Range(-1, 9)
	return rapid.SliceOfN(rapid.Custom(func(t *rapid.T) stepOp {
		o := stepOp{table: rapid.IntRange(0, 3).Draw(t, "table"), kind: rapid.IntRange(0, 3).Draw(t, "kind")}
		for range rapid.IntRange(0, 5).Draw(t, "pairs") {
			o.pairs = append(o.pairs, Pair{Dst: kv.Block(id.Draw(t, "dst")), Src: kv.Block(id.Draw(t, "src"))})
		}
		return o
	}), 0, 7).Draw(t, "operations")
}

// Whatever is asked for, the outcome is as if it were done one after the other, in
// as many launches as the longest chain of conflicts; from arguments and from memory.
func TestPreparationsAgainstPlainTwin(t *testing.T) {
	r := newStepRig(t, 64<<10)
	var p Preparation // the same throughout: nothing is left of one step in the next
	rapid.Check(t, func(t *rapid.T) {
		var sizes [4]uint64
		for i := range sizes {
			sizes[i] = rapid.Uint64Range(1, 900).Draw(t, "page")
		}
		r.setUp(t, rapid.IntRange(1, 9).Draw(t, "blocks"), sizes, 128<<rapid.IntRange(0, 2).Draw(t, "tile"))
		ops := drawOps(t)
		p.Reset()
		for _, o := range ops {
			require.NoError(t, r.add(&p, o))
		}
		require.Equal(t, r.levels(ops), p.Levels())
		r.set.sms = rapid.IntRange(1, 5).Draw(t, "SMs")
		if rapid.Bool().Draw(t, "in memory") {
			n := StepBytes(40)
			at := make([]cuda.DevicePtr, p.Levels()+1) // one more: it does nothing
			items := make([]uint64, len(at))
			for i := range at {
				text := make([]byte, n)
				var err error
				items[i], err = p.Encode(i, text)
				require.NoError(t, err)
				at[i] = r.upload(t, text)
			}
			require.Zero(t, items[p.Levels()])
			r.run(t, func(b *cuda.Batch) error {
				var err error
				for i := range at {
					err = errors.Join(err, r.set.PrepareStepAt(b, r.stream, at[i], max(items[i]/2, 1)))
				}
				return err
			})
			for _, a := range at {
				r.free(t, a)
			}
		} else {
			r.run(t, func(b *cuda.Batch) error {
				err := r.set.PrepareStep(b, r.stream, &p)
				require.Equal(t, p.Levels(), b.Len(), "launches")
				return err
			})
		}
		for _, o := range ops {
			r.plain(o)
		}
		requireSame(t, r.mem, r.read(t, r.arena, r.size), "arena")
		r.closeTables(t)
	})
}

// A step of several kinds of work without a conflict is one launch, however short
// its lists are.
func TestStepWithoutConflictsIsOneLaunch(t *testing.T) {
	r := newStepRig(t, 64<<10)
	r.setUp(t, 12, [4]uint64{500, 100, 300, 64}, 128)
	var p Preparation
	ops := []stepOp{
		{table: 0, kind: 0, pairs: []Pair{{Dst: 1}, {Dst: 2}, {Dst: 2}, {Dst: -1}}},
		{table: 3, kind: 1, pairs: []Pair{{Dst: 0}, {Dst: 4}}},
		{table: 2, kind: 3, pairs: []Pair{{5, 6}, {7, 6}}},
		{table: 1, kind: 3, pairs: []Pair{{8, 9}}},
	}
	for _, o := range ops {
		require.NoError(t, r.add(&p, o))
	}
	require.Equal(t, 1, p.Levels())
	r.run(t, func(b *cuda.Batch) error {
		err := r.set.PrepareStep(b, r.stream, &p)
		require.Equal(t, 1, b.Len())
		require.EqualValues(t, images[prepareStep].size[inFew], b.Commands()[0].Len)
		return err
	})
	for _, o := range ops {
		r.plain(o)
	}
	requireSame(t, r.mem, r.read(t, r.arena, r.size), "arena")

	// Zeroing of what was copied from has to wait, and the copy of what was zeroed.
	require.NoError(t, p.Zero(r.tables[2], []kv.Block{6}))
	require.Equal(t, 2, p.Levels())
	require.NoError(t, p.Copy(r.tables[2], []Pair{{10, 6}}))
	require.Equal(t, 3, p.Levels())
	p.Reset()
	require.Zero(t, p.Levels())
	var b cuda.Batch
	require.NoError(t, r.set.PrepareStep(&b, r.stream, &p))
	require.Zero(t, b.Len())
	r.closeTables(t)
}

// More blocks than one launch takes, and more kinds of work.
func TestStepsLongerThanALaunch(t *testing.T) {
	const blocks = 1100
	r := newRig(t, 16*blocks*8)
	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{10}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	var p Preparation
	var tables []*Table
	for i := range uint64(11) {
		l := layout.Table{Pool: kv.PoolID(i), Blocks: blocks,
			Segments: []layout.Segment{{Base: r.arena + i*blocks*8, Stride: 8, Page: 7}}}
		tables = append(tables, r.table(t, l, 0))
	}
	for i, c := range []struct{ n, launches int }{{manyStepPairs, 1}, {manyStepPairs + 1, 2}, {2*manyStepPairs + 1, 3}} {
		p.Reset()
		require.NoError(t, p.Zero(tables[i], sequence(c.n)))
		r.run(t, func(b *cuda.Batch) error {
			err := r.set.PrepareStep(b, r.stream, &p)
			require.Equal(t, c.launches, b.Len())
			return err
		})
		plainZero(tables[i].Layout(), r.arena, mem, sequence(c.n))
	}
	p.Reset()
	for _, table := range tables {
		require.NoError(t, p.Zero(table, []kv.Block{1099, 1098}))
		plainZero(table.Layout(), r.arena, mem, []kv.Block{1099, 1098})
	}
	_, err := p.Encode(0, make([]byte, StepBytes(100)))
	require.ErrorContains(t, err, "level 0 has more than 8 kinds of work")
	r.run(t, func(b *cuda.Batch) error {
		err := r.set.PrepareStep(b, r.stream, &p)
		require.Equal(t, 2, b.Len())
		return err
	})
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena")
	for _, table := range tables {
		require.NoError(t, table.Close())
	}
}

// Garbage in the pairs of a step in memory, and too many sections, damage nobody's
// memory: ids that are none are skipped, as in every kernel.
func TestGarbageInAStep(t *testing.T) {
	r := newStepRig(t, 16<<10)
	r.setUp(t, 9, [4]uint64{100, 100, 100, 100}, 128)
	var p Preparation
	require.NoError(t, p.Copy(r.tables[0], []Pair{{1, 2}}))
	require.NoError(t, p.Zero(r.tables[2], []kv.Block{0}))
	text := make([]byte, StepBytes(2))
	_, err := p.Encode(0, text)
	require.NoError(t, err)
	for _, bad := range []Pair{{1, 9}, {1, -1}, {1, 0}, {1, math.MaxInt32}, {9, 1}, {-1, 1}, {0, 1}, {math.MinInt32, 1}} {
		garbage := slices.Clone(text)
		copy(garbage[StepBytes(0):], pairBytes([]Pair{bad, {Dst: -5}}))
		garbage[0], garbage[3] = 2, 0
		at := r.upload(t, garbage)
		r.run(t, func(b *cuda.Batch) error { return r.set.PrepareStepAt(b, r.stream, at, 10) })
		requireSame(t, r.mem, r.read(t, r.arena, r.size), fmt.Sprint(bad))
		garbage[3] = 0xff
		require.NoError(t, r.dev.Write(at, garbage))
		r.run(t, func(b *cuda.Batch) error { return r.set.PrepareStepAt(b, r.stream, at, 10) })
		requireSame(t, r.mem, r.read(t, r.arena, r.size), fmt.Sprint(bad))
		r.free(t, at)
	}
	r.closeTables(t)
}

// A step in memory of a million blocks and copies, and one of a table of 100,000
// segments.
func TestLongSteps(t *testing.T) {
	n, segments := 1_000_000, uint64(100_000)
	if raceDetector {
		n, segments = 50_000, 10_000
	}
	r := newRig(t, max(4*uint64(n+2), 60*segments))
	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{11}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	table := r.table(t, layout.Table{Blocks: n + 2, Segments: []layout.Segment{{Base: r.arena, Stride: 4, Page: 3}}}, 0)
	var p Preparation
	half := kv.Block(n / 2)
	require.NoError(t, p.Zero(table, sequence(int(half))))
	plainZero(table.Layout(), r.arena, mem, sequence(int(half)))
	pairs := make([]Pair, half-1)
	for i := range pairs {
		pairs[i] = Pair{Dst: half + 1 + kv.Block(i), Src: kv.Block(n + 1)}
	}
	require.NoError(t, p.Copy(table, pairs))
	plainCopy(table.Layout(), r.arena, mem, pairs)
	require.Equal(t, 1, p.Levels())
	text := make([]byte, StepBytes(n))
	items, err := p.Encode(0, text)
	require.NoError(t, err)
	require.EqualValues(t, n-1, items)
	at := r.upload(t, text)
	r.run(t, func(b *cuda.Batch) error { return r.set.PrepareStepAt(b, r.stream, at, items) })
	requireSame(t, mem, r.read(t, r.arena, r.size), "a million")

	l := layout.Table{Blocks: 3}
	for i := range segments {
		l.Segments = append(l.Segments, layout.Segment{Base: r.arena + 60*i, Stride: 20, Page: 17})
	}
	many := r.table(t, l, 0)
	p.Reset()
	require.NoError(t, p.Zero(many, []kv.Block{1}))
	require.NoError(t, p.Copy(many, []Pair{{2, 1}}))
	require.Equal(t, 2, p.Levels())
	r.run(t, func(b *cuda.Batch) error { return r.set.PrepareStep(b, r.stream, &p) })
	plainZero(&l, r.arena, mem, []kv.Block{1, 2})
	requireSame(t, mem, r.read(t, r.arena, r.size), "many segments")
	require.NoError(t, many.Close())
	require.NoError(t, table.Close())
}

// Blocks beyond 2^31 and 2^32 bytes from the first.
func TestStepsBeyond32Bits(t *testing.T) {
	const stride, page = 3<<30 + 48, 300
	r := newRig(t, 9<<30)
	l := layout.Table{Blocks: 3, RealNull: true, Segments: []layout.Segment{{Base: r.arena, Stride: stride, Page: page}}}
	table := r.table(t, l, 0)
	edge := bytes.Repeat([]byte{0xA5}, page+64)
	row := make([]byte, page)
	rand.NewChaCha8([32]byte{12}).Read(row)
	rowAt := r.upload(t, row)
	for b := range kv.Block(3) {
		require.NoError(t, r.dev.Write(cuda.DevicePtr(l.Segments[0].Address(b)), edge))
	}
	var p Preparation
	require.NoError(t, p.ResetState(table, []kv.Block{2}, rowAt))
	require.NoError(t, p.Copy(table, []Pair{{1, 2}}))
	require.NoError(t, p.Zero(table, []kv.Block{0}))
	r.run(t, func(b *cuda.Batch) error { return r.set.PrepareStep(b, r.stream, &p) })
	for b, want := range [][]byte{make([]byte, page), row, row} {
		requireSame(t, append(slices.Clone(want), edge[page:]...), r.read(t, l.Segments[0].Address(kv.Block(b)), uint64(len(edge))), fmt.Sprintf("block %d", b))
	}
	require.NoError(t, table.Close())
}

// A graph holds launches for two levels. Each step writes what it needs into the
// memory that they read, and one that has less leaves launches that do nothing.
func TestGraphOfSteps(t *testing.T) {
	r := newStepRig(t, 64<<10)
	g, ok := r.dev.(cuda.Grapher)
	if !ok {
		t.Skipf("%s captures no streams", r.dev.Info().Backend)
	}
	r.setUp(t, 9, [4]uint64{800, 100, 300, 64}, 128)
	n := StepBytes(16)
	memory, err := r.dev.AllocPinned(2*uint64(n), cuda.AllocOptions{Name: "steps"})
	require.NoError(t, err)
	require.NoError(t, g.BeginCapture(r.stream, cuda.CaptureRelaxed))
	var b cuda.Batch
	for i := range 2 {
		require.NoError(t, r.set.PrepareStepAt(&b, r.stream, memory.Device+cuda.DevicePtr(i*n), 20))
	}
	require.NoError(t, r.dev.Submit(&b))
	graph, err := g.EndCapture(r.stream)
	require.NoError(t, err)
	exec, err := g.Instantiate(graph)
	require.NoError(t, err)
	require.NoError(t, g.DestroyGraph(graph))
	var p Preparation
	for i, ops := range [][]stepOp{
		{{table: 0, kind: 0, pairs: []Pair{{Dst: 1}, {Dst: 2}}}, {table: 3, kind: 1, pairs: []Pair{{Dst: 1}}}},
		{{table: 2, kind: 3, pairs: []Pair{{3, 4}}}, {table: 2, kind: 0, pairs: []Pair{{Dst: 4}, {Dst: 5}}}},
		{},
		{{table: 1, kind: 3, pairs: []Pair{{7, 8}, {6, 7}}}},
	} {
		p.Reset()
		for _, o := range ops {
			require.NoError(t, r.add(&p, o))
			r.plain(o)
		}
		require.LessOrEqual(t, p.Levels(), 2)
		for level := range 2 {
			_, err := p.Encode(level, memory.Host[level*n:(level+1)*n])
			require.NoError(t, err)
		}
		b.Reset()
		b.LaunchGraph(r.stream, exec)
		require.NoError(t, r.dev.Submit(&b))
		require.NoError(t, r.dev.SyncStream(context.Background(), r.stream))
		requireSame(t, r.mem, r.read(t, r.arena, r.size), fmt.Sprintf("arena after step %d", i))
	}
	require.NoError(t, g.DestroyGraphExec(exec))
	require.NoError(t, r.dev.FreePinned(memory))
	r.closeTables(t)
}

func TestRefusedPreparations(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	var p Preparation
	require.ErrorContains(t, p.Zero(nil, sequence(1)), "no table")
	require.ErrorContains(t, p.ResetState(nil, sequence(1), 64), "no table")
	require.ErrorContains(t, p.Copy(nil, []Pair{{1, 2}}), "no table")
	require.NoError(t, p.Zero(f.table, sequence(3)))
	require.ErrorIs(t, p.Zero(other.table, sequence(3)), cuda.ErrInvalidValue)
	require.ErrorIs(t, p.Copy(other.table, []Pair{{1, 2}}), cuda.ErrInvalidValue)
	var b cuda.Batch
	require.ErrorIs(t, other.set.PrepareStep(&b, f.stream, &p), cuda.ErrInvalidValue)
	_, err := p.Encode(0, make([]byte, StepBytes(2)))
	require.ErrorContains(t, err, "level 0 takes 608 bytes, there are 600")
	for _, at := range []cuda.DevicePtr{0, 12} {
		require.ErrorIs(t, f.set.PrepareStepAt(&b, f.stream, at, 1), cuda.ErrInvalidValue)
	}
	require.ErrorIs(t, f.set.PrepareStepAt(&b, f.stream, 64, 0), cuda.ErrInvalidValue)
	require.NoError(t, f.table.Close())
	require.ErrorIs(t, f.set.PrepareStep(&b, f.stream, &p), cuda.ErrClosed, "closed since")
	p.Reset()
	require.ErrorIs(t, p.Zero(f.table, sequence(1)), cuda.ErrClosed)
	require.NoError(t, other.set.Close())
	require.ErrorIs(t, other.set.PrepareStep(&b, f.stream, new(Preparation)), cuda.ErrClosed)
	require.ErrorIs(t, other.set.PrepareStepAt(&b, f.stream, 64, 1), cuda.ErrClosed)
	require.Zero(t, b.Len())
}

func TestTablesWhosePagesShareBytes(t *testing.T) {
	d := noopdev.New(noopdev.Options{})
	base, err := d.Alloc(1<<16, cuda.AllocOptions{Name: "pool"})
	require.NoError(t, err)
	at := uint64(base)
	even, err := NewTable(d, layout.Table{Blocks: 4, Segments: []layout.Segment{
		{Base: at, Stride: 1000, Page: 600}, {Base: at + 500, Stride: 1000, Page: 100}}})
	require.NoError(t, err)
	var p Preparation
	require.NoError(t, p.Copy(even, []Pair{{1, 2}}), "the same bytes twice")
	require.ErrorIs(t, p.ResetState(even, sequence(1), 64), cuda.ErrInvalidValue)
	require.NoError(t, p.ResetState(even, sequence(1), 0))
	require.NoError(t, even.Close())
}

func TestPreparationsAllocateNothing(t *testing.T) {
	f := newFixture(t)
	var p Preparation
	var b cuda.Batch
	ids := sequence(300)
	pairs := []Pair{{301, 1}, {302, 2}, {303, 303}, {1, 4}}
	long := slices.Repeat([]Pair{{-1, 1}}, 2*fewPairs)
	n := testing.AllocsPerRun(100, func() {
		b.Reset()
		p.Reset()
		if err := errors.Join(p.Zero(f.table, ids), p.ResetState(f.table, ids, 64), p.Copy(f.table, pairs),
			f.set.PrepareStep(&b, f.stream, &p), f.set.CopyBlocks(&b, f.stream, f.table, pairs[:3]),
			f.set.CopyBlocks(&b, f.stream, f.table, long),
			f.set.PrepareStepAt(&b, f.stream, 64, 10)); err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, n)
	require.Equal(t, 4, p.Levels())
}
