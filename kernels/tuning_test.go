package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

func tuned(dev cuda.Device) Tuning {
	t := DefaultTuning()
	t.Device = Tuned(dev.Info())
	return t
}

func TestTuningJSON(t *testing.T) {
	d := newHostDevice()
	want := tuned(d)
	want.Tile, want.BlocksPerSM, want.SMs, want.RankedBy = 16<<10, 4, 20, "time"
	want.Variant = Variant{Store: WriteBack, Unroll: 16, Arch: "compute_90"}
	text, err := json.Marshal(want)
	require.NoError(t, err)
	got, err := ParseTuning(text)
	require.NoError(t, err)
	require.Equal(t, want, *got)
	require.NoError(t, got.Check(d.Info()))

	for says, change := range map[string]string{
		`version 7, this library reads 1`:     `"version":1→"version":7`,
		`tile_bytes 1000`:                     `"tile_bytes":16384→"tile_bytes":1000`,
		`tile_bytes 1073741824`:               `"tile_bytes":16384→"tile_bytes":1073741824`,
		`blocks_per_sm 33`:                    `"blocks_per_sm":4→"blocks_per_sm":33`,
		`blocks_per_sm -1`:                    `"blocks_per_sm":4→"blocks_per_sm":-1`,
		`sms -1`:                              `"sms":20→"sms":-1`,
		`store "none", want "streaming"`:      `"write-back"→"none"`,
		`unroll 17`:                           `"unroll":16→"unroll":17`,
		`arch "sm_90", want compute_NN`:       `"compute_90"→"sm_90"`,
		`arch "compute_90 -I/"`:               `"compute_90"→"compute_90 -I/"`,
		`unknown field "tile"`:                `"tile_bytes"→"tile"`,
		`unexpected EOF`:                      `}→`,
		`more than one value`:                 `"ranked_by":"time"}→"ranked_by":"time"} {}`,
		`cannot unmarshal number 1.5 into Go`: `"version":1→"version":1.5`,
	} {
		from, to, _ := strings.Cut(change, "→")
		_, err := ParseTuning(bytes.ReplaceAll(text, []byte(from), []byte(to)))
		require.ErrorIs(t, err, ErrTuning, change)
		require.ErrorContains(t, err, says)
	}
}

