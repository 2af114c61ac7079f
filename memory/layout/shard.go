package layout

import "slices"

// shard sets what one rank keeps of a layer: the bytes of a token, or the
// regions of a state.
func shard(m *Model, o *Options, i int, pg *Page) error {
	pg.Layer = i
	if m.Layers[i].Kind == Recurrent {
		return shardState(m, o, i, pg)
	}
	return shardAttention(m, o, i, pg)
}

func shardAttention(m *Model, o *Options, i int, pg *Page) error {
	l := &m.Layers[i]
	dtype, err := cacheDType(m, o, i)
	if err != nil {
		return err
	}
	pg.DType, pg.Heads, pg.perState = dtype, 1, uint64(max(l.Compression, 1))
	if !l.Kind.oneVector() {
		switch {
		case l.KVHeads%o.TP == 0:
			pg.Heads = l.KVHeads / o.TP
		case o.TP%l.KVHeads != 0:
			return optionFault("model %q: layer %d: %d kv heads can't be spread over %d ranks", m.Name, i, l.KVHeads, o.TP)
		}
		pg.FirstHead = int(int64(o.Rank) * int64(l.KVHeads) / int64(o.TP))
	}
	key, value := dtype.vector(l.KeyDim), uint64(0)
	if l.ValueDim > 0 {
		value = dtype.vector(l.ValueDim)
	}
	if key == 0 || l.ValueDim > 0 && value == 0 {
		return m.fault(i, "keys of %d and values of %d elements in a cache of %v", l.KeyDim, l.ValueDim, dtype)
	}
	if pg.vector = mul(uint64(pg.Heads), key+value); pg.vector > maxPage {
		return m.fault(i, "%d bytes a token, want at most %d", pg.vector, uint64(maxPage))
	}
	return nil
}

// cacheDType returns what an attention cache is stored as.
func cacheDType(m *Model, o *Options, i int) (DType, error) {
	l := &m.Layers[i]
	if l.DType == FP8MLAV4 && o.KVDType != FP8MLA && o.KVDType != FP8 {
		return l.DType, optionFault("model %q: layer %d: a cache of %v, but the model's own form is %v", m.Name, i, o.KVDType, l.DType)
	}
	if l.DType != DefaultDType {
		return l.DType, nil
	}
	d, latent := o.KVDType, l.Kind == LatentAttention || l.Kind == LatentWindow
	switch {
	case d == FP8 && l.Kind == LatentAttention && m.sparse():
		return d, optionFault("model %q: layer %d: an %v cache of sparse latent attention is %v in some backends and plain in others: ask for %v",
			m.Name, i, d, FP8MLA, FP8MLA)
	case (d == FP8MLA || d == NVFP4MLA) && !latent, (d == FP8PerTokenHead || d == INT8PerTokenHead || d == NVFP4) && latent:
		return d, optionFault("model %q: layer %d: %v in a cache of %v", m.Name, i, l.Kind, d)
	case d == NVFP4 && l.KeyDim != l.ValueDim: // nor does vLLM 0.33.0, v1/attention/backends/flashinfer.py
		return d, optionFault("model %q: layer %d: %v takes keys and values of one size, not of %d and %d elements", m.Name, i, d, l.KeyDim, l.ValueDim)
	}
	return d, nil
}

// sparse reports whether attention reads the tokens that an index picks.
func (m *Model) sparse() bool {
	return slices.ContainsFunc(m.Layers, func(l Layer) bool { return l.Kind == SparseIndex })
}

func shardState(m *Model, o *Options, i int, pg *Page) error {
	s := m.Layers[i].State
	pg.ConvDType, pg.StateDType = m.dtype(), s.DType
	if o.StateDType != DefaultDType {
		pg.StateDType = o.StateDType
	}
	if pg.StateDType == DefaultDType {
		pg.StateDType = m.dtype()
	}
	add := func(name string, n uint64) {
		pg.Regions = append(pg.Regions, Region{name, pg.Used, n})
		if pg.Used += n; pg.Used < n {
			pg.Used = n // so that it is found too large
		}
	}
	if len(s.Conv) > 0 {
		pg.ConvRows = s.ConvKernel - 1
		if !s.NoSpeculativeRows {
			pg.ConvRows += o.SpeculativeTokens
		}
		for _, part := range s.Conv {
			units, err := cut(m, o, i, part.Name, part.Units, part.Copied)
			if err != nil {
				return err
			}
			pg.ConvChannels += units * part.Width
			if o.ConvOrder == ConvDS {
				add(part.Name, mul(uint64(units), uint64(part.Width), uint64(pg.ConvRows), pg.ConvDType.size()))
			}
		}
		if o.ConvOrder == ConvSD {
			add("conv", mul(uint64(pg.ConvRows), uint64(pg.ConvChannels), pg.ConvDType.size()))
		}
	}
	if len(s.Temporal) > 0 {
		heads, err := cut(m, o, i, "the temporal state", s.Temporal[0], false)
		if err != nil {
			return err
		}
		pg.Temporal = append([]int{heads}, s.Temporal[1:]...)
		n := pg.StateDType.size()
		for _, d := range pg.Temporal {
			n = mul(n, uint64(d))
		}
		add("temporal", n)
	}
	if pg.Used > maxPage {
		return m.fault(i, "a state of %d bytes, want at most %d", pg.Used, uint64(maxPage))
	}
	return nil
}

// cut returns how many of the units one rank keeps.
func cut(m *Model, o *Options, layer int, what string, units int, copied bool) (int, error) {
	if units%o.TP == 0 {
		return units / o.TP, nil
	}
	if copied {
		return 1, nil
	}
	return 0, optionFault("model %q: layer %d: %d units of %s can't be spread over %d ranks", m.Name, layer, units, what, o.TP)
}
