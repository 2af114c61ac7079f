package layout

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// ErrOptions is wrapped by errors about options that make no sense, by
// themselves or for the model.
var ErrOptions = errors.New("bad layout options")

func optionFault(format string, args ...any) error {
	return fmt.Errorf("layout: %s: %w", fmt.Sprintf(format, args...), ErrOptions)
}

// Order is the order of dimensions in memory, slowest first: layer L, block B,
// kv head H, token N, content C (the key and value of one token and head). The
// recurrent layers of a model know only L and B.
type Order uint8

const (
	LBNHC Order = iota // a tensor for each layer, the tokens of a block in order
	LBHNC              // the same, but within a block the heads one after the other
	LHBNC              // a tensor for each layer and head: a block's heads lie apart
	BLNHC              // a block's layers side by side, its tokens in order
	BLHNC              // the same, but within a layer the heads one after the other
	BHLNC              // a block's heads side by side, each with all layers
)

var orderNames = [...]string{"LBNHC", "LBHNC", "LHBNC", "BLNHC", "BLHNC", "BHLNC"}

func (o Order) String() string {
	if int(o) >= len(orderNames) {
		return fmt.Sprintf("order %d", uint8(o))
	}
	return orderNames[o]
}

// ParseOrder reads an order by its letters. The error wraps [ErrOptions].
func ParseOrder(s string) (Order, error) {
	if i := slices.Index(orderNames[:], s); i >= 0 {
		return Order(i), nil
	}
	return 0, optionFault("unknown order %q, want one of %v", s, orderNames)
}

// BlockOutermost reports whether all bytes of a block are one run.
func (o Order) BlockOutermost() bool { return o >= BLNHC }

// splitsPages reports whether the heads of a page are apart from each other.
func (o Order) splitsPages() bool { return o == LHBNC || o == BHLNC }

// StateMode is what an engine keeps of recurrent states.
type StateMode uint8

const (
	// StateNone: one block a request for its whole life (no prefix caching).
	StateNone StateMode = iota
	// StateAlign: a new block at each border of an attention block, the state
	// copied over.
	StateAlign
)

func (m StateMode) String() string {
	switch m {
	case StateNone:
		return "none"
	case StateAlign:
		return "align"
	}
	return fmt.Sprintf("state mode %d", uint8(m))
}

// ParseStateMode reads "none" or "align". The error wraps [ErrOptions].
func ParseStateMode(s string) (StateMode, error) {
	for m := StateNone; m <= StateAlign; m++ {
		if m.String() == s {
			return m, nil
		}
	}
	return 0, optionFault("unknown state mode %q, want none or align", s)
}

// ConvOrder is the order of a convolution state: rows first (SD) or channels
// first (DS). Under DS each projection is one run of bytes that can be cut by
// rank, so transfers between ranks of another number need it.
type ConvOrder uint8

const (
	ConvSD ConvOrder = iota // a row of all channels, then the next row
	ConvDS                  // all rows of a channel, then the next channel
)

// KernelBlocks says which block sizes, in tokens, an attention backend can
// page: any multiple of Multiple, or the sizes of Exact.
type KernelBlocks struct {
	Multiple int
	Exact    []int
}

// The block sizes of backends are those of vLLM 0.33.0.

// FlashAttention pages by multiples of 16 tokens, and so does vLLM's Triton
// backend.
func FlashAttention() KernelBlocks { return KernelBlocks{Multiple: 16} }

// FlashInfer pages by 16, 32 or 64 tokens.
func FlashInfer() KernelBlocks { return KernelBlocks{Exact: []int{16, 32, 64}} }

// FlashMLA pages latent attention by 64 tokens.
func FlashMLA() KernelBlocks { return KernelBlocks{Exact: []int{64}} }

// CutlassMLA pages latent attention by 128 tokens.
func CutlassMLA() KernelBlocks { return KernelBlocks{Exact: []int{128}} }

