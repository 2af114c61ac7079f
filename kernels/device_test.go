package kernels

import (
	"bytes"
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

// All 256 pairs of base and span modulo 16, with pages of a few bytes, of some
// vectors (15 rows of 92 bytes are 1,380), and of more than one unrolled turn.
func TestEveryAlignment(t *testing.T) {
	r := newRig(t, 64<<10)
	for base := range uint64(16) {
		for span := range uint64(16) {
			l := layout.Table{Blocks: 3}
			at := r.arena + 256 + base
			for _, page := range []uint64{span, 1376 + span, 8192 + span} {
				if page > 0 {
					stride := page + 1 + (base*7+span)%16
					l.Segments = append(l.Segments, layout.Segment{Base: at, Stride: stride, Page: page})
					at += (3*stride + 64) &^ 15
				}
			}
			r.check(t, l, 0, []kv.Block{2, 1}[:1+span%2], base%2 == 0)
		}
	}
}

// Page sizes that differ under one id, as reported: 8,448, 41,984 and 73,728
// bytes, with small ones beside them.
func TestMixedPageSizes(t *testing.T) {
	r := newRig(t, 1<<20)
	l := layout.Table{Blocks: 4}
	at := r.arena
	for _, page := range []uint64{8448, 73728, 1168, 41984, 1380, 4} {
		l.Segments = append(l.Segments, layout.Segment{Base: at, Stride: page, Page: page})
		at += 4 * page
	}
	for _, inMemory := range []bool{false, true} {
		r.check(t, l, 0, []kv.Block{3, 1}, inMemory)
	}
}

func TestIDsThatAreSkipped(t *testing.T) {
	r := newRig(t, 4096)
	for name, ids := range map[string][]kv.Block{
		"null":         {0},
		"padding":      {-1, 2, -1},
		"lowest":       {math.MinInt32},
		"highest":      {math.MaxInt32, 5},
		"not of pool":  {6, 7, 100, 1},
		"duplicates":   {3, 3, 1, 3},
		"only padding": {-1, -7},
	} {
		t.Run(name, func(t *testing.T) {
			for _, realNull := range []bool{false, true} {
				l := layout.Table{Blocks: 6, RealNull: realNull,
					Segments: []layout.Segment{{Base: r.arena + 1024, Stride: 300, Page: 299}}}
				r.check(t, l, 0, ids, false)
				r.check(t, l, 0, ids, true)
			}
		})
	}
}

// A recurrent layer whose state is three regions of different size and type:
// convolution state in bf16, SSM state in fp32, a small record. All of a row is
// cleared, whatever NaNs are in it, and nothing of its neighbours.
func TestStateOfSeveralRegions(t *testing.T) {
	const conv, ssm, record = 3 * 1024 * 2, 4 * 64 * 64 * 4, 12
	const row = conv + ssm + record
	r := newRig(t, 6*row)
	l := layout.Table{Blocks: 6, RealNull: true, Segments: []layout.Segment{
		{Base: r.arena, Stride: row, Page: conv},
		{Base: r.arena + conv, Stride: row, Page: ssm},
		{Base: r.arena + conv + ssm, Stride: row, Page: record},
	}}
	table := r.table(t, l, 0)
	nan := bytes.Repeat([]byte{0xC0, 0x7F}, 6*row/2) // a NaN in bf16 and in fp32
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), nan))
	r.run(t, func(b *cuda.Batch) error {
		return r.set.ResetState(b, r.stream, table, []kv.Block{0, 3}, 0)
	})
	got := r.read(t, r.arena, 6*row)
	for b := range 6 {
		want := nan[b*row : (b+1)*row]
		if b == 0 || b == 3 {
			want = make([]byte, row)
		}
		requireSame(t, want, got[b*row:(b+1)*row], fmt.Sprintf("row %d", b))
	}
	r.check(t, l, 0, []kv.Block{5, 0, 2}, false)
}

func TestManySegments(t *testing.T) {
	counts := []uint64{65535, 65536, 65537}
	if raceDetector {
		counts = counts[2:]
	}
	for _, n := range counts {
		r := newRig(t, n*3*20)
		l := layout.Table{Blocks: 3}
		for i := range n {
			l.Segments = append(l.Segments, layout.Segment{Base: r.arena + 60*i, Stride: 20, Page: 17})
		}
		table := r.table(t, l, 0)
		mem := bytes.Repeat([]byte{0xA5}, int(r.size))
		require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
		r.run(t, func(b *cuda.Batch) error { return r.set.ZeroBlocks(b, r.stream, table, []kv.Block{1}) })
		plainZero(&l, r.arena, mem, []kv.Block{1})
		requireSame(t, mem, r.read(t, r.arena, r.size), fmt.Sprintf("%d segments", n))
		r.run(t, func(b *cuda.Batch) error { return r.set.FillBlocks(b, r.stream, table, []kv.Block{2}, 0x01020304) })
		plainFill(&l, r.arena, mem, []kv.Block{2}, 0x01020304)
		requireSame(t, mem, r.read(t, r.arena, r.size), fmt.Sprintf("%d segments filled", n))
	}
}

