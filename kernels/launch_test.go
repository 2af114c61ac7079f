package kernels

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// hostDevice is a device that runs nothing and counts what is loaded.
type hostDevice struct {
	*noopdev.Device
	modules, functions, unloaded int
	noFunction                   string
}

func newHostDevice() *hostDevice { return &hostDevice{Device: noopdev.New(noopdev.Options{})} }

func (d *hostDevice) LoadModule(image []byte) (cuda.Module, error) {
	d.modules++
	return d.Device.LoadModule(image)
}

func (d *hostDevice) UnloadModule(m cuda.Module) error {
	d.unloaded++
	return d.Device.UnloadModule(m)
}

// Function returns a handle that tells the entries apart.
func (d *hostDevice) Function(_ cuda.Module, name string) (cuda.Function, error) {
	d.functions++
	if name == d.noFunction {
		return 0, &cuda.Error{Code: cuda.ErrNotFound, Op: "function", Detail: name}
	}
	return entryHandle(name), nil
}

func entryHandle(name string) cuda.Function {
	for k, img := range images {
		for v, e := range img.entries {
			if e == name {
				return cuda.Function(100 + 10*k + v)
			}
		}
	}
	return 0
}

type fixture struct {
	dev    *hostDevice
	set    *Set
	table  *Table
	stream cuda.Stream
}

func newFixture(t testing.TB) *fixture {
	f := &fixture{dev: newHostDevice()}
	var err error
	f.set, err = Load(f.dev)
	require.NoError(t, err)
	base, err := f.dev.Alloc(4<<20, cuda.AllocOptions{Name: "pool"})
	require.NoError(t, err)
	f.table, err = NewTable(f.dev, layout.Table{Pool: 3, Blocks: 2000, Segments: []layout.Segment{
		{Base: uint64(base), Stride: 1024, Page: 1000}, {Base: uint64(base) + 2<<20, Stride: 1024, Page: 24},
	}})
	require.NoError(t, err)
	f.stream, err = f.dev.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	return f
}

func sequence(n int) []kv.Block {
	ids := make([]kv.Block, n)
	for i := range ids {
		ids[i] = kv.Block(i + 1)
	}
	return ids
}

func TestLoadLeavesNothingForLater(t *testing.T) {
	f := newFixture(t)
	require.Equal(t, 7, f.dev.modules)
	require.Equal(t, 20, f.dev.functions)
	require.EqualValues(t, 20, f.dev.Counts().Launches, "a warm-up for each variant")

	var b cuda.Batch
	require.NoError(t, f.set.ZeroBlocks(&b, f.stream, f.table, sequence(2000)))
	require.NoError(t, f.set.ZeroBlocksAt(&b, f.stream, f.table, List{IDs: 4, Max: 5}))
	require.NoError(t, f.set.ResetState(&b, f.stream, f.table, sequence(2000), 0))
	require.NoError(t, f.set.ChecksumBlocks(&b, f.stream, f.table, sequence(2000), 8))
	require.NoError(t, f.dev.Submit(&b))
	require.Equal(t, 7, f.dev.modules)
	require.Equal(t, 20, f.dev.functions)

	require.NoError(t, f.set.Close())
	require.NoError(t, f.set.Close())
	require.Equal(t, 7, f.dev.unloaded)
}

func TestLoadUnloadsWhatItLoadedWhenItFails(t *testing.T) {
	d := newHostDevice()
	d.noFunction = "checksum_blocks_56"
	_, err := Load(d)
	require.ErrorIs(t, err, cuda.ErrNotFound)
	require.ErrorContains(t, err, "checksum_blocks_56")
	require.Equal(t, d.modules, d.unloaded)

	d = newHostDevice()
	broken := errors.New("broken")
	d.FailSubmit(4, broken)
	_, err = Load(d)
	require.ErrorIs(t, err, broken)
	require.Equal(t, d.modules, d.unloaded)
}

// launched decodes the launches of a batch.
func launched(t *testing.T, b *cuda.Batch) (entries []cuda.Function, ids [][]kv.Block, at []uint64) {
	for _, c := range b.Commands() {
		if c.Op != cuda.OpLaunch {
			continue
		}
		args := b.Arena()[c.Off : c.Off+c.Len]
		entries = append(entries, cuda.Function(c.A))
		n := int(binary.LittleEndian.Uint32(args[28:]))
		k, v := (c.A-100)/10, (c.A-100)%10
		require.EqualValues(t, images[k].size[v], c.Len)
		rest := args[32:]
		if kernel(k) != zeroBlocks {
			at = append(at, binary.LittleEndian.Uint64(rest))
			rest = rest[8:]
		}
		if variant(v) == inMemory {
			ids = append(ids, nil)
			continue
		}
		list := make([]kv.Block, n)
		for i := range list {
			list[i] = kv.Block(binary.LittleEndian.Uint32(rest[4*i:]))
		}
		ids = append(ids, list)
	}
	return entries, ids, at
}

