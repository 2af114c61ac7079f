package kernels

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// The plain twins of copy_blocks. Copies read what was there before any of them.
func plainCopy(l *layout.Table, arena uint64, mem []byte, pairs []Pair) {
	old := slices.Clone(mem)
	for _, p := range pairs {
		if !written(l, p.Dst) || !written(l, p.Src) {
			continue
		}
		var from [][]byte
		pages(l, arena, old, p.Src, func(_ int, b []byte) { from = append(from, b) })
		pages(l, arena, mem, p.Dst, func(i int, b []byte) { copy(b, from[i]) })
	}
}

func plainGather(l *layout.Table, arena uint64, mem, stage []byte, stride uint64, rows int, pairs []Pair) {
	for _, p := range pairs {
		if p.Dst < 0 || int(p.Dst) >= rows || !written(l, p.Src) {
			continue
		}
		rest := stage[uint64(p.Dst)*stride:]
		pages(l, arena, mem, p.Src, func(_ int, b []byte) { rest = rest[copy(rest, b):] })
	}
}

func plainScatter(l *layout.Table, arena uint64, mem, stage []byte, stride uint64, rows int, pairs []Pair) {
	for _, p := range pairs {
		if p.Src < 0 || int(p.Src) >= rows || !written(l, p.Dst) {
			continue
		}
		rest := stage[uint64(p.Src)*stride:]
		pages(l, arena, mem, p.Dst, func(_ int, b []byte) { rest = rest[copy(b, rest):] })
	}
}

// flip exchanges the sides of pairs.
func flip(pairs []Pair) []Pair {
	out := slices.Clone(pairs)
	for i, p := range out {
		out[i] = Pair{Dst: p.Src, Src: p.Dst}
	}
	return out
}

// checkCopies copies blocks, gathers into rows, and scatters from them, and compares
// the whole arena and the whole staging area, gaps included, with the plain twins.
// skew is where the staging area begins, rows are gap bytes apart.
func (r *rig) checkCopies(t testingT, l layout.Table, tile uint64, copies, rows []Pair, nrows int, skew, gap uint64, inMemory bool) {
	t.Helper()
	table := r.table(t, l, tile)
	mem := make([]byte, r.size)
	rng := rand.NewChaCha8([32]byte{3})
	rng.Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	stride := l.Bytes() + gap
	stage := make([]byte, skew+stride*uint64(nrows)+64)
	rng.Read(stage)
	at := r.upload(t, stage)
	s := Staging{At: at + cuda.DevicePtr(skew), Stride: stride, Rows: nrows}

	run := func(pairs []Pair, args func(*cuda.Batch) error, memory func(*cuda.Batch, List) error) {
		if !inMemory {
			r.run(t, args)
			return
		}
		beyond := append(slices.Clone(pairs), Pair{1, 2}, Pair{2, 1}) // behind the count: not to be used
		list := List{IDs: r.upload(t, pairBytes(beyond)), Max: len(beyond),
			Count: r.upload(t, binary.LittleEndian.AppendUint32(nil, uint32(len(pairs))))}
		r.run(t, func(b *cuda.Batch) error { return memory(b, list) })
		r.free(t, list.IDs)
		r.free(t, list.Count)
	}

	if table.uneven {
		require.ErrorIs(t, r.set.CopyBlocks(new(cuda.Batch), r.stream, table, copies), cuda.ErrInvalidValue)
		require.ErrorIs(t, r.set.CopyBlocksAt(new(cuda.Batch), r.stream, table, List{}), cuda.ErrInvalidValue)
	} else {
		run(copies, func(b *cuda.Batch) error { return r.set.CopyBlocks(b, r.stream, table, copies) },
			func(b *cuda.Batch, list List) error { return r.set.CopyBlocksAt(b, r.stream, table, list) })
		plainCopy(&l, r.arena, mem, copies)
		requireSame(t, mem, r.read(t, r.arena, r.size), "arena after copies")
	}

	run(rows, func(b *cuda.Batch) error { return r.set.GatherBlocks(b, r.stream, table, s, rows) },
		func(b *cuda.Batch, list List) error { return r.set.GatherBlocksAt(b, r.stream, table, s, list) })
	plainGather(&l, r.arena, mem, stage[skew:], stride, nrows, rows)
	requireSame(t, stage, r.read(t, uint64(at), uint64(len(stage))), "staging after a gather")
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a gather")

	back := flip(rows)
	rng.Read(stage)
	require.NoError(t, r.dev.Write(at, stage))
	if table.overlap {
		require.ErrorIs(t, r.set.ScatterBlocks(new(cuda.Batch), r.stream, table, s, back), cuda.ErrInvalidValue)
		require.ErrorIs(t, r.set.ScatterBlocksAt(new(cuda.Batch), r.stream, table, s, List{}), cuda.ErrInvalidValue)
	} else {
		run(back, func(b *cuda.Batch) error { return r.set.ScatterBlocks(b, r.stream, table, s, back) },
			func(b *cuda.Batch, list List) error { return r.set.ScatterBlocksAt(b, r.stream, table, s, list) })
		plainScatter(&l, r.arena, mem, stage[skew:], stride, nrows, back)
		requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a scatter")
		requireSame(t, stage, r.read(t, uint64(at), uint64(len(stage))), "staging after a scatter")
	}
	require.NoError(t, table.Close())
	r.free(t, at)
}