// Lists on both sides of what one launch takes.
func TestLongLists(t *testing.T) {
	r := newRig(t, 5*2100)
	l := layout.Table{Blocks: 2100, Segments: []layout.Segment{{Base: r.arena, Stride: 5, Page: 4}}}
	for _, n := range []int{fewIDs, fewIDs + 1, manyIDs, manyIDs + 1, 2*manyIDs + 1} {
		r.check(t, l, 0, sequence(n), false)
		r.check(t, l, 0, sequence(n), true)
	}
}

// Offsets of more than 32 bits: from the start of a pool to a block, and from
// the lowest segment to another. The arena is address space; memory is taken
// only where something is written.
func TestOffsetsBeyond32Bits(t *testing.T) {
	const stride, page = 3<<30 + 48, 300
	r := newRig(t, 9<<30)
	l := layout.Table{Blocks: 3, Segments: []layout.Segment{
		{Base: r.arena, Stride: stride, Page: page}, {Base: r.arena + 2<<30, Stride: stride, Page: page}}}
	table := r.table(t, l, 0)
	edge := bytes.Repeat([]byte{0xA5}, 1024)
	places := func(f func(segment int, b kv.Block, address uint64)) {
		for i, s := range l.Segments {
			for b := range kv.Block(3) {
				f(i, b, s.Address(b))
			}
		}
	}
	places(func(_ int, _ kv.Block, a uint64) { require.NoError(t, r.dev.Write(cuda.DevicePtr(a), edge)) })
	r.run(t, func(b *cuda.Batch) error { return r.set.ZeroBlocks(b, r.stream, table, []kv.Block{2}) })
	const word = 0x11223344
	r.run(t, func(b *cuda.Batch) error { return r.set.FillBlocks(b, r.stream, table, []kv.Block{1}, word) })
	places(func(i int, b kv.Block, a uint64) {
		want := slices.Clone(edge)
		switch b {
		case 1:
			for k := range page {
				want[k] = byte(uint32(word) >> (8 * (k % 4)))
			}
		case 2:
			clear(want[:page])
		}
		requireSame(t, want, r.read(t, a, uint64(len(edge))), fmt.Sprintf("segment %d block %d", i, b))
	})
}

func TestAMillionIDs(t *testing.T) {
	n := 1_000_000
	if raceDetector {
		n = 50_000
	}
	r := newRig(t, 4*uint64(n+2))
	l := layout.Table{Blocks: n + 2, Segments: []layout.Segment{{Base: r.arena, Stride: 4, Page: 3}}}
	table := r.table(t, l, 0)
	mem := bytes.Repeat([]byte{0xA5}, int(r.size))
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	ids := sequence(n)
	list := List{IDs: r.upload(t, idBytes(ids)), Max: n}
	r.run(t, func(b *cuda.Batch) error {
		err := r.set.ZeroBlocksAt(b, r.stream, table, list)
		require.Equal(t, 1, b.Len())
		return err
	})
	plainZero(&l, r.arena, mem, ids)
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena")
	r.run(t, func(b *cuda.Batch) error { return r.set.FillBlocksAt(b, r.stream, table, list, 0x01020304) })
	plainFill(&l, r.arena, mem, ids, 0x01020304)
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a fill")
}

// The count of a list in memory is read when the kernel runs, and never taken
// for more than the list holds.
func TestCountInMemory(t *testing.T) {
	r := newRig(t, 1600)
	l := layout.Table{Blocks: 16, Segments: []layout.Segment{{Base: r.arena, Stride: 100, Page: 100}}}
	table := r.table(t, l, 0)
	ids := sequence(5)
	count := r.upload(t, make([]byte, 4))
	list := List{IDs: r.upload(t, idBytes(ids)), Max: 3, Count: count}
	var b cuda.Batch
	require.NoError(t, r.set.ZeroBlocksAt(&b, r.stream, table, list))
	for _, n := range []uint32{0, 2, 3, 4, math.MaxUint32} {
		mem := bytes.Repeat([]byte{0xA5}, int(r.size))
		require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
		require.NoError(t, r.dev.Write(count, binary.LittleEndian.AppendUint32(nil, n)))
		require.NoError(t, r.dev.Submit(&b))
		require.NoError(t, r.dev.SyncStream(context.Background(), r.stream))
		plainZero(&l, r.arena, mem, ids[:min(n, 3)])
		requireSame(t, mem, r.read(t, r.arena, r.size), fmt.Sprintf("count %d", n))
	}
}

