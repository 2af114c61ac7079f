package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/memory/kv"
)

// readShared decodes a reference file, and fails on keys that v has no field
// for: what the file says is looked at or named here as not.
func readShared(t testing.TB, v any, elem ...string) {
	t.Helper()
	data, err := os.ReadFile(testutil.Shared(t, elem...))
	require.NoError(t, err)
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	require.NoError(t, d.Decode(v))
}

func loadShared(t testing.TB, model string) *Model {
	t.Helper()
	m, err := LoadConfig(testutil.Shared(t, "models", model, "config.json"))
	require.NoError(t, err)
	require.Equal(t, model, m.Name)
	return m
}

type layoutOracle struct {
	Model         string
	TP            int
	KVCacheDType  string `json:"kv_cache_dtype"`
	Mode          string `json:"mamba_cache_mode"`
	Speculative   int    `json:"num_speculative_tokens"`
	Layout        string
	KernelBlock   string `json:"kernel_block"`
	Layers        struct{ Full_attention, Sliding, Mamba int }
	BlockTokens   int     `json:"attention_block_size"`
	TokenBytes    uint64  `json:"attention_bytes_per_token_per_layer"`
	PageBytes     uint64  `json:"attention_page_bytes"`
	ConvShape     []int   `json:"conv_state_shape_sd"`
	TemporalShape []int   `json:"temporal_state_shape"`
	ConvDType     string  `json:"conv_dtype"`
	TemporalDType string  `json:"temporal_dtype"`
	StateBytes    uint64  `json:"mamba_state_bytes"`
	StatePage     uint64  `json:"mamba_page_bytes"`
	PaddingPct    float64 `json:"mamba_padding_pct"`
	Groups        []struct {
		Spec      string
		Layers    int
		BlockSize any    `json:"block_size"`
		Page      uint64 `json:"page_bytes"`
	}
	BytesPerBlock uint64 `json:"bytes_per_block"`
	NumBlocks     int    `json:"num_blocks_in_40GiB"`
	NeedsZeroing  bool   `json:"needs_zeroing"`
}

var oracleSpecs = map[string]Kind{
	"full_attention": FullAttention, "sliding_window": SlidingWindow, "mla": LatentAttention, "mamba": Recurrent,
	"FullAttentionSpec": FullAttention, "SlidingWindowSpec": SlidingWindow, "MLAAttentionSpec": LatentAttention,
	"MambaSpec": Recurrent, "UniformTypeKVCacheSpecs": LatentAttention,
}

var oracleKernels = map[string]KernelBlocks{
	"any multiple of 16": FlashAttention(), "multiple of 16": FlashAttention(),
	"64 exactly": FlashMLA(), "one of 16,32,64": FlashInfer(),
}

func oracleOptions(t *testing.T, tp int, order, kernel string) Options {
	t.Helper()
	o := Options{TP: tp}
	var err error
	o.Order, err = ParseOrder(order)
	require.NoError(t, err)
	k, ok := oracleKernels[kernel]
	require.True(t, ok, "kernel block %q", kernel)
	o.Kernel = k
	return o
}