// All 256 pairs of places modulo 16 of source and destination, with pages of a few
// bytes, of some vectors, and of more than one unrolled turn.
func TestCopiesAtEveryAlignment(t *testing.T) {
	r := newRig(t, 96<<10)
	for base := range uint64(16) {
		for span := range uint64(16) {
			l := layout.Table{Blocks: 4}
			at := r.arena + 256 + base
			for _, page := range []uint64{span, 1376 + span, 8192 + span} {
				if page > 0 {
					// The distance between two blocks goes through all values, too.
					stride := page + 1 + (base*7+span)%16
					l.Segments = append(l.Segments, layout.Segment{Base: at, Stride: stride, Page: page})
					at += (4*stride + 64) &^ 15
				}
			}
			rows := []Pair{{Dst: 2, Src: 1}, {Dst: 0, Src: 3}}
			r.checkCopies(t, l, 0, []Pair{{Dst: 3, Src: 1}}, rows, 3, (base+3*span)%16, span%5, base%2 == 0)
		}
	}
}

func TestPairsThatAreSkipped(t *testing.T) {
	r := newRig(t, 4096)
	for name, pairs := range map[string][]Pair{
		"null":        {{0, 3}, {2, 1}},
		"from null":   {{2, 0}, {3, 1}},
		"padding":     {{-1, 1}, {2, -1}, {3, 1}, {-1, -1}},
		"lowest":      {{math.MinInt32, 1}, {1, math.MinInt32}},
		"highest":     {{math.MaxInt32, 1}, {2, math.MaxInt32}, {5, 4}},
		"not of pool": {{6, 1}, {1, 6}, {7, 100}, {4, 3}},
		"to itself":   {{3, 3}, {2, 4}},
		"only no-ops": {{1, 1}, {-1, 2}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, realNull := range []bool{false, true} {
				l := layout.Table{Blocks: 6, RealNull: realNull,
					Segments: []layout.Segment{{Base: r.arena + 1024, Stride: 300, Page: 299}}}
				r.checkCopies(t, l, 0, pairs, pairs, 5, 1, 2, false)
				r.checkCopies(t, l, 0, pairs, pairs, 5, 1, 2, true)
			}
		})
	}
}

// A copy of a block to itself does not disturb another that writes the block.
func TestCopyToItselfDoesNothing(t *testing.T) {
	r := newRig(t, 64<<10)
	l := layout.Table{Blocks: 4, Segments: []layout.Segment{{Base: r.arena, Stride: 16000, Page: 16000}}}
	table := r.table(t, l, 0)
	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{7}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	r.run(t, func(b *cuda.Batch) error {
		return r.set.CopyBlocks(b, r.stream, table, []Pair{{3, 1}, {3, 3}})
	})
	plainCopy(&l, r.arena, mem, []Pair{{3, 1}})
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena")
}

// Lists on both sides of what one launch takes.
func TestLongListsOfPairs(t *testing.T) {
	r := newRig(t, 5*2*1100)
	l := layout.Table{Blocks: 2200, Segments: []layout.Segment{{Base: r.arena, Stride: 5, Page: 4}}}
	for _, n := range []int{fewPairs, fewPairs + 1, manyPairs, manyPairs + 1, 2*manyPairs + 1} {
		var copies, rows []Pair
		for i := range n {
			copies = append(copies, Pair{Dst: kv.Block(i + 1), Src: kv.Block(i + 1 + 1050)})
			rows = append(rows, Pair{Dst: kv.Block(n - 1 - i), Src: kv.Block(2*i + 1)})
		}
		for _, inMemory := range []bool{false, true} {
			r.checkCopies(t, l, 0, copies, rows, n, 0, 0, inMemory)
		}
	}
}

