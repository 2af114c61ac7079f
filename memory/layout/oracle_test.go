package layout

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
)

// oracles calls f with each file of reference values: those that the variable
// lists, else those of testdata. Where KVGATE_MODELS names folders the models
// are read from there.
func oracles(t *testing.T, variable, pattern string, f func(t *testing.T, data []byte)) {
	files := slices.DeleteFunc(filepath.SplitList(os.Getenv(variable)), func(s string) bool { return s == "" })
	if len(files) == 0 {
		var err error
		files, err = filepath.Glob(filepath.Join("testdata", pattern))
		require.NoError(t, err)
	}
	require.NotEmpty(t, files)
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if *update {
			small, err := testutil.Reduce(data)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join("testdata", filepath.Base(path)), small, 0o666))
		}
		data, err = testutil.Expand(data)
		require.NoError(t, err)
		t.Run(strings.TrimSuffix(filepath.Base(path), ".json"), func(t *testing.T) { f(t, data) })
	}
}

// strictly decodes a file. Keys that v has no field for are said: what a file
// says is looked at, or known not to be.
func strictly(t *testing.T, data []byte, v any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		t.Logf("not all of the file is looked at: %v", err)
		require.NoError(t, json.Unmarshal(data, v))
	}
}

// specs are the kinds of layers by the names that the files have for them. A
// form of older files calls latent attention full.
var specs = map[string]Kind{
	"full_attention": FullAttention, "sliding_window": SlidingWindow, "sliding": SlidingWindow, "chunked_local": ChunkedLocal, "mla": LatentAttention,
	"index": SparseIndex, "mamba": Recurrent, "sliding_window_mla": LatentWindow, "compressor_state": CompressorState,
	"index_compressor_state": IndexCompressorState,
	"FullAttentionSpec":      FullAttention, "SlidingWindowSpec": SlidingWindow, "ChunkedLocalAttentionSpec": ChunkedLocal,
	"MLAAttentionSpec": LatentAttention, "MambaSpec": Recurrent,
}

func kindOf(t *testing.T, spec string) Kind {
	k, ok := specs[spec]
	require.True(t, ok, "spec %q", spec)
	return k
}

// kernelBlocks reads what the attention backends of a case can page: a string,
// or a list of strings for each backend. Several have to agree.
func kernelBlocks(t *testing.T, raw json.RawMessage) KernelBlocks {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return kernelBlock(t, one)
	}
	var each map[string][]string
	require.NoError(t, json.Unmarshal(raw, &each))
	require.NotEmpty(t, each)
	var both KernelBlocks
	for _, name := range slices.Sorted(maps.Keys(each)) {
		var k KernelBlocks
		for _, text := range each[name] {
			one := kernelBlock(t, text)
			require.True(t, len(each[name]) == 1 || one.Multiple == 0, "%s: %q", name, each[name])
			k.Multiple = one.Multiple
			k.Exact = append(k.Exact, one.Exact...)
		}
		switch {
		case both.Multiple == 0 && both.Exact == nil:
			both = k
		case both.Exact == nil && k.Exact == nil:
			both.Multiple = int(lcm(uint64(both.Multiple), uint64(k.Multiple)))
		case both.Exact == nil:
			both = KernelBlocks{Exact: slices.DeleteFunc(k.Exact, func(n int) bool { return n%both.Multiple != 0 })}
		case k.Exact == nil:
			both.Exact = slices.DeleteFunc(both.Exact, func(n int) bool { return n%k.Multiple != 0 })
		default:
			both.Exact = slices.DeleteFunc(both.Exact, func(n int) bool { return !slices.Contains(k.Exact, n) })
		}
	}
	require.True(t, both.Multiple > 0 || len(both.Exact) > 0, "no block size suits all of %s", raw)
	return both
}