func (k KernelBlocks) check() error {
	switch {
	case len(k.Exact) > 16:
		return optionFault("kernel blocks: %d sizes, want at most 16", len(k.Exact))
	case len(k.Exact) > 0 && k.Multiple != 0:
		return optionFault("kernel blocks: multiples of %d and exactly %v: only one can be", k.Multiple, k.Exact)
	case len(k.Exact) == 0 && (k.Multiple < 1 || k.Multiple > MaxDim):
		return optionFault("kernel blocks: multiples of %d, want 1 to %d", k.Multiple, MaxDim)
	}
	for _, e := range k.Exact {
		if e < 1 || e > MaxDim {
			return optionFault("kernel blocks: size %d, want 1 to %d", e, MaxDim)
		}
	}
	return nil
}

func (k KernelBlocks) smallest() int {
	if len(k.Exact) > 0 {
		return slices.Min(k.Exact)
	}
	return k.Multiple
}

// split returns the kernel block that a manager block of so many tokens is cut
// into, 0 if there is none.
func (k KernelBlocks) split(tokens int) int {
	if len(k.Exact) == 0 {
		if tokens%k.Multiple == 0 {
			return tokens
		}
		return 0
	}
	best := 0
	for _, e := range k.Exact {
		if tokens%e == 0 {
			best = max(best, e)
		}
	}
	return best
}

// within returns the largest kernel block of at most so many tokens, or the
// smallest there is.
func (k KernelBlocks) within(tokens int) int {
	best := k.smallest()
	if len(k.Exact) == 0 {
		return max(best, tokens/k.Multiple*k.Multiple)
	}
	for _, e := range k.Exact {
		if e <= tokens {
			best = max(best, e)
		}
	}
	return best
}

func (k KernelBlocks) String() string {
	if len(k.Exact) > 0 {
		return fmt.Sprintf("one of %v", k.Exact)
	}
	return fmt.Sprintf("multiples of %d", k.Multiple)
}

// Options is how an engine runs the model. The zero value is one rank, LBNHC,
// the model's dtypes and the smallest blocks that do.
type Options struct {
	TP, Rank int // tensor parallel size (0: 1) and rank

	// PP is the number of pipeline stages (0: 1) and Stage the one to lay out.
	// Blocks and groups are those of the whole model, of which a stage keeps
	// its own layers. All stages have to use as many blocks as the smallest.
	PP, Stage int
	// StageLayers is how many of the model's layers each stage has; nil: equal
	// shares, and those left over to the stages before the last.
	StageLayers []int

	// MaxTokens is the longest sequence that is served, 0 for the model's.
	MaxTokens int

	// BlockTokens is the block size asked for, 0 for the backend's smallest. A
	// model with recurrent layers takes a multiple of it, so large that an
	// attention page holds a state.
	BlockTokens int
	// Kernel is what the attention backend can page. Zero: what the model's own
	// kernels take where it has such (DeepSeek-V4 256 tokens, a sparse index
	// beside full attention 128), else [FlashMLA] for models with latent
	// attention, else [FlashAttention].
	Kernel KernelBlocks
	// RowTokens: the backend of latent attention reads the cache as rows of so
	// many tokens, so that under block-outermost orders a block is padded to
	// whole rows. 0: it does not. vLLM's sparse backends want 1, and 64 in
	// [FP8MLA].
	RowTokens int
	// ExportTokens is the step in which the backend can export states inside a
	// prefill (0: it can't). It widens blocks in [StateAlign] only.
	ExportTokens int

	// KVDType is that of attention caches. DefaultDType: what the checkpoint
	// declares, else the model's dtype. Fp8 of sparse latent attention has to be
	// asked for by the form that the backend has ([FP8MLA]).
	KVDType           DType
	StateDType        DType // of temporal states; DefaultDType: as in the model
	SpeculativeTokens int
	StateMode         StateMode
	ConvOrder         ConvOrder
	Order             Order

	Pool kv.PoolID // of the tables
	// RealNull makes block 0 a block like any other; see [Table].
	RealNull bool
}

// MaxTP and MaxSpeculativeTokens bound the options.
const (
	MaxTP                = 1 << 16
	MaxSpeculativeTokens = 1 << 10
)