func TestCopiesOfManySegments(t *testing.T) {
	n := uint64(100_000)
	if raceDetector {
		n = 10_000
	}
	r := newRig(t, n*3*20)
	l := layout.Table{Blocks: 3}
	for i := range n {
		l.Segments = append(l.Segments, layout.Segment{Base: r.arena + 60*i, Stride: 20, Page: 17})
	}
	r.checkCopies(t, l, 0, []Pair{{Dst: 2, Src: 1}}, []Pair{{Dst: 0, Src: 2}}, 1, 5, 0, false)
}

func TestAMillionCopies(t *testing.T) {
	n := 1_000_000
	if raceDetector {
		n = 50_000
	}
	r := newRig(t, 4*uint64(2*n+1))
	l := layout.Table{Blocks: 2*n + 1, Segments: []layout.Segment{{Base: r.arena, Stride: 4, Page: 4}}}
	table := r.table(t, l, 0)
	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{4}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	pairs := make([]Pair, n)
	for i := range pairs {
		pairs[i] = Pair{Dst: kv.Block(i + 1), Src: kv.Block(2*n - i)}
	}
	list := List{IDs: r.upload(t, pairBytes(pairs)), Max: n}
	r.run(t, func(b *cuda.Batch) error { return r.set.CopyBlocksAt(b, r.stream, table, list) })
	plainCopy(&l, r.arena, mem, pairs)
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena")
}

// Blocks and rows beyond 2^31 and 2^32 bytes from the first. The memory is address
// space; it is taken only where something is written.
func TestCopiesBeyond32Bits(t *testing.T) {
	const stride, page = 3<<30 + 48, 300
	r := newRig(t, 9<<30)
	l := layout.Table{Blocks: 3, Segments: []layout.Segment{{Base: r.arena, Stride: stride, Page: page}}}
	table := r.table(t, l, 0)
	stage := cuda.DevicePtr(r.alloc(t, 9<<30))
	s := Staging{At: stage, Stride: stride, Rows: 3}
	want := make([]byte, page)
	rand.NewChaCha8([32]byte{5}).Read(want)
	edge := make([]byte, page+64)
	for i := range edge {
		edge[i] = 0xA5
	}
	places := []uint64{l.Segments[0].Address(2), uint64(stage) + stride, uint64(stage) + 2*stride, l.Segments[0].Address(1)}
	for _, a := range places {
		require.NoError(t, r.dev.Write(cuda.DevicePtr(a), edge))
	}
	require.NoError(t, r.dev.Write(cuda.DevicePtr(places[0]), want))
	r.run(t, func(b *cuda.Batch) error {
		if err := r.set.GatherBlocks(b, r.stream, table, s, []Pair{{Dst: 2, Src: 2}, {Dst: 1, Src: 2}}); err != nil {
			return err
		}
		return r.set.ScatterBlocks(b, r.stream, table, s, []Pair{{Dst: 1, Src: 2}})
	})
	for i, a := range places {
		requireSame(t, append(slices.Clone(want), edge[page:]...), r.read(t, a, uint64(len(edge))), fmt.Sprintf("place %d", i))
	}
	r.run(t, func(b *cuda.Batch) error {
		b.Fill8(r.stream, cuda.DevicePtr(places[0]), 0, page)
		return r.set.CopyBlocks(b, r.stream, table, []Pair{{Dst: 2, Src: 1}})
	})
	requireSame(t, want, r.read(t, places[0], page), "copy over 3 GiB")
}

func TestConflictingCopiesAreRefused(t *testing.T) {
	f := newFixture(t)
	s := Staging{At: 4096, Stride: 1024, Rows: 600}
	var b cuda.Batch
	for _, n := range []int{0, 200} { // short lists and long ones are looked at differently
		filler := func() []Pair {
			var p []Pair
			for i := range n {
				p = append(p, Pair{Dst: kv.Block(100 + i), Src: kv.Block(600 + i)})
			}
			return p
		}
		twice := append(filler(), Pair{5, 6}, Pair{5, 7})
		chain := append(filler(), Pair{5, 6}, Pair{6, 7})
		require.ErrorContains(t, f.set.CopyBlocks(&b, f.stream, f.table, twice), "pool 3: row or block 5 is written twice")
		require.ErrorContains(t, f.set.CopyBlocks(&b, f.stream, f.table, chain), "block 6 is written by one pair and read by another")
		require.ErrorIs(t, f.set.GatherBlocks(&b, f.stream, f.table, s, twice), cuda.ErrInvalidValue)
		require.ErrorIs(t, f.set.ScatterBlocks(&b, f.stream, f.table, s, twice), cuda.ErrInvalidValue)
		require.Zero(t, b.Len())
		require.NoError(t, f.set.GatherBlocks(&b, f.stream, f.table, s, chain), "a row is no block")
		require.NoError(t, f.set.CopyBlocks(&b, f.stream, f.table, append(filler(), Pair{5, 6}, Pair{7, 6}, Pair{-1, 5}, Pair{6, 6})))
		b.Reset()
	}
}

