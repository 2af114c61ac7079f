package layout

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
	pg.DType = l.DType
	if pg.DType == DefaultDType {
		pg.DType = o.KVDType
	}
	if l.Kind == LatentIndex {
		pg.DType = FP8Index
	}
	pg.Heads = 1
	if l.Kind == FullAttention || l.Kind == SlidingWindow {
		switch {
		case l.KVHeads%o.TP == 0:
			pg.Heads = l.KVHeads / o.TP
		case o.TP%l.KVHeads != 0:
			return optionFault("model %q: layer %d: %d kv heads can't be spread over %d ranks", m.Name, i, l.KVHeads, o.TP)
		}
		pg.FirstHead = int(int64(o.Rank) * int64(l.KVHeads) / int64(o.TP))
	}
	switch pg.DType {
	case FP8Index:
		if l.Kind != LatentIndex {
			return m.fault(i, "%v in a cache of %v", l.Kind, pg.DType)
		}
		pg.perTok = uint64(l.KeyDim) + uint64(l.KeyDim/indexPerScale)*indexScale
		return nil
	case FP8MLA, NVFP4MLA:
		if l.Kind != LatentAttention {
			return optionFault("model %q: layer %d: %v in a cache of %v", m.Name, i, l.Kind, pg.DType)
		}
		pg.perTok = fp8MLABytes
		if pg.DType == NVFP4MLA {
			pg.perTok = nvfp4MLABytes
		}
		return nil
	}
	if pg.DType.size() == 0 {
		return m.fault(i, "a cache of %v", pg.DType)
	}
	pg.perTok = mul(uint64(pg.Heads), uint64(l.KeyDim+l.ValueDim), pg.DType.size())
	if pg.perTok > maxPage {
		return m.fault(i, "%d bytes a token, want at most %d", pg.perTok, uint64(maxPage))
	}
	return nil
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
