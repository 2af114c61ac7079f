package kernels

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// testingT is what tests and property tests have in common.
type testingT interface {
	require.TestingT
	Helper()
}

// rig is a device with the kernels loaded, and an arena that is filled with
// 0xA5 before each use.
type rig struct {
	dev    cuda.Device
	set    *Set
	stream cuda.Stream
	arena  uint64
	size   uint64
}

func newRig(t testing.TB, size uint64) *rig {
	r := &rig{dev: openDevice(t), size: size}
	var err error
	r.set, err = Load(r.dev)
	require.NoError(t, err)
	r.stream, err = r.dev.NewStream(cuda.StreamOptions{Name: "test"})
	require.NoError(t, err)
	r.arena = r.alloc(t, size)
	return r
}

func (r *rig) alloc(t testingT, size uint64) uint64 {
	p, err := r.dev.Alloc(size, cuda.AllocOptions{Name: "test"})
	require.NoError(t, err)
	return uint64(p)
}

func (r *rig) upload(t testingT, data []byte) cuda.DevicePtr {
	p := cuda.DevicePtr(r.alloc(t, uint64(max(len(data), 1))))
	require.NoError(t, r.dev.Write(p, data))
	return p
}

func (r *rig) free(t testingT, p cuda.DevicePtr) { require.NoError(t, r.dev.Free(p)) }

func (r *rig) run(t testingT, fill func(*cuda.Batch) error) {
	t.Helper()
	var b cuda.Batch
	require.NoError(t, fill(&b))
	require.NoError(t, r.dev.Submit(&b))
	require.NoError(t, r.dev.SyncStream(context.Background(), r.stream))
}

func (r *rig) read(t testingT, address, n uint64) []byte {
	b := make([]byte, n)
	require.NoError(t, r.dev.Read(b, cuda.DevicePtr(address)))
	return b
}

func (r *rig) table(t testingT, l layout.Table, tile uint64) *Table {
	t.Helper()
	if tile == 0 {
		tile = tileBytes
	}
	table, err := newTable(r.dev, l, tile)
	require.NoError(t, err)
	return table
}

// pages calls f with the bytes of every page of a block within an arena.
func pages(l *layout.Table, arena uint64, mem []byte, b kv.Block, f func(segment int, page []byte)) {
	for i, s := range l.Segments {
		at := s.Address(b) - arena
		f(i, mem[at:at+s.Page])
	}
}

func written(l *layout.Table, id kv.Block) bool { return id >= l.First() && int(id) < l.Blocks }

// The plain twins of the kernels, on an arena in Go memory.
func plainZero(l *layout.Table, arena uint64, mem []byte, ids []kv.Block) {
	for _, id := range ids {
		if written(l, id) {
			pages(l, arena, mem, id, func(_ int, p []byte) { clear(p) })
		}
	}
}

func plainFill(l *layout.Table, arena uint64, mem []byte, ids []kv.Block, word uint32) {
	for _, id := range ids {
		if written(l, id) {
			pages(l, arena, mem, id, func(_ int, p []byte) {
				for i := range p {
					p[i] = byte(word >> (8 * (i % 4)))
				}
			})
		}
	}
}

func plainReset(l *layout.Table, arena uint64, mem []byte, ids []kv.Block, row []byte) {
	for _, id := range ids {
		if written(l, id) {
			rest := row
			pages(l, arena, mem, id, func(_ int, p []byte) { rest = rest[copy(p, rest):] })
		}
	}
}

func plainChecksums(l *layout.Table, arena uint64, mem []byte, ids []kv.Block) []uint64 {
	sums := make([]uint64, len(ids))
	for i, id := range ids {
		if !written(l, id) {
			continue
		}
		var all [][]byte
		pages(l, arena, mem, id, func(_ int, p []byte) { all = append(all, p) })
		sums[i] = Checksum(all...)
	}
	return sums
}

func requireSame(t testingT, want, got []byte, what string) {
	t.Helper()
	if bytes.Equal(want, got) {
		return
	}
	i := 0
	for want[i] == got[i] {
		i++
	}
	require.Failf(t, "bytes differ", "%s: byte %d is %#x, want %#x", what, i, got[i], want[i])
}