// Short lists and long ones are looked at in two ways, which agree with the plain one.
func TestConflictsAgainstPlainTwin(t *testing.T) {
	blocks := side{Base: 1, First: 1, Span: 60}
	rows := side{Base: 2, Stride: 8, Span: 50}
	plain := func(dst, src side, pairs []Pair) bool {
		for i, p := range pairs {
			for j, q := range pairs {
				in := func(p Pair) bool {
					return p.Dst >= kv.Block(dst.First) && p.Dst < kv.Block(dst.First+dst.Span) &&
						p.Src >= kv.Block(src.First) && p.Src < kv.Block(src.First+src.Span) && (dst != src || p.Dst != p.Src)
				}
				if i != j && in(p) && in(q) && (p.Dst == q.Dst || dst == src && p.Dst == q.Src) {
					return true
				}
			}
		}
		return false
	}
	rapid.Check(t, func(t *rapid.T) {
		id := rapid.Int32Range(-2, 70)
		pairs := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Pair {
			return Pair{Dst: kv.Block(id.Draw(t, "dst")), Src: kv.Block(id.Draw(t, "src"))}
		}), 0, 12).Draw(t, "pairs")
		padded := append(slices.Repeat([]Pair{{-1, -1}}, fewPairs), pairs...)
		for _, s := range [][2]side{{blocks, blocks}, {rows, blocks}, {blocks, rows}} {
			want := plain(s[0], s[1], pairs)
			require.Equal(t, want, conflict(s[0], s[1], pairs) != nil)
			require.Equal(t, want, conflict(s[0], s[1], padded) != nil)
		}
	})
}

func TestRefusedCopiesAddNothing(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	var b cuda.Batch
	good := Staging{At: 4096, Stride: 1024, Rows: 8}
	pairs, list := []Pair{{1, 2}}, List{IDs: 64, Max: 1}
	for name, s := range map[string]Staging{
		"nowhere":     {Stride: 1024, Rows: 8},
		"no rows":     {At: 4096, Stride: 1024},
		"negative":    {At: 4096, Stride: 1024, Rows: -1},
		"too many":    {At: 4096, Stride: 1024, Rows: 1 << 31},
		"too narrow":  {At: 4096, Stride: 1023, Rows: 8},
		"past memory": {At: 4096, Stride: 1 << 62, Rows: 8},
	} {
		for _, err := range []error{
			f.set.GatherBlocks(&b, f.stream, f.table, s, pairs), f.set.GatherBlocksAt(&b, f.stream, f.table, s, list),
			f.set.ScatterBlocks(&b, f.stream, f.table, s, pairs), f.set.ScatterBlocksAt(&b, f.stream, f.table, s, list),
		} {
			require.ErrorIs(t, err, cuda.ErrInvalidValue, name)
			require.ErrorContains(t, err, "blocks of 1024 bytes of pool 3", name)
		}
	}
	for _, table := range []*Table{nil, other.table} {
		for _, err := range []error{
			f.set.CopyBlocks(&b, f.stream, table, pairs), f.set.CopyBlocksAt(&b, f.stream, table, list),
			f.set.GatherBlocks(&b, f.stream, table, good, pairs), f.set.GatherBlocksAt(&b, f.stream, table, good, list),
			f.set.ScatterBlocks(&b, f.stream, table, good, pairs), f.set.ScatterBlocksAt(&b, f.stream, table, good, list),
			f.set.FillBlocks(&b, f.stream, table, sequence(2), 1), f.set.FillBlocksAt(&b, f.stream, table, list, 1),
		} {
			require.ErrorIs(t, err, cuda.ErrInvalidValue)
		}
	}
	require.ErrorIs(t, f.set.CopyBlocksAt(&b, f.stream, f.table, List{IDs: 6, Max: 1}), cuda.ErrInvalidValue)
	require.NoError(t, f.set.CopyBlocks(&b, f.stream, f.table, nil))
	require.NoError(t, f.set.CopyBlocksAt(&b, f.stream, f.table, List{}))
	require.NoError(t, f.table.Close())
	require.ErrorIs(t, f.set.CopyBlocks(&b, f.stream, f.table, pairs), cuda.ErrClosed)
	require.Zero(t, b.Len())
}

