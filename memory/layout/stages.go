package layout

import "slices"

// checkStages checks the pipeline options.
func (o *Options) checkStages(m *Model) error {
	depth := m.depth()
	switch {
	case o.PP < 1 || o.PP > depth:
		return optionFault("model %q: %d pipeline stages for %d layers, want 1 to %d", m.Name, o.PP, depth, depth)
	case o.Stage < 0 || o.Stage >= o.PP:
		return optionFault("stage is %d, want 0 to %d", o.Stage, o.PP-1)
	case len(o.StageLayers) == 0:
		return nil
	case len(o.StageLayers) != o.PP:
		return optionFault("model %q: layers of %d stages, want %d", m.Name, len(o.StageLayers), o.PP)
	}
	sum := 0
	for i, n := range o.StageLayers {
		if n < 1 || n > depth {
			return optionFault("model %q: stage %d has %d layers, want 1 to %d", m.Name, i, n, depth)
		}
		sum += n
	}
	if sum != depth {
		return optionFault("model %q: the stages have %d layers, want %d", m.Name, sum, depth)
	}
	return nil
}

// stage returns the first of the model's layers on the stage to lay out and the
// first behind it. Equal shares are those of vLLM 0.33.0
// (distributed/utils.py): what is left over goes to the stages before the last,
// one each, backwards.
func (o *Options) stage(m *Model) (first, end int) {
	shares := o.StageLayers
	if len(shares) == 0 {
		depth := m.depth()
		shares = make([]int, o.PP)
		for i := range shares {
			shares[i] = depth / o.PP
		}
		for i := range depth % o.PP {
			shares[o.PP-2-i]++
		}
	}
	for _, n := range shares[:o.Stage] {
		first += n
	}
	return first, first + shares[o.Stage]
}

// keep leaves of the groups what the stage has, in the order that a model of
// these layers would have. A group may be left without pages. Draft layers are
// on the last stage.
func (p *Plan) keep() {
	o := &p.Options
	if o.PP == 1 {
		return
	}
	first, end := o.stage(p.Model)
	for gi := range p.Groups {
		g := &p.Groups[gi]
		all := g.Pages
		g.Pages = nil
		for i := range all {
			l := &p.Model.Layers[all[i].Layer]
			if l.Draft && o.Stage == o.PP-1 || !l.Draft && l.Index >= first && l.Index < end {
				g.Pages = append(g.Pages, all[i])
			}
		}
		slices.SortFunc(g.Pages, func(x, y Page) int { return x.Layer - y.Layer })
		g.Pages = flatten(bucket(g.Pages, p.specification))
		g.place()
	}
}
