package kernels

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

var update = flag.Bool("update", false, "write testdata/instructions.txt anew")

// countRig counts what the warps of a launch do on a simulated device of 132 SMs.
type countRig struct {
	*rig
	sim *sim.Device
}

const (
	countPage   = 1 << 20
	countBlocks = 8
)

func newCountRig(t testing.TB) *countRig {
	dev, err := sim.New(sim.Options{SMs: 132})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	r := &countRig{rig: &rig{dev: dev, size: countPage * (countBlocks + 1)}, sim: dev}
	r.stream, err = dev.NewStream(cuda.StreamOptions{Name: "test"})
	require.NoError(t, err)
	r.arena = r.alloc(t, r.size)
	return r
}

func (r *countRig) count(t testing.TB, fill func(*cuda.Batch) error) ptx.Count {
	before := r.sim.Stats().Kernels
	r.run(t, fill)
	c := r.sim.Stats().Kernels
	c.Sub(before)
	return c
}

func (r *countRig) row(w *tabwriter.Writer, name string, v fmt.Stringer, bytes uint64, c ptx.Count) {
	kib := float64(bytes) / 1024
	fmt.Fprintf(w, "%s\t%v\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\n", name, v, float64(c.Instructions)/kib, float64(c.Stores)/kib,
		float64(c.LaneStores)/kib, float64(c.StoreSectors)/kib, float64(c.LoadSectors)/kib)
}

// TestInstructionCounts holds what each kernel does for a KiB against a file. The
// blocks are pages of 1 MiB that begin at cache lines, eight of them.
func TestInstructionCounts(t *testing.T) {
	r := newCountRig(t)
	var out bytes.Buffer
	out.WriteString("# Work of warps for a KiB, counted by the interpreter of PTX: eight blocks of 1 MiB, 132 SMs.\n" +
		"# Made anew by go test ./kernels -run TestInstructionCounts -update.\n")
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "kernel\tvariant\tinstructions\tstores\tlane stores\tsectors stored\tsectors loaded")
	l := layout.Table{Blocks: countBlocks, RealNull: true, Segments: []layout.Segment{{Base: r.arena, Stride: countPage, Page: countPage}}}
	stage := Staging{At: cuda.DevicePtr(r.alloc(t, countPage*countBlocks)), Stride: countPage, Rows: countBlocks}
	sums := r.upload(t, make([]byte, 8*countBlocks))
	ids := make([]kv.Block, countBlocks)
	var rows, copies, back []Pair
	for i := range ids {
		ids[i] = kv.Block(i)
		rows = append(rows, Pair{Dst: kv.Block(i), Src: kv.Block(i)})
		back = append(back, Pair{Dst: kv.Block(i), Src: kv.Block(i)})
		if i < countBlocks/2 {
			copies = append(copies, Pair{Dst: kv.Block(i), Src: kv.Block(i + countBlocks/2)})
		}
	}
	list := List{IDs: r.upload(t, idBytes(ids)), Max: countBlocks}
	per := map[string]ptx.Count{}
	for _, v := range Variants() {
		var err error
		r.set, err = LoadWithOptions(r.dev, LoadOptions{Tuning: &Tuning{Version: 1, Variant: v}})
		require.NoError(t, err)
		table, err := r.set.NewTable(l)
		require.NoError(t, err)
		const all = countPage * countBlocks
		for _, k := range []struct {
			name  string
			bytes uint64
			add   func(*cuda.Batch) error
		}{
			{"zero_blocks", all, func(b *cuda.Batch) error { return r.set.ZeroBlocksAt(b, r.stream, table, list) }},
			{"zero_blocks_56", all, func(b *cuda.Batch) error { return r.set.ZeroBlocks(b, r.stream, table, ids) }},
			{"fill_blocks_56", all, func(b *cuda.Batch) error { return r.set.FillBlocks(b, r.stream, table, ids, 1) }},
			{"reset_state_56", all, func(b *cuda.Batch) error { return r.set.ResetState(b, r.stream, table, ids, stage.At) }},
			{"checksum_blocks_56", all, func(b *cuda.Batch) error { return r.set.launch(b, r.stream, checksumBlocks, table, uint64(sums), ids) }},
			{"copy_blocks_28", all / 2, func(b *cuda.Batch) error { return r.set.CopyBlocks(b, r.stream, table, copies) }},
			{"copy_blocks_28, gather", all, func(b *cuda.Batch) error { return r.set.GatherBlocks(b, r.stream, table, stage, rows) }},
			{"copy_blocks_28, scatter", all, func(b *cuda.Batch) error { return r.set.ScatterBlocks(b, r.stream, table, stage, back) }},
			{"prepare_step_54, zero", all, func(b *cuda.Batch) error {
				var p Preparation
				if err := p.Zero(table, ids); err != nil {
					return err
				}
				return r.set.PrepareStep(b, r.stream, &p)
			}},
		} {
			if k.name == "checksum_blocks_56" && v != Variants()[0] {
				continue // it writes no pages
			}
			c := r.count(t, k.add)
			if v == Variants()[0] {
				per[k.name] = c
			}
			r.row(w, k.name, v, k.bytes, c)
		}
		require.NoError(t, table.Close())
		require.NoError(t, r.set.Close())
	}

	// A kernel with 4-byte stores, over as many bytes.
	text, err := os.ReadFile("testdata/zero_words.ptx")
	require.NoError(t, err)
	m, err := r.dev.LoadModule(text)
	require.NoError(t, err)
	f, err := r.dev.Function(m, "zero_words")
	require.NoError(t, err)
	words := r.count(t, func(b *cuda.Batch) error {
		args := b.Launch(r.stream, f, cuda.Geometry{Grid: [3]uint32{countPage / 4096, countBlocks, 1}, Block: [3]uint16{128, 1, 1}}, 32)
		binary.LittleEndian.PutUint64(args, r.arena)
		binary.LittleEndian.PutUint64(args[8:], countPage/4)
		binary.LittleEndian.PutUint32(args[16:], countPage/4)
		binary.LittleEndian.PutUint64(args[24:], uint64(list.IDs))
		return nil
	})
	r.row(w, "zero_words", Store("4-byte stores"), countPage*countBlocks, words)
	require.NoError(t, w.Flush())
	require.NoError(t, r.dev.UnloadModule(m))

	zero := per["zero_blocks"]
	require.EqualValues(t, 64*countPage/1024*countBlocks, zero.LaneStores, "64 lane stores for a KiB")
	require.EqualValues(t, 2*countPage/1024*countBlocks, zero.Stores, "2 stores of a warp")
	require.Equal(t, words.Stores, 4*zero.Stores, "a quarter of a kernel with 4-byte stores")
	require.Less(t, 3*zero.Instructions, words.Instructions)
	require.Equal(t, words.StoreSectors, zero.StoreSectors, "no sector twice")

	const golden = "testdata/instructions.txt"
	if *update {
		require.NoError(t, os.WriteFile(golden, out.Bytes(), 0o644))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	require.Equal(t, string(want), out.String(), "counts changed: look at them, then run with -update")
}