// A graph holds a gather and a scatter, whose pairs and counts change between its
// launches: what a tier of host memory needs.
func TestGraphOfCopies(t *testing.T) {
	const span, blocks, most = 1000, 20, 8
	r := newRig(t, blocks*span)
	g, ok := r.dev.(cuda.Grapher)
	if !ok {
		t.Skipf("%s captures no streams", r.dev.Info().Backend)
	}
	l := layout.Table{Blocks: blocks, Segments: []layout.Segment{{Base: r.arena, Stride: span, Page: 987}}}
	table := r.table(t, l, 0)
	host, err := r.dev.AllocPinned(most*1024, cuda.AllocOptions{Name: "host tier"})
	require.NoError(t, err)
	s := Staging{At: host.Device, Stride: 1024, Rows: most}
	list := List{IDs: r.upload(t, make([]byte, 8*most)), Max: most, Count: r.upload(t, make([]byte, 4))}
	require.NoError(t, g.BeginCapture(r.stream, cuda.CaptureRelaxed))
	var b cuda.Batch
	require.NoError(t, r.set.GatherBlocksAt(&b, r.stream, table, s, list))
	require.NoError(t, r.dev.Submit(&b))
	graph, err := g.EndCapture(r.stream)
	require.NoError(t, err)
	exec, err := g.Instantiate(graph)
	require.NoError(t, err)
	require.NoError(t, g.DestroyGraph(graph))

	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{6}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	clear(host.Host)
	want := make([]byte, len(host.Host))
	for _, pairs := range [][]Pair{{{0, 3}, {7, 19}}, {}, {{1, 1}, {2, 2}, {3, 3}, {0, 4}, {5, 5}, {6, 6}, {7, 7}, {4, 8}}} {
		require.NoError(t, r.dev.Write(list.Count, binary.LittleEndian.AppendUint32(nil, uint32(len(pairs)))))
		require.NoError(t, r.dev.Write(list.IDs, pairBytes(pairs)))
		b.Reset()
		b.LaunchGraph(r.stream, exec)
		require.NoError(t, r.dev.Submit(&b))
		require.NoError(t, r.dev.SyncStream(context.Background(), r.stream))
		plainGather(&l, r.arena, mem, want, 1024, most, pairs)
		requireSame(t, want, host.Host, "host tier")
	}
	require.NoError(t, g.DestroyGraphExec(exec))
	require.NoError(t, r.dev.FreePinned(host))
	require.NoError(t, table.Close())
}

func TestCopiesAgainstPlainTwins(t *testing.T) {
	r := newRig(t, 16<<10)
	rapid.Check(t, func(t *rapid.T) {
		l := drawTable(t, r.arena)
		rows := rapid.IntRange(1, 8).Draw(t, "rows")
		pick := rapid.Int32Range(-2, 8)
		draw := func(name string, same bool) (pairs []Pair) {
			seen := map[kv.Block]bool{}
			for range rapid.IntRange(1, 12).Draw(t, name) {
				p := Pair{Dst: kv.Block(pick.Draw(t, "dst")), Src: kv.Block(pick.Draw(t, "src"))}
				next := append(slices.Clone(pairs), p)
				if seen[p.Dst] || same && conflict(side{Span: 100}, side{Span: 100}, next) != nil {
					continue
				}
				seen[p.Dst] = true
				pairs = next
			}
			return pairs
		}
		copies, moves := draw("copies", true), draw("moves", false)
		// Both a row and a block at most once: the same list goes both ways.
		seen := map[kv.Block]bool{}
		moves = slices.DeleteFunc(moves, func(p Pair) bool {
			if seen[p.Src] {
				return true
			}
			seen[p.Src] = true
			return false
		})
		r.set.sms = rapid.IntRange(1, 5).Draw(t, "SMs")
		r.checkCopies(t, l, 128<<rapid.IntRange(0, 4).Draw(t, "tile"), copies, moves, rows,
			rapid.Uint64Range(0, 40).Draw(t, "skew"), rapid.Uint64Range(0, 40).Draw(t, "gap"), rapid.Bool().Draw(t, "in memory"))
	})
}