func kernelBlock(t *testing.T, text string) (k KernelBlocks) {
	words := strings.Fields(strings.TrimPrefix(text, "any "))
	switch {
	case strings.HasPrefix(text, "one of "):
		for _, n := range strings.Split(strings.TrimPrefix(text, "one of "), ",") {
			k.Exact = append(k.Exact, number(t, strings.TrimSpace(n)))
		}
	case len(words) == 3 && words[0] == "multiple" && words[1] == "of":
		k.Multiple = number(t, words[2])
	case len(words) == 2 && words[1] == "exactly":
		k.Exact = []int{number(t, words[0])}
	default:
		t.Fatalf("kernel block %q", text)
	}
	return k
}

func number(t *testing.T, s string) int {
	n, err := strconv.Atoi(s)
	require.NoError(t, err)
	return n
}

// backendOptions sets what the backends of a case ask for: whole rows in
// block-outermost orders, and the form of a quantised sparse latent cache.
func backendOptions(o *Options, m *Model, raw json.RawMessage) {
	quantised := o.KVDType != DefaultDType && o.KVDType != m.dtype() || o.KVDType == DefaultDType && m.KVDType != DefaultDType
	switch names := string(raw); {
	case strings.Contains(names, `"FLASHMLA_SPARSE"`) && quantised:
		o.RowTokens = 64
		if o.KVDType == FP8 || o.KVDType == DefaultDType {
			o.KVDType = FP8MLA
		}
	case strings.Contains(names, `"FLASHMLA_SPARSE"`), strings.Contains(names, `"FLASH_ATTN_MLA_SPARSE"`):
		o.RowTokens = 1
	}
}

type layoutOracle struct {
	Model         string
	TP, PP        int
	Stage         int             `json:"pp_rank"`
	Asked         *string         `json:"kv_cache_dtype_asked"`
	Declared      *string         `json:"checkpoint_kv_cache_dtype"`
	KVCacheDType  string          `json:"kv_cache_dtype"`
	Mode          string          `json:"mamba_cache_mode"`
	Speculative   int             `json:"num_speculative_tokens"`
	Layout        string          `json:"layout"`
	KernelBlock   json.RawMessage `json:"kernel_block"`
	Backends      json.RawMessage `json:"attention_backends"`
	Layers        map[string]int
	LayerKinds    []layerKind `json:"layer_kinds"`
	BlockTokens   int         `json:"attention_block_size"`
	TokenBytes    uint64      `json:"attention_bytes_per_token_per_layer"`
	PageBytes     uint64      `json:"attention_page_bytes"`
	ConvShape     []int       `json:"conv_state_shape_sd"`
	TemporalShape []int       `json:"temporal_state_shape"`
	ConvDType     string      `json:"conv_dtype"`
	TemporalDType string      `json:"temporal_dtype"`
	StateBytes    uint64      `json:"mamba_state_bytes"`
	StatePage     uint64      `json:"mamba_page_bytes"`
	PaddingPct    float64     `json:"mamba_padding_pct"`
	Groups        []oracleGroup
	BytesPerBlock uint64 `json:"bytes_per_block"`
	NumBlocks     int    `json:"num_blocks_in_40GiB"`
	NeedsZeroing  bool   `json:"needs_zeroing"`
}

// layerKind is a specification, with the number of its layers.
type layerKind struct {
	Spec        string
	BlockSize   any    `json:"block_size"`
	PageBytes   uint64 `json:"page_bytes"`
	KVHeads     int    `json:"kv_heads"`
	HeadSize    int    `json:"head_size"`
	HeadSizeV   int    `json:"head_size_v"`
	DType       string `json:"dtype"`
	BytesPer    int    `json:"bytes_per_state"`
	TokensPer   int    `json:"tokens_per_state"`
	Window      int    `json:"window"`
	Chunk       int    `json:"chunk"`
	Unpadded    uint64 `json:"unpadded_page_bytes"`
	StateBytes  uint64 `json:"state_bytes"`
	StateShapes any    `json:"state_shapes"`
	StateDTypes any    `json:"state_dtypes"`
	Layers      int
}