func TestIDsTravelInTheArguments(t *testing.T) {
	f := newFixture(t)
	few, many := entryHandle("zero_blocks_56"), entryHandle("zero_blocks_1012")
	for _, c := range []struct {
		n       int
		entries []cuda.Function
	}{
		{0, nil},
		{1, []cuda.Function{few}},
		{56, []cuda.Function{few}},
		{57, []cuda.Function{many}},
		{1012, []cuda.Function{many}},
		{1013, []cuda.Function{many, few}},
		{1999, []cuda.Function{many, many}},
	} {
		var b cuda.Batch
		require.NoError(t, f.set.ZeroBlocks(&b, f.stream, f.table, sequence(c.n)))
		entries, ids, _ := launched(t, &b)
		require.Equal(t, c.entries, entries, "%d ids", c.n)
		var all []kv.Block
		for _, l := range ids {
			all = append(all, l...)
		}
		require.Equal(t, append([]kv.Block(nil), sequence(c.n)...), all)
	}
}

func TestSumsOfLaterLaunchesFollowOn(t *testing.T) {
	f := newFixture(t)
	var b cuda.Batch
	require.NoError(t, f.set.ChecksumBlocks(&b, f.stream, f.table, sequence(1999), 0x1000))
	_, _, at := launched(t, &b)
	require.Equal(t, []uint64{0x1000, 0x1000 + 8*1012}, at)
	fill := b.Commands()[0]
	require.Equal(t, cuda.OpFill, fill.Op)
	require.EqualValues(t, 2*1999, fill.C)
}

func TestNothingToLaunch(t *testing.T) {
	f := newFixture(t)
	empty, err := NewTable(f.dev, layout.Table{Blocks: 4})
	require.NoError(t, err)
	var b cuda.Batch
	require.NoError(t, f.set.ZeroBlocks(&b, f.stream, f.table, nil))
	require.NoError(t, f.set.ZeroBlocksAt(&b, f.stream, f.table, List{}))
	require.NoError(t, f.set.ResetState(&b, f.stream, f.table, nil, 0))
	require.NoError(t, f.set.ChecksumBlocks(&b, f.stream, f.table, nil, 8))
	require.NoError(t, f.set.ChecksumBlocksAt(&b, f.stream, f.table, List{}, 8))
	require.NoError(t, f.set.ZeroBlocks(&b, f.stream, empty, sequence(3)))
	require.NoError(t, f.set.ZeroBlocksAt(&b, f.stream, empty, List{IDs: 4, Max: 3}))
	require.Zero(t, b.Len())
	require.NoError(t, empty.Close())
}

func TestRefusedLaunchesAddNothing(t *testing.T) {
	f, other := newFixture(t), newFixture(t)
	var b cuda.Batch
	ids := sequence(3)
	for name, err := range map[string]error{
		"another device":   f.set.ZeroBlocks(&b, f.stream, other.table, ids),
		"odd list":         f.set.ZeroBlocksAt(&b, f.stream, f.table, List{IDs: 6, Max: 1}),
		"odd count":        f.set.ZeroBlocksAt(&b, f.stream, f.table, List{IDs: 8, Max: 1, Count: 9}),
		"no list":          f.set.ZeroBlocksAt(&b, f.stream, f.table, List{Max: 1}),
		"negative list":    f.set.ZeroBlocksAt(&b, f.stream, f.table, List{IDs: 8, Max: -1}),
		"too long a list":  f.set.ZeroBlocksAt(&b, f.stream, f.table, List{IDs: 8, Max: 1 << 31}),
		"odd sums":         f.set.ChecksumBlocks(&b, f.stream, f.table, ids, 12),
		"no sums":          f.set.ChecksumBlocks(&b, f.stream, f.table, ids, 0),
		"odd list of sums": f.set.ChecksumBlocksAt(&b, f.stream, f.table, List{IDs: 6, Max: 1}, 8),
	} {
		require.ErrorIs(t, err, cuda.ErrInvalidValue, name)
	}
	require.NoError(t, f.table.Close())
	require.NoError(t, f.table.Close())
	require.ErrorIs(t, f.set.ZeroBlocks(&b, f.stream, f.table, ids), cuda.ErrClosed)
	require.NoError(t, other.set.Close())
	require.ErrorIs(t, other.set.ResetState(&b, other.stream, other.table, ids, 0), cuda.ErrClosed)
	require.Zero(t, b.Len())
}

