package layout

import (
	"errors"
	"fmt"
	"slices"
)

// Kind is what a layer keeps in the cache.
type Kind uint8

const (
	FullAttention        Kind = iota // keys and values of every token
	SlidingWindow                    // the same; blocks behind the window are given back
	ChunkedLocal                     // the same; blocks before the current chunk are given back
	LatentAttention                  // one vector a token (MLA), copied on every rank
	LatentWindow                     // the same, with a sliding window
	SparseIndex                      // one index vector a token, beside sparse attention, copied on every rank
	CompressorState                  // inputs of a compressor that awaits the rest of its tokens (DeepSeek-V4)
	IndexCompressorState             // the same, of the compressor of an index
	Recurrent                        // one state a request (SSM, linear attention)
)

var kindNames = [...]string{"full attention", "sliding window", "chunked local attention", "latent attention", "latent sliding window",
	"sparse index", "compressor state", "index compressor state", "recurrent"}

func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Attention reports whether the layer keeps something for each token, so that
// its blocks are zeroed when they are handed out.
func (k Kind) Attention() bool { return k < Recurrent }

// oneVector reports whether a token has one vector and no value, whole on every
// rank.
func (k Kind) oneVector() bool { return k >= LatentAttention && k <= IndexCompressorState }

// Windowed reports whether the layer looks at a window or chunk of tokens only,
// so that older blocks are given back.
func (k Kind) Windowed() bool {
	switch k {
	case SlidingWindow, ChunkedLocal, LatentWindow, CompressorState, IndexCompressorState:
		return true
	}
	return false
}

// Model is what of a model decides the layout of its cache, before it is cut
// over ranks: read from a config.json ([ReadConfig]) or written by hand.
type Model struct {
	Name         string // for messages
	Architecture string // as in config.json; for messages
	DType        DType  // of the activations; DefaultDType: [BFloat16]
	// KVDType is what the checkpoint declares for its attention caches;
	// DefaultDType: nothing. It counts where [Options] ask for nothing else.
	KVDType   DType
	MaxTokens int // longest sequence, 0 if not known
	// Depth is the number of the model's layers, those without a cache
	// included; 0: as far as the layers' Index goes. Draft layers don't count.
	Depth  int
	Layers []Layer
}

// Layer is one cache of the model. A model's layer that has two caches, such as
// attention beside a recurrent state, is two Layers.
type Layer struct {
	Kind Kind
	// Index counts the model's layers from 0. Caches of one layer share it.
	Index int
	// Draft: the layer is of a draft model, which runs where the last layers do
	// and has no part in the choice of the block size.
	Draft bool

	// Attention: heads over all ranks, elements of a key and of a value of one
	// head. Layers with one vector a token (latent attention, indexes,
	// compressor states) have one head, KeyDim elements and no value.
	KVHeads, KeyDim, ValueDim int
	Window                    int   // tokens, of a window or chunk
	DType                     DType // DefaultDType: as Options.KVDType or the model has it

	// Compression is how many tokens one stored vector covers, 0 for 1.
	Compression int
	// BlockTokens is the block size of a layer that does not take the model's,
	// 0 for that. Such blocks are not cut into kernel blocks.
	BlockTokens int
	// PageAlign is what the page is padded to a multiple of, 0 for nothing.
	PageAlign int

	State *State // of Recurrent only
}

// State is the shape of a recurrent state over all ranks: a convolution state
// of ConvKernel-1 rows, and behind it a temporal state. Either may be missing.
type State struct {
	ConvKernel int
	Conv       []Part // channels of a row, in order
	// NoSpeculativeRows: a speculative token adds no row (Mamba1).
	NoSpeculativeRows bool
	Temporal          []int // shape; the first dimension is cut over the ranks
	DType             DType // of the temporal state; DefaultDType: the model's
}

// Part is one projection in a convolution state: Units*Width channels. Units
// are cut over the ranks.
type Part struct {
	Name         string
	Units, Width int
	// Copied: where the number of ranks does not divide Units each rank keeps
	// one unit of its own, a copy (the groups of Mamba2). Otherwise that is an
	// error.
	Copied bool
}

// Limits of what [NewPlan] takes: far beyond any model, near enough that sizes
// in 64 bits can't overflow unnoticed.
const (
	MaxLayers = 1 << 12
	MaxDim    = 1 << 24 // elements, heads, tokens in a sequence up to MaxTokens
	MaxTokens = 1 << 30
	maxPage   = 1 << 44 // bytes
)

// ErrModel is wrapped by errors about a model that makes no sense.
var ErrModel = errors.New("bad model")

func (m *Model) fault(layer int, format string, args ...any) error {
	return fmt.Errorf("layout: model %q: layer %d: %s: %w", m.Name, layer, fmt.Sprintf(format, args...), ErrModel)
}