type oracleGroup struct {
	Spec      string
	Layers    int
	BlockSize any           `json:"block_size"`
	Page      uint64        `json:"page_bytes"`
	Indices   []int         `json:"layer_indices"`
	Members   []oracleGroup // of a group with several page sizes
	Kernel    int           `json:"kernel_block_size"`
}

// Every layout that vLLM's own functions computed comes out of the
// configuration.
func TestLayoutOracles(t *testing.T) {
	oracles(t, "KVGATE_LAYOUT_ORACLES", "layout-*.json", func(t *testing.T, data []byte) {
		var file struct {
			Note    string
			Layouts []layoutOracle
		}
		strictly(t, data, &file)
		require.NotEmpty(t, file.Layouts)
		byDefault, byHand := map[string]bool{}, map[string]bool{}
		for i := range file.Layouts {
			c := &file.Layouts[i]
			asked := "auto"
			if c.Asked != nil {
				asked = *c.Asked
			}
			t.Run(fmt.Sprintf("%s/tp%d/pp%d.%d/%s.%s/%s/%s/spec%d", c.Model, c.TP, c.PP, c.Stage, asked, c.KVCacheDType, c.Mode, c.Layout, c.Speculative), func(t *testing.T) {
				m, o := loadModel(t, c.Model), oracleOptions(t, c)
				backendOptions(&o, m, c.Backends)
				p, err := NewPlan(m, o)
				require.NoError(t, err)
				if d := temporalDType(p); c.Asked == nil && d != "" && d != c.TemporalDType {
					// The older form does not say that the operator asked for a dtype.
					byHand[c.Model] = true
					o.StateDType, err = ParseDType(c.TemporalDType)
					require.NoError(t, err)
					p, err = NewPlan(m, o)
					require.NoError(t, err)
				} else {
					byDefault[c.Model] = true
				}
				c.check(t, p)
				for rank := range c.TP {
					o.Rank = rank
					q, err := NewPlan(m, o)
					require.NoError(t, err)
					require.Equal(t, p.BlockBytes, q.BlockBytes)
				}
			})
		}
		for name := range byHand {
			require.True(t, byDefault[name], "all layouts of %s have temporal states of another dtype", name)
		}
	})
}

func oracleOptions(t *testing.T, c *layoutOracle) Options {
	o := Options{TP: c.TP, PP: c.PP, Stage: c.Stage, SpeculativeTokens: c.Speculative, Kernel: kernelBlocks(t, c.KernelBlock)}
	asked := c.KVCacheDType
	if c.Asked != nil {
		asked = *c.Asked
	}
	var err error
	o.Order, err = ParseOrder(c.Layout)
	require.NoError(t, err)
	o.KVDType, err = ParseDType(asked)
	require.NoError(t, err)
	if c.Mode != "" {
		o.StateMode, err = ParseStateMode(c.Mode)
		require.NoError(t, err)
	}
	return o
}

func temporalDType(p *Plan) string {
	for i := range p.Groups {
		for j := range p.Groups[i].Pages {
			if pg := &p.Groups[i].Pages[j]; len(pg.Temporal) > 0 {
				return pg.StateDType.String()
			}
		}
	}
	return ""
}