// Every layout that vLLM's own functions computed comes out of the config.json.
// One of them has temporal states of another dtype than its config.json gives,
// set by hand; all others are by defaults alone.
func TestLayoutOracles(t *testing.T) {
	var file struct {
		Note    string
		Layouts []layoutOracle
	}
	readShared(t, &file, "models", "layout-oracles.json")
	require.Len(t, file.Layouts, 47)
	overridden := 0
	for _, c := range file.Layouts {
		name := fmt.Sprintf("%s/tp%d/%s/%s/%s/spec%d", c.Model, c.TP, c.KVCacheDType, c.Mode, c.Layout, c.Speculative)
		t.Run(name, func(t *testing.T) {
			m := loadShared(t, c.Model)
			o := oracleOptions(t, c.TP, c.Layout, c.KernelBlock)
			o.SpeculativeTokens = c.Speculative
			kvDType, err := ParseDType(c.KVCacheDType)
			require.NoError(t, err)
			if c.KVCacheDType != "bfloat16" {
				o.KVDType = kvDType
			}
			if c.Mode != "" {
				o.StateMode, err = ParseStateMode(c.Mode)
				require.NoError(t, err)
			}
			if c.Model == "nemotron-h-8b" && c.TP == 1 {
				overridden++
				o.StateDType = BFloat16
			}
			p, err := NewPlan(m, o)
			require.NoError(t, err)
			checkLayout(t, &c, p, kvDType)
			for rank := range c.TP {
				o.Rank = rank
				q, err := NewPlan(m, o)
				require.NoError(t, err)
				require.Equal(t, p.BlockBytes, q.BlockBytes)
			}
		})
	}
	require.Equal(t, 1, overridden)
}

func checkLayout(t *testing.T, c *layoutOracle, p *Plan, kvDType DType) {
	require.Equal(t, c.BlockTokens, p.BlockTokens)
	require.Equal(t, c.BytesPerBlock, p.BlockBytes)
	require.Equal(t, c.NeedsZeroing, p.NeedsZeroing, p.Why)
	n, err := p.Blocks(40 << 30)
	require.NoError(t, err)
	require.Equal(t, c.NumBlocks, n)
	require.Len(t, p.Groups, len(c.Groups))
	counts := map[Kind]int{}
	for i, want := range c.Groups {
		g := &p.Groups[i]
		require.Equal(t, oracleSpecs[want.Spec], g.Kind, "group %d", i)
		require.Len(t, g.Pages, want.Layers, "group %d", i)
		if want.BlockSize == "max_model_len" {
			require.Equal(t, p.Model.MaxTokens, g.BlockTokens, "group %d", i)
		} else {
			require.EqualValues(t, want.BlockSize, g.BlockTokens, "group %d", i)
		}
		for j := range g.Pages {
			pg := &g.Pages[j]
			counts[g.Kind]++
			require.Equal(t, want.Page, pg.Bytes, "group %d layer %d", i, j)
			if g.Kind == Recurrent {
				require.Equal(t, c.StateBytes, pg.Used)
				require.Equal(t, c.StatePage, pg.Bytes)
				require.Equal(t, c.ConvShape, []int{pg.ConvRows, pg.ConvChannels})
				require.Equal(t, c.TemporalShape, pg.Temporal)
				require.Equal(t, c.ConvDType, pg.ConvDType.String())
				require.Equal(t, c.TemporalDType, pg.StateDType.String())
				require.InDelta(t, c.PaddingPct, 100*float64(pg.Padding())/float64(pg.Used), 0.00501)
			} else {
				require.Equal(t, c.TokenBytes*uint64(g.BlockTokens), pg.Used)
				require.Equal(t, c.PageBytes, pg.Bytes)
				require.Equal(t, kvDType, pg.DType)
			}
		}
	}
	require.Equal(t, c.Layers.Full_attention, counts[FullAttention]+counts[LatentAttention])
	require.Equal(t, c.Layers.Sliding, counts[SlidingWindow])
	require.Equal(t, c.Layers.Mamba, counts[Recurrent])
}