func TestChecksumDoesNotDependOnTheLaunch(t *testing.T) {
	r := newRig(t, 64<<10)
	mem := make([]byte, r.size)
	rand.NewChaCha8([32]byte{2}).Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	l := layout.Table{Blocks: 3, RealNull: true, Segments: []layout.Segment{
		{Base: r.arena + 8, Stride: 9001, Page: 9001}, {Base: r.arena + 30000, Stride: 5000, Page: 4444}}}
	ids := []kv.Block{0, 2, 1, 2}
	want := plainChecksums(&l, r.arena, mem, ids)
	sums := r.upload(t, make([]byte, 8*len(ids)))
	for _, tile := range []uint64{128, 1024, 0} {
		for _, sms := range []int{1, 3, 132} {
			table := r.table(t, l, tile)
			r.set.sms = sms
			r.run(t, func(b *cuda.Batch) error { return r.set.ChecksumBlocks(b, r.stream, table, ids, sums) })
			got := r.read(t, uint64(sums), 8*uint64(len(ids)))
			for i, w := range want {
				require.Equal(t, w, binary.LittleEndian.Uint64(got[8*i:]), "id %d, tiles of %d, %d SMs", i, tile, sms)
			}
			require.NoError(t, table.Close())
		}
	}
}

func TestChecksumTellsBlocksApart(t *testing.T) {
	a := bytes.Repeat([]byte{1, 2, 3, 4, 5, 6, 7, 8}, 4)
	swapped := slices.Clone(a)
	swapped[0], swapped[8] = 9, swapped[0]
	moved := slices.Clone(swapped)
	moved[0], moved[8], moved[16] = 1, 1, 9
	sums := map[uint64]string{}
	for name, p := range map[string][][]byte{
		"plain": {a}, "swapped": {swapped}, "moved": {moved}, "zeros": {make([]byte, 32)},
		"fewer zeros": {make([]byte, 24)}, "nothing": nil, "a zero more": {append(slices.Clone(a), 0)},
	} {
		s := Checksum(p...)
		require.Empty(t, sums[s], "%s has the checksum of %s", name, sums[s])
		sums[s] = name
	}
}

func TestAgainstPlainTwins(t *testing.T) {
	r := newRig(t, 16<<10)
	rapid.Check(t, func(t *rapid.T) {
		l := drawTable(t, r.arena)
		ids := rapid.SliceOfN(rapid.Int32Range(-2, 8), 1, 70).Draw(t, "ids")
		blocks := make([]kv.Block, len(ids))
		for i, id := range ids {
			blocks[i] = kv.Block(id)
		}
		r.set.sms = rapid.IntRange(1, 5).Draw(t, "SMs")
		r.check(t, l, 128<<rapid.IntRange(0, 4).Draw(t, "tile"), blocks, rapid.Bool().Draw(t, "in memory"))
	})
}

// drawTable draws a table of at most 6 blocks in the first 16 KiB of an arena: layers
// one after the other, or blocks that hold all layers, whose pages may share bytes.
func drawTable(t *rapid.T, arena uint64) layout.Table {
	l := layout.Table{Blocks: rapid.IntRange(1, 6).Draw(t, "blocks"), RealNull: rapid.Bool().Draw(t, "real null")}
	at := arena + rapid.Uint64Range(0, 300).Draw(t, "start")
	if rapid.Bool().Draw(t, "block outermost") {
		stride := rapid.Uint64Range(20, 2000).Draw(t, "stride")
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			off := rapid.Uint64Range(0, stride-1).Draw(t, "offset")
			l.Segments = append(l.Segments, layout.Segment{Base: at + off, Stride: stride,
				Page: rapid.Uint64Range(1, stride-off).Draw(t, "page")})
		}
	} else {
		for range rapid.IntRange(1, 4).Draw(t, "segments") {
			stride := rapid.Uint64Range(1, 600).Draw(t, "stride")
			l.Segments = append(l.Segments, layout.Segment{Base: at, Stride: stride,
				Page: rapid.Uint64Range(1, stride).Draw(t, "page")})
			at += stride*uint64(l.Blocks) + rapid.Uint64Range(0, 40).Draw(t, "gap")
		}
	}
	return l
}