func (c *layoutOracle) check(t *testing.T, p *Plan) {
	m := p.Model
	if c.Asked != nil {
		want := DefaultDType
		if c.Declared != nil {
			var err error
			want, err = ParseDType(*c.Declared)
			require.NoError(t, err)
		}
		require.Equal(t, want, m.KVDType, "what the checkpoint declares")
	}
	require.Equal(t, c.BlockTokens, p.BlockTokens)
	require.Equal(t, c.BytesPerBlock, p.BlockBytes)
	require.Equal(t, c.NeedsZeroing, p.NeedsZeroing, p.Why)
	require.Equal(t, c.NumBlocks, leastBlocks(t, p, 40<<30))

	counts, kinds := map[string]int{}, map[string]int{}
	require.Len(t, p.Groups, len(c.Groups))
	for i := range p.Groups {
		g := &p.Groups[i]
		c.Groups[i].check(t, p, g, c.Asked != nil)
		for j := range g.Pages {
			pg := &g.Pages[j]
			counts[specOf(p, pg)]++
			kinds[inWords(p, pg)]++
			if g.Kind == Recurrent {
				require.Equal(t, c.StateBytes, pg.Used)
				require.Equal(t, c.StatePage, pg.Bytes)
				require.Equal(t, c.ConvShape, []int{pg.ConvRows, pg.ConvChannels})
				require.Equal(t, c.ConvDType, pg.ConvDType.String())
				require.Equal(t, c.TemporalShape, pg.Temporal)
				if len(pg.Temporal) > 0 {
					require.Equal(t, c.TemporalDType, pg.StateDType.String())
				}
				require.InDelta(t, c.PaddingPct, 100*float64(pg.Padding())/float64(pg.Used), 0.00501)
			}
		}
	}
	c.checkAttention(t, p)
	if _, ok := c.Layers["mla"]; !ok && c.Asked == nil {
		counts["full_attention"] += counts["mla"] // the older form
		counts["sliding"] = counts["sliding_window"]
		delete(counts, "mla")
		delete(counts, "sliding_window")
	}
	for spec, n := range c.Layers {
		require.Equal(t, n, counts[spec], "layers of %s", spec)
		delete(counts, spec)
	}
	require.Empty(t, counts)
	if c.Asked == nil {
		return
	}
	for i := range c.LayerKinds {
		k := &c.LayerKinds[i]
		require.Equal(t, k.Layers, kinds[k.inWords()], "%s; there are %v", k.inWords(), kinds)
		delete(kinds, k.inWords())
	}
	require.Empty(t, kinds)
}

// leastBlocks returns how many blocks fit on each of the plan's stages.
func leastBlocks(t *testing.T, p *Plan, available uint64) int {
	least := MaxBlocks
	for stage := range p.Options.PP {
		o := p.Options
		o.Stage = stage
		q, err := NewPlan(p.Model, o)
		require.NoError(t, err)
		n, err := q.Blocks(available)
		require.NoError(t, err)
		least = min(least, n)
	}
	return least
}

// checkAttention looks at the first kind of full or latent attention, or else of
// windows: its page, and the bytes of a token where each has its own vector.
func (c *layoutOracle) checkAttention(t *testing.T, p *Plan) {
	for _, kinds := range [][]Kind{{FullAttention, LatentAttention}, {SlidingWindow}} {
		for g := range p.Groups {
			for i := range p.Groups[g].Pages {
				pg := &p.Groups[g].Pages[i]
				if !slices.Contains(kinds, p.Model.Layers[pg.Layer].Kind) {
					continue
				}
				require.Equal(t, c.PageBytes, pg.Bytes)
				if c.TokenBytes > 0 {
					require.Equal(t, c.TokenBytes*uint64(pg.tokens), pg.Used)
				}
				want, err := ParseDType(c.KVCacheDType)
				require.NoError(t, err)
				if want == FP8MLA && pg.DType == FP8MLAV4 {
					want = FP8MLAV4 // goes by one name
				}
				require.Equal(t, want, pg.DType)
				return
			}
		}
	}
}