// check runs the kernels for lists of ids on a table and compares the whole arena, gaps
// and neighbours included, with the plain twins. Lists go into the launch
// arguments, or into memory behind a count.
func (r *rig) check(t testingT, l layout.Table, tile uint64, ids []kv.Block, inMemory bool) {
	t.Helper()
	table := r.table(t, l, tile)
	mem := make([]byte, r.size)
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(mem)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), mem))
	row := make([]byte, l.Bytes())
	rng.Read(row)
	// One byte off: the copy then has to do without common alignment.
	rowAt := r.upload(t, append([]byte{0}, row...))
	rowOff := cuda.DevicePtr(len(ids) % 2)
	if rowOff == 0 {
		require.NoError(t, r.dev.Write(rowAt, row))
	}
	sumsAt := r.upload(t, bytes.Repeat([]byte{0xEE}, 8*(len(ids)+1)))

	var list List
	if inMemory {
		beyond := append(slices.Clone(ids), 1, 1, 1) // behind the count: not to be used
		list = List{IDs: r.upload(t, idBytes(beyond)), Max: len(beyond) - 1,
			Count: r.upload(t, binary.LittleEndian.AppendUint32(nil, uint32(len(ids))))}
		sumsAt = r.upload(t, bytes.Repeat([]byte{0xEE}, 8*(list.Max+1)))
	}
	sums := func() []byte { return r.read(t, uint64(sumsAt), 8*uint64(len(ids))) }
	wantSums := func() []byte {
		var b []byte
		for _, s := range plainChecksums(&l, r.arena, mem, ids) {
			b = binary.LittleEndian.AppendUint64(b, s)
		}
		return b
	}

	r.run(t, func(b *cuda.Batch) error {
		if inMemory {
			return r.set.ChecksumBlocksAt(b, r.stream, table, list, sumsAt)
		}
		return r.set.ChecksumBlocks(b, r.stream, table, ids, sumsAt)
	})
	requireSame(t, wantSums(), sums(), "checksums")
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a checksum")

	r.run(t, func(b *cuda.Batch) error {
		if inMemory {
			return r.set.ZeroBlocksAt(b, r.stream, table, list)
		}
		return r.set.ZeroBlocks(b, r.stream, table, ids)
	})
	plainZero(&l, r.arena, mem, ids)
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena after zeroing")

	word := uint32(0x7FC01234)
	if table.overlap {
		require.ErrorIs(t, r.set.FillBlocks(new(cuda.Batch), r.stream, table, ids, word), cuda.ErrInvalidValue)
		require.ErrorIs(t, r.set.FillBlocksAt(new(cuda.Batch), r.stream, table, list, word), cuda.ErrInvalidValue)
		word = 0xA7A7A7A7
	}
	r.run(t, func(b *cuda.Batch) error {
		if inMemory {
			return r.set.FillBlocksAt(b, r.stream, table, list, word)
		}
		return r.set.FillBlocks(b, r.stream, table, ids, word)
	})
	plainFill(&l, r.arena, mem, ids, word)
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a fill")

	if table.overlap {
		require.ErrorIs(t, r.set.ResetState(new(cuda.Batch), r.stream, table, ids, rowAt), cuda.ErrInvalidValue)
		require.ErrorIs(t, r.set.ResetStateAt(new(cuda.Batch), r.stream, table, list, rowAt), cuda.ErrInvalidValue)
	} else {
		r.run(t, func(b *cuda.Batch) error {
			if inMemory {
				return r.set.ResetStateAt(b, r.stream, table, list, rowAt+rowOff)
			}
			return r.set.ResetState(b, r.stream, table, ids, rowAt+rowOff)
		})
		plainReset(&l, r.arena, mem, ids, row)
		requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a reset to a row")
	}

	r.run(t, func(b *cuda.Batch) error {
		return r.set.ChecksumBlocks(b, r.stream, table, ids, sumsAt)
	})
	requireSame(t, wantSums(), sums(), "checksums after the reset")

	r.run(t, func(b *cuda.Batch) error {
		if inMemory {
			return r.set.ResetStateAt(b, r.stream, table, list, 0)
		}
		return r.set.ResetState(b, r.stream, table, ids, 0)
	})
	plainZero(&l, r.arena, mem, ids)
	requireSame(t, mem, r.read(t, r.arena, r.size), "arena after a reset to zeros")

	require.NoError(t, table.Close())
	r.free(t, rowAt)
	r.free(t, sumsAt)
	if inMemory {
		r.free(t, list.IDs)
		r.free(t, list.Count)
	}
}