// Validate checks the model by itself. The error wraps [ErrModel] and names the
// layer.
func (m *Model) Validate() error {
	if n := len(m.Layers); n == 0 || n > MaxLayers {
		return fmt.Errorf("layout: model %q: %d layers with a cache, want 1 to %d: %w", m.Name, n, MaxLayers, ErrModel)
	}
	if m.MaxTokens < 0 || m.MaxTokens > MaxTokens {
		return fmt.Errorf("layout: model %q: MaxTokens is %d, want 0 to %d: %w", m.Name, m.MaxTokens, MaxTokens, ErrModel)
	}
	if m.DType != DefaultDType && m.DType.size() == 0 {
		return fmt.Errorf("layout: model %q: dtype %v: %w", m.Name, m.DType, ErrModel)
	}
	if !m.KVDType.caches() {
		return fmt.Errorf("layout: model %q: a KV cache of %v: %w", m.Name, m.KVDType, ErrModel)
	}
	if m.Depth < 0 || m.Depth > MaxLayers {
		return fmt.Errorf("layout: model %q: Depth is %d, want 0 to %d: %w", m.Name, m.Depth, MaxLayers, ErrModel)
	}
	for i := range m.Layers {
		if err := m.checkLayer(i, &m.Layers[i]); err != nil {
			return err
		}
	}
	return nil
}

func (m *Model) checkLayer(i int, l *Layer) error {
	dim := func(name string, v, least int) error {
		if v < least || v > MaxDim {
			return m.fault(i, "%s is %d, want %d to %d", name, v, least, MaxDim)
		}
		return nil
	}
	if l.Kind > Recurrent {
		return m.fault(i, "%v", l.Kind)
	}
	if l.Index < 0 || l.Index >= MaxLayers || m.Depth > 0 && !l.Draft && l.Index >= m.Depth {
		return m.fault(i, "Index is %d in a model of %d layers", l.Index, m.Depth)
	}
	if l.Kind == Recurrent {
		if l.State == nil {
			return m.fault(i, "recurrent without a State")
		}
		return m.checkState(i, l.State, dim)
	}
	switch {
	case l.State != nil:
		return m.fault(i, "%v with a State", l.Kind)
	case l.Kind.oneVector() && (l.KVHeads != 1 || l.ValueDim != 0):
		return m.fault(i, "%v with %d heads and values of %d, want 1 and 0", l.Kind, l.KVHeads, l.ValueDim)
	case l.Kind == SparseIndex && l.DType == DefaultDType:
		return m.fault(i, "%v without a dtype", l.Kind)
	case l.DType == FP8Index && l.Kind != SparseIndex:
		return m.fault(i, "%v in a cache of %v", l.Kind, l.DType)
	case l.DType == FP8Index && l.KeyDim%indexPerScale != 0:
		return m.fault(i, "KeyDim is %d, want a multiple of %d", l.KeyDim, indexPerScale)
	case !l.Kind.Windowed() && l.Window != 0:
		return m.fault(i, "%v with a window of %d", l.Kind, l.Window)
	case l.Compression > 1 && !l.Kind.oneVector():
		return m.fault(i, "%v with %d tokens a vector", l.Kind, l.Compression)
	}
	window := 0
	if l.Kind.Windowed() {
		window = 1
	}
	return errors.Join(dim("KVHeads", l.KVHeads, 1), dim("KeyDim", l.KeyDim, 1), dim("ValueDim", l.ValueDim, 0),
		dim("Window", l.Window, window), dim("Compression", l.Compression, 0),
		dim("BlockTokens", l.BlockTokens, 0), dim("PageAlign", l.PageAlign, 0))
}

func (m *Model) checkState(i int, s *State, dim func(string, int, int) error) error {
	if len(s.Conv) == 0 && len(s.Temporal) == 0 {
		return m.fault(i, "a state of nothing")
	}
	if len(s.Temporal) > 8 || len(s.Conv) > 8 {
		return m.fault(i, "%d parts and %d dimensions, want at most 8", len(s.Conv), len(s.Temporal))
	}
	if len(s.Conv) > 0 {
		if err := dim("ConvKernel", s.ConvKernel, 2); err != nil {
			return err
		}
	}
	for _, p := range s.Conv {
		if err := errors.Join(dim(p.Name+" units", p.Units, 1), dim(p.Name+" width", p.Width, 1)); err != nil {
			return err
		}
	}
	for _, d := range s.Temporal {
		if err := dim("temporal dimension", d, 1); err != nil {
			return err
		}
	}
	if s.DType != DefaultDType && s.DType.size() == 0 {
		return m.fault(i, "a temporal state of %v", s.DType)
	}
	return nil
}

// depth returns the number of the model's layers.
func (m *Model) depth() int {
	n := m.Depth
	if n == 0 {
		for i := range m.Layers {
			if !m.Layers[i].Draft {
				n = max(n, m.Layers[i].Index+1)
			}
		}
	}
	return n
}

// WithDraft returns the model with the layers of a draft model behind its own:
// both draw blocks from one pool. The error wraps [ErrModel].
func (m *Model) WithDraft(draft *Model) (*Model, error) {
	if err := draft.Validate(); err != nil {
		return nil, err
	}
	if m.dtype() != draft.dtype() {
		return nil, fmt.Errorf("layout: model %q of %v with draft %q of %v, want one dtype: %w",
			m.Name, m.dtype(), draft.Name, draft.dtype(), ErrModel)
	}
	both := *m
	both.Name += " + " + draft.Name
	both.Depth = m.depth()
	both.Layers = slices.Clone(m.Layers)
	for _, l := range draft.Layers {
		l.Index += both.Depth
		l.Draft = true
		both.Layers = append(both.Layers, l)
	}
	if err := both.Validate(); err != nil {
		return nil, err
	}
	return &both, nil
}
