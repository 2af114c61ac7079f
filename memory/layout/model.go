package layout

import (
	"errors"
	"fmt"
)

// Kind is what a layer keeps in the cache.
type Kind uint8

const (
	FullAttention   Kind = iota // keys and values of every token
	SlidingWindow               // the same; blocks behind the window are given back
	LatentAttention             // one vector a token (MLA), copied on every rank
	LatentIndex                 // the index vectors beside sparse latent attention
	Recurrent                   // one state a request (SSM, linear attention)
)

var kindNames = [...]string{"full attention", "sliding window", "latent attention", "latent index", "recurrent"}

func (k Kind) String() string {
	if int(k) >= len(kindNames) {
		return fmt.Sprintf("kind %d", uint8(k))
	}
	return kindNames[k]
}

// Attention reports whether the layer keeps something for each token, so that
// its blocks are zeroed when they are handed out.
func (k Kind) Attention() bool { return k < Recurrent }

// Model is what of a model decides the layout of its cache, before it is cut
// over ranks: read from a config.json ([ReadConfig]) or written by hand.
type Model struct {
	Name         string // for messages
	Architecture string // as in config.json; for messages
	DType        DType  // of the activations; DefaultDType: [BFloat16]
	MaxTokens    int    // longest sequence, 0 if not known
	Layers       []Layer
}

// Layer is one cache of the model. A model's layer that has two caches, such as
// attention beside a recurrent state, is two Layers.
type Layer struct {
	Kind Kind

	// Attention: heads over all ranks, elements of a key and of a value of one
	// head. Latent layers have one head, KeyDim elements and no value.
	KVHeads, KeyDim, ValueDim int
	Window                    int   // tokens; of SlidingWindow only
	DType                     DType // DefaultDType: Options.KVDType

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
	if l.Kind == Recurrent {
		if l.State == nil {
			return m.fault(i, "recurrent without a State")
		}
		return m.checkState(i, l.State, dim)
	}
	latent := l.Kind == LatentAttention || l.Kind == LatentIndex
	switch {
	case l.State != nil:
		return m.fault(i, "%v with a State", l.Kind)
	case latent && (l.KVHeads != 1 || l.ValueDim != 0):
		return m.fault(i, "%v with %d heads and values of %d, want 1 and 0", l.Kind, l.KVHeads, l.ValueDim)
	case l.Kind == LatentIndex && l.KeyDim%indexPerScale != 0:
		return m.fault(i, "KeyDim is %d, want a multiple of %d", l.KeyDim, indexPerScale)
	case l.Kind != SlidingWindow && l.Window != 0:
		return m.fault(i, "%v with a window of %d", l.Kind, l.Window)
	}
	window := 0
	if l.Kind == SlidingWindow {
		window = 1
	}
	return errors.Join(dim("KVHeads", l.KVHeads, 1), dim("KeyDim", l.KeyDim, 1), dim("ValueDim", l.ValueDim, 0),
		dim("Window", l.Window, window))
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