func TestNewTableRefusesWhatLeavesItsAllocation(t *testing.T) {
	d := newHostDevice()
	base, err := d.Alloc(1000, cuda.AllocOptions{Name: "pool"})
	require.NoError(t, err)
	at := uint64(base)
	before := d.LiveBytes()
	for name, c := range map[string]struct {
		blocks   int
		segments []layout.Segment
		says     string
	}{
		"last block":  {10, []layout.Segment{{Base: at, Stride: 50, Page: 50}, {Base: at + 501, Stride: 50, Page: 50}}, "segment 1: block 9 ends at"},
		"one byte":    {10, []layout.Segment{{Base: at + 1, Stride: 100, Page: 100}}, "segment 0: block 9 ends at"},
		"first block": {1, []layout.Segment{{Base: at, Stride: 0, Page: 1001}}, "segment 0: block 0 ends at"},
		"below":       {1, []layout.Segment{{Base: at - 1, Stride: 0, Page: 10}}, "segment 0: block 0 at"},
		"nowhere":     {2, []layout.Segment{{Base: at, Stride: 500, Page: 10}, {Base: 4096, Stride: 500, Page: 10}}, "segment 1: block 0 at 0x1000"},
	} {
		_, err := NewTable(d, layout.Table{Pool: 9, Blocks: c.blocks, Segments: c.segments})
		require.ErrorIs(t, err, layout.ErrTable, name)
		require.ErrorContains(t, err, c.says, name)
		require.ErrorContains(t, err, "pool 9", name)
	}
	require.Equal(t, before, d.LiveBytes())

	table, err := NewTable(d, layout.Table{Blocks: 10, Segments: []layout.Segment{{Base: at, Stride: 100, Page: 100}}})
	require.NoError(t, err, "to the last byte")
	require.NoError(t, table.Close())
	require.Equal(t, before, d.LiveBytes())
}

func TestNewTableRefusesBlocksThatNoLaunchCanCover(t *testing.T) {
	d := noopdev.New(noopdev.Options{Memory: 1 << 62})
	base, err := d.Alloc(1<<60, cuda.AllocOptions{Name: "pool"})
	require.NoError(t, err)
	_, err = NewTable(d, layout.Table{Pool: 5, Blocks: 1, Segments: []layout.Segment{{Base: uint64(base), Page: 1 << 60}}})
	require.ErrorIs(t, err, layout.ErrTable)
	require.ErrorContains(t, err, "pool 5: blocks of 1152921504606846976 bytes make 2147483648 tiles")
}

func TestLaunchesAllocateNothing(t *testing.T) {
	f := newFixture(t)
	ids := sequence(1999)
	var b cuda.Batch
	n := testing.AllocsPerRun(100, func() {
		b.Reset()
		err := errors.Join(
			f.table.CheckIDs(ids),
			f.set.ZeroBlocks(&b, f.stream, f.table, ids),
			f.set.ZeroBlocksAt(&b, f.stream, f.table, List{IDs: 4, Max: 1 << 20}),
			f.set.ResetState(&b, f.stream, f.table, ids, 16),
			f.set.ChecksumBlocks(&b, f.stream, f.table, ids, 16))
		if err != nil {
			t.Fatal(err)
		}
	})
	require.Zero(t, n)
}

// BenchmarkStage times how ids that the caller has checked get into a batch,
// beside a plain copy of them; checked adds the check of range and null block.
func BenchmarkStage(b *testing.B) {
	f := newFixture(b)
	ids := sequence(1000)
	var batch cuda.Batch
	stage := func(b *testing.B) {
		batch.Reset()
		if err := f.set.ZeroBlocks(&batch, f.stream, f.table, ids); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("1000", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			stage(b)
		}
	})
	b.Run("1000/checked", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := f.table.CheckIDs(ids); err != nil {
				b.Fatal(err)
			}
			stage(b)
		}
	})
	b.Run("1000/copy", func(b *testing.B) {
		b.ReportAllocs()
		dst := make([]kv.Block, len(ids))
		for b.Loop() {
			copy(dst, ids)
		}
	})
}

func TestNoTable(t *testing.T) {
	f := newFixture(t)
	var b cuda.Batch
	ids, list := sequence(3), List{IDs: 64, Max: 3}
	for name, err := range map[string]error{
		"zero":        f.set.ZeroBlocks(&b, f.stream, nil, ids),
		"zero at":     f.set.ZeroBlocksAt(&b, f.stream, nil, list),
		"reset":       f.set.ResetState(&b, f.stream, nil, ids, 0),
		"reset row":   f.set.ResetState(&b, f.stream, nil, ids, 64),
		"reset at":    f.set.ResetStateAt(&b, f.stream, nil, list, 64),
		"checksum":    f.set.ChecksumBlocks(&b, f.stream, nil, ids, 64),
		"checksum at": f.set.ChecksumBlocksAt(&b, f.stream, nil, list, 64),
	} {
		require.ErrorIs(t, err, cuda.ErrInvalidValue, name)
		require.ErrorContains(t, err, "no table", name)
	}
	require.Zero(t, b.Len())
}