type segmentOracle struct {
	Case          string
	Layout        string
	Kernel        string `json:"attention_kernel_blocks"`
	NumBlocks     int    `json:"num_blocks"`
	BytesPerBlock uint64 `json:"bytes_per_block"`
	ArenaBytes    uint64 `json:"arena_bytes"`
	NeedsZeroing  bool   `json:"needs_zeroing"`
	Groups        []struct {
		Spec        string
		Layers      int
		BlockSize   int    `json:"block_size"`
		Page        uint64 `json:"page_bytes"`
		KernelBlock int    `json:"kernel_block_size"`
	}
	// One for each group, or for each page size of the only group.
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

// Every segment table that vLLM's own code built comes out of the config.json,
// and zeroing by it leaves the bytes that vLLM's kernel left.
func TestSegmentOracles(t *testing.T) {
	var file struct {
		Note  string
		Cases []segmentOracle
	}
	readShared(t, &file, "models", "segment-oracles.json")
	require.Len(t, file.Cases, 13)
	for _, c := range file.Cases {
		t.Run(c.Case+"/"+c.Layout+"/"+c.Kernel, func(t *testing.T) {
			model, tp := strings.Fields(c.Case)[0], 1
			if _, err := fmt.Sscanf(strings.Fields(c.Case)[1], "tp%d", &tp); err != nil {
				require.Equal(t, "deepseek-v3.2 bf16 + indexer", c.Case)
			}
			o := oracleOptions(t, tp, c.Layout, c.Kernel)
			if model == "kimi-linear-48b-a3b" {
				o.MaxTokens = 1 << 20 // its config.json does not say
			}
			p, err := NewPlan(loadShared(t, model), o)
			require.NoError(t, err)
			require.Equal(t, c.NeedsZeroing, p.NeedsZeroing, p.Why)
			require.Equal(t, c.BytesPerBlock, p.BlockBytes)
			require.Equal(t, c.ArenaBytes, p.Size(c.NumBlocks))
			const base = 1 << 40
			a, err := p.Place(base, c.NumBlocks)
			require.NoError(t, err)
			checkPlaces(t, &c, a)

			table := a.SegmentsMerged()
			require.NoError(t, table.Validate())
			require.Len(t, table.Segments, c.NumSegments)
			for i, want := range c.Segments {
				got := table.Segments[i]
				require.Equal(t, want, [3]uint64{got.Base - base, got.Stride, got.Page}, "segment %d", i)
			}
			require.Equal(t, []int{len(c.ZeroIDs), len(table.Segments), int(cdiv(widest(table)/4, 1024))}, c.Grid)

			arena := bytes.Repeat([]byte{0xa5}, int(c.ArenaBytes))
			for _, id := range c.ZeroIDs {
				for _, s := range table.Segments {
					clear(arena[s.Address(id)-base:][:s.Page])
				}
			}
			require.Equal(t, c.ZeroedBytes, bytes.Count(arena, []byte{0}))
			sum := sha256.Sum256(arena)
			require.Equal(t, c.SHA256, hex.EncodeToString(sum[:]))
		})
	}
}

func widest(t Table) uint64 {
	var n uint64
	for _, s := range t.Segments {
		n = max(n, s.Page)
	}
	return n
}

func checkPlaces(t *testing.T, c *segmentOracle, a *Arena) {
	require.Len(t, a.Plan.Groups, len(c.Groups))
	type place struct{ base, stride uint64 }
	var want, got []place
	for _, tensor := range c.Tensors {
		for l := range uint64(tensor.Layers) {
			want = append(want, place{tensor.Offset + l*tensor.LayerStride, tensor.BlockStride})
		}
	}
	for i, o := range c.Groups {
		g := &a.Plan.Groups[i]
		require.Equal(t, oracleSpecs[o.Spec], g.Kind)
		require.Len(t, g.Pages, o.Layers)
		require.Equal(t, o.BlockSize, g.BlockTokens)
		if g.Kind.Attention() {
			require.Equal(t, o.KernelBlock, g.KernelTokens)
			require.Equal(t, o.BlockSize, o.KernelBlock*g.Ratio)
		}
		if o.Spec == "UniformTypeKVCacheSpecs" {
			require.Equal(t, o.Page, g.Bytes())
		}
		for j := range g.Pages {
			if o.Spec != "UniformTypeKVCacheSpecs" {
				require.Equal(t, o.Page, g.Pages[j].Bytes)
			}
			s := a.Page(i, j)
			got = append(got, place{s.Base - a.Base, s.Stride})
		}
	}
	require.Equal(t, want, got)
}