// check looks at a group. Groups with several page sizes list their members by
// size, in the order of the model's layers.
func (want *oracleGroup) check(t *testing.T, p *Plan, g *Group, indices bool) {
	require.Len(t, g.Pages, want.Layers)
	want.checkBlock(t, p, g)
	members := want.Members
	if len(members) == 0 {
		members = []oracleGroup{*want}
		require.Equal(t, kindOf(t, want.Spec), g.Kind)
	}
	bySize := bucket(g.Pages, func(pg *Page) string { return fmt.Sprint(pg.Bytes, p.Model.Layers[pg.Layer].Kind) })
	if len(g.Pages) == 0 {
		require.Zero(t, want.Layers)
		return
	}
	require.Len(t, bySize, len(members))
	for i := range members {
		w, pages := &members[i], bySize[i]
		require.Len(t, pages, w.Layers)
		require.Equal(t, kindOf(t, w.Spec), p.Model.Layers[pages[0].Layer].Kind)
		require.Equal(t, w.Page, pages[0].Bytes)
		var got []int
		for j := range pages {
			got = append(got, p.Model.Layers[pages[j].Layer].Index)
		}
		if len(want.Members) > 0 {
			slices.Sort(got)
		}
		if indices {
			require.Equal(t, w.Indices, got)
		}
	}
}

func (want *oracleGroup) checkBlock(t *testing.T, p *Plan, g *Group) {
	if want.BlockSize == "max_model_len" {
		require.Equal(t, p.Options.MaxTokens, g.BlockTokens)
		return
	}
	require.EqualValues(t, want.BlockSize, g.BlockTokens)
}

func specOf(p *Plan, pg *Page) string {
	for _, name := range []string{"full_attention", "sliding_window", "chunked_local", "mla", "index", "mamba", "sliding_window_mla",
		"compressor_state", "index_compressor_state"} {
		if specs[name] == p.Model.Layers[pg.Layer].Kind {
			return name
		}
	}
	return "?"
}

// inWords writes down what a layer keeps, in the words of the files.
func inWords(p *Plan, pg *Page) string {
	l := &p.Model.Layers[pg.Layer]
	block := any(float64(pg.tokens))
	if l.Kind == Recurrent && p.Options.StateMode == StateNone {
		block = "max_model_len"
	}
	if l.Kind == Recurrent {
		shapes, dtypes := []any{ints(pg.ConvRows, pg.ConvChannels)}, []any{pg.ConvDType.String()}
		if len(pg.Temporal) > 0 {
			shapes, dtypes = append(shapes, ints(pg.Temporal...)), append(dtypes, pg.StateDType.String())
		}
		return fmt.Sprint("mamba", block, pg.Bytes, pg.Used, shapes, dtypes)
	}
	window, chunk := l.Window, 0
	if l.Kind == ChunkedLocal {
		window, chunk = 0, l.Window
	}
	dtype := "uint8"
	switch {
	case pg.DType.size() > 1:
		dtype = pg.DType.String()
	case pg.DType == INT8, pg.DType == INT8PerTokenHead:
		dtype = "int8"
	}
	head, bytesPer := l.KeyDim, 0
	switch {
	case pg.DType == FP8Index:
		head = int(pg.vector)
	case pg.DType.size() == 0:
		bytesPer = int(pg.vector) / pg.Heads
	}
	return fmt.Sprint(specOf(p, pg), block, pg.Bytes, pg.Used, pg.Heads, head, l.ValueDim, dtype, bytesPer, max(l.Compression, 1), window, chunk)
}

func (k *layerKind) inWords() string {
	if k.Spec == "mamba" {
		return fmt.Sprint("mamba", k.BlockSize, k.PageBytes, k.StateBytes, k.StateShapes, k.StateDTypes)
	}
	unpadded := k.Unpadded
	if unpadded == 0 {
		unpadded = k.PageBytes
	}
	return fmt.Sprint(k.Spec, k.BlockSize, k.PageBytes, unpadded, k.KVHeads, k.HeadSize, k.HeadSizeV, k.DType, k.BytesPer, max(k.TokensPer, 1), k.Window, k.Chunk)
}

func ints(v ...int) (out []any) {
	for _, n := range v {
		out = append(out, float64(n))
	}
	return out
}