// A copy of a block to itself touches nothing: it can not get in the way of another
// that writes the block.
func TestCopyToItselfTouchesNothing(t *testing.T) {
	r := newCountRig(t)
	set, err := Load(r.dev)
	require.NoError(t, err)
	table, err := set.NewTable(layout.Table{Blocks: 4, Segments: []layout.Segment{{Base: r.arena, Stride: 16000, Page: 16000}}})
	require.NoError(t, err)
	c := r.count(t, func(b *cuda.Batch) error { return set.CopyBlocks(b, r.stream, table, []Pair{{3, 3}, {1, 1}}) })
	require.Zero(t, c.Stores)
	c = r.count(t, func(b *cuda.Batch) error { return set.CopyBlocks(b, r.stream, table, []Pair{{3, 3}, {1, 2}}) })
	require.EqualValues(t, 16000/32, c.StoreSectors)
	require.NoError(t, table.Close())
	require.NoError(t, set.Close())
}

// Items of a section are dealt from where those of the one before it ended: eight
// sections of an eighth of the warps each take little longer than one of them.
func TestSectionsShareTheWarps(t *testing.T) {
	r := newCountRig(t)
	set, err := Load(r.dev)
	require.NoError(t, err)
	set, err = set.WithShape(Shape{SMs: 1}) // eight thread blocks: 64 warps
	require.NoError(t, err)
	var tables []*Table
	for i := range uint64(maxSections) {
		table, err := set.NewTable(layout.Table{Pool: kv.PoolID(i), Blocks: 1, RealNull: true,
			Segments: []layout.Segment{{Base: r.arena + i*(64<<10), Page: 64 << 10}}}) // eight tiles
		require.NoError(t, err)
		tables = append(tables, table)
	}
	longest := func(n int) uint64 {
		var p Preparation
		for _, table := range tables[:n] {
			require.NoError(t, p.Zero(table, []kv.Block{0}))
		}
		// As large a grid for one section as for eight.
		c := r.count(t, func(b *cuda.Batch) error {
			text := make([]byte, StepBytes(n))
			if _, err := p.Encode(0, text); err != nil {
				return err
			}
			return set.PrepareStepAt(b, r.stream, r.upload(t, text), 8*maxSections)
		})
		return c.Longest
	}
	one, eight := longest(1), longest(maxSections)
	overhead := eight - one // of looking at seven sections without an item in them
	require.Less(t, overhead, 7*(one/2), "a warp does the items of more than one section: %d and %d instructions", one, eight)
	for _, table := range tables {
		require.NoError(t, table.Close())
	}
	require.NoError(t, set.Close())
}

func (s Store) String() string { return string(s) }

// The same of the device's own instructions: what ptxas made of the PTX, which
// ./build.sh ptx-check holds against the file.
func TestSASSCounts(t *testing.T) {
	text, err := os.ReadFile("testdata/sass.txt")
	require.NoError(t, err)
	type row struct {
		loop, stores, bytes int
		early               int
	}
	rows := map[string]row{}
	archs := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if strings.HasPrefix(line, "#") || f[0] == "kernel" {
			continue
		}
		require.Len(t, f, 9)
		n := func(i int) int {
			v, err := strconv.Atoi(f[i])
			require.NoError(t, err)
			return v
		}
		rows[f[1]+" "+f[0]] = row{loop: n(2), stores: n(3), bytes: n(5), early: n(8)}
		archs[f[1]] = true
	}
	require.NotEmpty(t, archs)
	for arch := range archs {
		words := rows[arch+" zero_words"]
		for k, img := range images {
			for v, e := range img.entries {
				name := arch + " " + e
				r, ok := rows[name]
				require.True(t, ok, name)
				if kernel(k) == checksumBlocks {
					continue
				}
				require.Equal(t, 512*r.stores, r.bytes, "%s: 512 bytes a store", name)
				require.LessOrEqual(t, r.loop*1024, 10*r.bytes, "%s: at most 10 instructions for a KiB", name)
				require.Equal(t, words.stores*r.bytes, 4*r.stores*words.bytes, "%s: a quarter of the stores", name)
				want := 2 // the two halves of a tile
				if variant(v) == inMemory {
					want = 3 // and the id
				}
				require.GreaterOrEqual(t, r.early, want, "%s: loads that a warp waits for at once", name)
			}
		}
	}
}