func FuzzParseTuning(f *testing.F) {
	text, err := json.Marshal(DefaultTuning())
	require.NoError(f, err)
	f.Add(text)
	f.Add([]byte(`{"version":1,"variant":{"arch":"compute_100a"}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := ParseTuning(text)
		if (got == nil) == (err == nil) {
			t.Fatalf("%v and %v", got, err)
		}
		if got != nil {
			require.NoError(t, got.Validate())
		}
	})
}

func TestTuningOfAnotherDeviceIsRefused(t *testing.T) {
	d := newHostDevice()
	for name, change := range map[string]func(*TunedDevice){
		"name":      func(t *TunedDevice) { t.Name = "NVIDIA H200" },
		"SMs":       func(t *TunedDevice) { t.SMs++ },
		"capable":   func(t *TunedDevice) { t.Capability[0]++ },
		"simulated": func(t *TunedDevice) { t.Simulated = !t.Simulated },
	} {
		other := tuned(d)
		change(&other.Device)
		_, err := LoadWithOptions(d, LoadOptions{Tuning: &other})
		require.ErrorIs(t, err, ErrOtherDevice, name)
		require.ErrorContains(t, err, other.Device.String())
		require.ErrorContains(t, err, Tuned(d.Info()).String())
		require.Zero(t, d.modules, "nothing was loaded")
	}
	_, err := LoadWithOptions(d, LoadOptions{Tuning: &Tuning{Version: 1, Tile: 1}})
	require.ErrorIs(t, err, ErrTuning)
	set, err := LoadWithOptions(d, LoadOptions{Tuning: &Tuning{}})
	require.NoError(t, err, "the zero tuning is the defaults, on any device")
	require.Equal(t, DefaultTuning(), set.tuning)
	require.NoError(t, set.Close())
}

// Tile and thread blocks are those of the tuning, the budget bounds the grid.
func TestTuningShapesLaunches(t *testing.T) {
	f := newFixture(t)
	tuning := tuned(f.dev)
	tuning.Tile, tuning.BlocksPerSM, tuning.SMs = 128, 3, 5
	set, err := LoadWithOptions(f.dev, LoadOptions{Tuning: &tuning})
	require.NoError(t, err)
	table, err := set.NewTable(*f.table.Layout())
	require.NoError(t, err)
	require.EqualValues(t, 2, f.table.count)
	require.EqualValues(t, 9, table.count, "1,000 bytes in tiles of 128, and 24")
	grid := func(s *Set) uint32 {
		var b cuda.Batch
		require.NoError(t, s.ZeroBlocks(&b, f.stream, table, sequence(1000)))
		return b.Commands()[0].Grid[0]
	}
	sms := f.dev.Info().SMs
	with := func(h Shape) *Set {
		s, err := set.WithShape(h)
		require.NoError(t, err)
		return s
	}
	require.EqualValues(t, 15, grid(set))
	require.EqualValues(t, 6, grid(with(Shape{SMs: 2})))
	require.EqualValues(t, min(3*sms, (9000-1)/warpsPerBlock+1), grid(with(Shape{SMs: -1})), "all")
	require.EqualValues(t, 30, grid(with(Shape{BlocksPerSM: 6})))
	require.EqualValues(t, grid(with(Shape{SMs: -1})), grid(with(Shape{SMs: sms + 100})), "no more than there are")
	wide, err := with(Shape{Tile: 256}).NewTable(*f.table.Layout())
	require.NoError(t, err)
	require.EqualValues(t, 5, wide.count)
	require.NoError(t, wide.Close())
	for _, h := range []Shape{{Tile: 1}, {BlocksPerSM: -1}, {BlocksPerSM: 33}, {SMs: maxSMs + 1}} {
		_, err := set.WithShape(h)
		require.ErrorIs(t, err, ErrTuning)
	}
	require.EqualValues(t, 15, grid(set), "it has not changed")
	require.NoError(t, table.Close())
	require.NoError(t, with(Shape{SMs: 2}).Close())
	var b cuda.Batch
	require.ErrorIs(t, set.ZeroBlocks(&b, f.stream, f.table, sequence(1)), cuda.ErrClosed, "they are one")
}

func TestVariantsThatAreNotEmbedded(t *testing.T) {
	d := newHostDevice()
	tuning := Tuning{Version: 1, Variant: Variant{Unroll: 16, Arch: "compute_90"}}
	_, err := LoadWithOptions(d, LoadOptions{Tuning: &tuning})
	require.ErrorIs(t, err, ErrTuning)
	require.ErrorContains(t, err, "variant streaming, unrolled 16 times, compute_90 is not embedded, and LoadOptions has no compiler")

	var asked []Source
	set, err := LoadWithOptions(d, LoadOptions{Tuning: &tuning, Compile: func(s Source) ([]byte, error) {
		asked = append(asked, s)
		return []byte("ptx"), nil
	}})
	require.NoError(t, err)
	require.Len(t, asked, int(kernelEnd))
	for _, s := range asked {
		require.Equal(t, []string{"--gpu-architecture=compute_90", "--std=c++17", "-DKVG_STREAMING=1", "-DKVG_UNROLL=16"}, s.Options)
		require.Contains(t, s.Headers["tiles.cuh"], "struct Cursor")
		require.Contains(t, s.Headers, "pages.cuh")
		require.Contains(t, s.Text, "#include")
	}
	require.NoError(t, set.Close())

	broken := errors.New("no such architecture")
	_, err = LoadWithOptions(d, LoadOptions{Tuning: &tuning, Compile: func(Source) ([]byte, error) { return nil, broken }})
	require.ErrorIs(t, err, broken)
	require.ErrorContains(t, err, "compile zero_blocks.cu, streaming, unrolled 16 times, compute_90")
	_, err = Variant{}.Source("no.cu")
	require.ErrorIs(t, err, ErrTuning)
}

// Every variant does the same, with any shape of launch.
func TestVariantsAgree(t *testing.T) {
	require.Equal(t, Variant{}.filled(), Variants()[0])
	r := newRig(t, 64<<10)
	l := layout.Table{Blocks: 4, Segments: []layout.Segment{
		{Base: r.arena + 5, Stride: 9001, Page: 8999}, {Base: r.arena + 40000, Stride: 1380, Page: 1380}}}
	for _, v := range Variants() {
		for _, tile := range []uint64{128, 4096, 32 << 10} {
			t.Run(fmt.Sprintf("%v/%d", v, tile), func(t *testing.T) {
				tuning := Tuning{Version: 1, Variant: v, Tile: tile, BlocksPerSM: 2}
				set, err := LoadWithOptions(r.dev, LoadOptions{Tuning: &tuning})
				require.NoError(t, err)
				s := *r
				s.set = set
				s.check(t, l, tile, []kv.Block{3, 1}, false)
				s.checkCopies(t, l, tile, []Pair{{3, 1}, {2, 1}}, []Pair{{1, 3}}, 2, 4, 8, true)
				require.NoError(t, set.Close())
			})
		}
	}
}

// What makes a variant is in its PTX, and the tile is loaded before the id is
// looked at, so that a warp waits for both at once.
func TestVariantsAreWhatTheySay(t *testing.T) {
	for _, v := range Variants() {
		for k := range kernelEnd {
			if k == checksumBlocks {
				continue // writes no pages
			}
			ptx, err := v.image(k, nil)
			require.NoError(t, err)
			vectors := bytes.Count(ptx, []byte("st.global.cs.v4.u32"))
			plain := bytes.Count(ptx, []byte("st.global.v4.u32"))
			if v.Store == Streaming {
				require.Positive(t, vectors, images[k].name)
				require.Zero(t, plain, images[k].name)
			} else {
				require.Positive(t, plain, images[k].name)
				require.Zero(t, vectors, images[k].name)
			}
		}
	}
	for k := range kernelEnd {
		ptx, err := Variant{}.image(k, nil)
		require.NoError(t, err)
		for i, text := range bytes.Split(ptx, []byte(".visible .entry"))[1:] {
			tile := bytes.Index(text, []byte("ld.global.nc.v2.u64"))
			require.Positive(t, tile)
			rest := text[tile:]
			require.Equal(t, 2, bytes.Count(rest[:bytes.Index(rest, []byte("bra"))], []byte("ld.global.nc.v2.u64")),
				"%s: both halves of the tile before the branch on the id", images[k].entries[i])
		}
	}
}
