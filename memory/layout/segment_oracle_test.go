package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

type segmentOracle struct {
	Case          string
	Layout        string
	Kernel        json.RawMessage `json:"attention_kernel_blocks"`
	NumBlocks     int             `json:"num_blocks"`
	BytesPerBlock uint64          `json:"bytes_per_block"`
	ArenaBytes    uint64          `json:"arena_bytes"`
	NeedsZeroing  bool            `json:"needs_zeroing"`
	Groups        []oracleGroup
	// For each group, those of one specification.
	Tensors []struct {
		Layers      int
		Offset      uint64
		LayerStride uint64 `json:"layer_stride"`
		BlockStride uint64 `json:"block_stride"`
	}
	ZeroIDs     []kv.Block `json:"zero_block_ids"`
	Grid        []int
	KernelElems int    `json:"kernel_block_elems"`
	NumSegments int    `json:"n_segments"`
	ZeroedBytes int    `json:"zeroed_bytes"`
	SHA256      string `json:"sha256_after"`
	Segments    [][3]uint64
}

// Every segment table that vLLM's own code built comes out of the
// configuration, and zeroing by it leaves the bytes that vLLM's kernel left.
func TestSegmentOracles(t *testing.T) {
	oracles(t, "KVGATE_SEGMENT_ORACLES", "segment-*.json", func(t *testing.T, data []byte) {
		var file struct {
			Note  string
			Cases []segmentOracle
		}
		strictly(t, data, &file)
		require.NotEmpty(t, file.Cases)
		for i := range file.Cases {
			c := &file.Cases[i]
			t.Run(c.Case+"/"+c.Layout+"/"+string(c.Kernel), func(t *testing.T) { c.check(t) })
		}
	})
}

func (c *segmentOracle) check(t *testing.T) {
	m, o := c.model(t)
	p, err := NewPlan(m, o)
	require.NoError(t, err)
	require.Equal(t, c.NeedsZeroing, p.NeedsZeroing, p.Why)
	require.Equal(t, c.BytesPerBlock, p.BlockBytes)
	require.Equal(t, c.ArenaBytes, p.Size(c.NumBlocks))
	const base = 1 << 40
	a, err := p.Place(base, c.NumBlocks)
	require.NoError(t, err)
	c.checkPlaces(t, a)

	table := a.SegmentsMerged()
	require.NoError(t, table.Validate())
	require.Len(t, table.Segments, c.NumSegments)
	slices.SortFunc(c.Segments, func(x, y [3]uint64) int { return slices.Compare(x[:], y[:]) })
	var widest uint64
	for i, want := range c.Segments {
		got := table.Segments[i]
		require.Equal(t, want, [3]uint64{got.Base - base, got.Stride, got.Page}, "segment %d", i)
		widest = max(widest, got.Page)
	}
	require.Equal(t, []int{len(c.ZeroIDs), len(table.Segments), int(cdiv(widest/4, uint64(c.KernelElems)))}, c.Grid)

	arena := bytes.Repeat([]byte{0xa5}, int(c.ArenaBytes))
	for _, id := range c.ZeroIDs {
		for _, s := range table.Segments {
			clear(arena[s.Address(id)-base:][:s.Page])
		}
	}
	require.Equal(t, c.ZeroedBytes, bytes.Count(arena, []byte{0}))
	sum := sha256.Sum256(arena)
	require.Equal(t, c.SHA256, hex.EncodeToString(sum[:]))
}

// model reads the words of the case: a model, tp and a number, a dtype. "+
// indexer" says what the model has anyway.
func (c *segmentOracle) model(t *testing.T) (*Model, Options) {
	words := strings.Fields(c.Case)
	m := loadModel(t, words[0])
	o := Options{Kernel: kernelBlocks(t, c.Kernel)}
	var err error
	o.Order, err = ParseOrder(c.Layout)
	require.NoError(t, err)
	for _, w := range words[1:] {
		if n, ok := strings.CutPrefix(w, "tp"); ok {
			o.TP = number(t, n)
		} else if w != "+" && w != "indexer" {
			o.KVDType, err = ParseDType(w)
			require.NoError(t, err)
		}
	}
	backendOptions(&o, m, c.Kernel)
	for i := range c.Groups {
		switch g := &c.Groups[i]; {
		case g.Spec == "MambaSpec":
			o.MaxTokens = int(g.BlockSize.(float64)) // that of the longest sequence
		case g.Spec == "UniformTypeKVCacheSpecs" && len(g.Members) == 0:
			// The older form was computed of specifications in another order: the
			// index behind the cache.
			slices.SortStableFunc(m.Layers, func(x, y Layer) int {
				if x.Index != y.Index {
					return x.Index - y.Index
				}
				return int(x.Kind) - int(y.Kind)
			})
		}
	}
	return m, o
}

func (c *segmentOracle) checkPlaces(t *testing.T, a *Arena) {
	require.Len(t, a.Plan.Groups, len(c.Groups))
	type place struct{ base, stride uint64 }
	var want, got []place
	for _, tensor := range c.Tensors {
		for l := range uint64(tensor.Layers) {
			want = append(want, place{tensor.Offset + l*tensor.LayerStride, tensor.BlockStride})
		}
	}
	for i := range c.Groups {
		w, g := &c.Groups[i], &a.Plan.Groups[i]
		w.checkBlock(t, a.Plan, g)
		require.Len(t, g.Pages, w.Layers)
		if g.Kind.Attention() {
			require.Equal(t, w.Kernel, g.KernelTokens)
			require.Equal(t, g.BlockTokens, g.KernelTokens*g.Ratio)
		}
		if w.Spec == "UniformTypeKVCacheSpecs" {
			require.Equal(t, w.Page, g.Bytes())
			if len(w.Members) > 0 {
				w.check(t, a.Plan, g, false)
			}
		} else {
			w.check(t, a.Plan, g, false)
		}
		for j := range g.Pages {
			s := a.Page(i, j)
			got = append(got, place{s.Base - a.Base, s.Stride})
		}
	}
	require.Equal(t, want, got)
}