// complete checks the options and replaces zero values by what they stand for.
func (o *Options) complete(m *Model) error {
	if o.TP == 0 {
		o.TP = 1
	}
	if o.PP == 0 {
		o.PP = 1
	}
	if o.Kernel.Multiple == 0 && len(o.Kernel.Exact) == 0 {
		o.Kernel = m.kernel()
	}
	if o.MaxTokens == 0 {
		o.MaxTokens = m.MaxTokens
	}
	o.Kernel.Exact = slices.Clone(o.Kernel.Exact)
	if err := o.Kernel.check(); err != nil {
		return err
	}
	if o.KVDType == DefaultDType {
		o.KVDType = m.cacheDType()
	}
	o.StageLayers = slices.Clone(o.StageLayers)
	if err := o.checkStages(m); err != nil {
		return err
	}
	switch {
	case o.TP < 1 || o.TP > MaxTP:
		return optionFault("TP is %d, want 1 to %d", o.TP, MaxTP)
	case o.Rank < 0 || o.Rank >= o.TP:
		return optionFault("rank is %d, want 0 to %d", o.Rank, o.TP-1)
	case o.MaxTokens < 0 || o.MaxTokens > MaxTokens:
		return optionFault("the longest sequence is of %d tokens, want 0 to %d", o.MaxTokens, MaxTokens)
	case o.BlockTokens < 0 || o.BlockTokens > MaxDim:
		return optionFault("block tokens are %d, want 0 to %d", o.BlockTokens, MaxDim)
	case o.BlockTokens > 0 && o.Kernel.split(o.BlockTokens) == 0:
		return optionFault("blocks of %d tokens, but the backend takes %v", o.BlockTokens, o.Kernel)
	case o.ExportTokens < 0 || o.ExportTokens > MaxDim:
		return optionFault("export tokens are %d, want 0 to %d", o.ExportTokens, MaxDim)
	case o.SpeculativeTokens < 0 || o.SpeculativeTokens > MaxSpeculativeTokens:
		return optionFault("speculative tokens are %d, want 0 to %d", o.SpeculativeTokens, MaxSpeculativeTokens)
	case o.RowTokens < 0 || o.RowTokens > MaxDim:
		return optionFault("row tokens are %d, want 0 to %d", o.RowTokens, MaxDim)
	case !o.KVDType.caches():
		return optionFault("a KV cache of %v", o.KVDType)
	case o.StateDType != DefaultDType && o.StateDType.size() == 0:
		return optionFault("a temporal state of %v", o.StateDType)
	case o.StateMode > StateAlign || o.ConvOrder > ConvDS || o.Order > BHLNC:
		return optionFault("unknown %v, conv order %d or %v", o.StateMode, o.ConvOrder, o.Order)
	}
	return nil
}

func (m *Model) dtype() DType {
	if m.DType == DefaultDType {
		return BFloat16
	}
	return m.DType
}

// kernel returns what the kernels of the model's backends can page.
func (m *Model) kernel() KernelBlocks {
	latent, compressed := false, false
	for i := range m.Layers {
		l := &m.Layers[i]
		latent = latent || l.Kind == LatentAttention || l.Kind == LatentWindow
		compressed = compressed || l.Compression > 1
	}
	switch {
	case compressed:
		return KernelBlocks{Exact: []int{256}} // vLLM 0.33.0, models/deepseek_v4
	case latent:
		return FlashMLA()
	case m.sparse():
		return KernelBlocks{Exact: []int{128}} // vLLM 0.33.0, models/minimax_m3
	}
	return FlashAttention()
}

// Order returns the order of the model's layouts where nothing asks for another:
// LBNHC, or BLHNC if pages of its groups can't be made equal, so that they have
// to lie side by side.
func (m *Model) Order() Order {
	if slices.ContainsFunc(m.Layers, func(l Layer) bool { return l.BlockTokens > 0 }) {
		return BLHNC
	}
	return LBNHC
}

// cacheDType returns what the attention caches are stored as where the engine
// does not say.
func (m *Model) cacheDType() DType {
	for i := range m.Layers {
		if m.Layers[i].DType == FP8MLAV4 {
			return FP8MLA
		}
	}
	if m.KVDType != DefaultDType {
		return m.KVDType
	}
	return m.dtype()
}
