package layout

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// spread pairs arenas whose layouts differ: other numbers of ranks and stages,
// other sizes of blocks, other orders. Blocks are paired by the place of their
// tokens, heads and units of a state by their number in the model, so that the
// bytes arrive where they belong and nothing has to be rearranged. Where several
// ranks of the peer have the same bytes the first is read.
type spread struct {
	pages  [][]spreadPage // by group of ours
	tokens []int          // in a block of the peer's, by group
	peers  []spreadPeer
}

type spreadPeer struct {
	blocks    int
	first     kv.Block
	contacted bool
	read      bool
}

// lane is a row of vectors that lie on both sides in the same order: those of a
// head, of some heads side by side, or of a form that has no heads. A piece of a
// state is a lane of one vector. The lanes of a page have kernel blocks of the
// same tokens.
type lane struct {
	peer          int
	local, remote thread
	bytes         uint64 // of a vector
	each          int    // tokens that it covers, 0 for a piece of a state
}

// spreadPage is a page of ours.
type spreadPage struct {
	lanes []lane
	// whole are the lanes with those in one that follow each other where a
	// kernel block moves wholly; bytes are then those of a kernel block.
	whole []lane
	full  int // tokens of a kernel block, where there are such lanes
}

// join makes the lanes of whole kernel blocks. There are none where kernel
// blocks differ.
func (p *spreadPage) join() {
	for i := range p.lanes {
		l := p.lanes[i]
		if l.each == 0 || l.local.perKernel != l.remote.perKernel || l.local.step != l.bytes || l.remote.step != l.bytes {
			p.whole = nil
			return
		}
		l.bytes *= uint64(l.local.perKernel)
		if n := len(p.whole); n > 0 {
			last := &p.whole[n-1]
			if last.peer == l.peer && last.local.base+last.bytes == l.local.base && last.remote.base+last.bytes == l.remote.base {
				last.bytes += l.bytes
				continue
			}
		}
		p.whole = append(p.whole, l)
		p.full = l.local.perKernel * l.each
	}
}

// thread is where the vectors of a lane are on one side.
type thread struct {
	base      uint64 // of the first vector of block 0
	block     uint64 // from a block to the next
	kernel    uint64 // from a kernel block to the next
	step      uint64 // from a vector to the next, in a kernel block
	perKernel int    // vectors; those of a block where kernel blocks follow each other
}

// pageAt is a page of one rank, with what is around it.
type pageAt struct {
	peer   int
	d      *Description
	group  int
	page   *PageDescription
	before uint64
}

// pagesOf calls f with every page of a group, and with its layer.
func pagesOf(d *Description, peer, group int, f func(layer int, p pageAt)) {
	var before uint64
	g := &d.Groups[group]
	for i := range g.Pages {
		for _, layer := range g.Pages[i].Layers {
			f(layer, pageAt{peer, d, group, &g.Pages[i], before})
			before += g.Pages[i].Bytes
		}
	}
}

// newSpread pairs our arena with the ranks of a peer.
func newSpread(local *Arena, peers []*Description) (*spread, error) {
	ours := local.Description()
	if err := spreadable(ours, peers); err != nil {
		return nil, err
	}
	s := &spread{pages: make([][]spreadPage, len(ours.Groups))}
	for _, d := range peers {
		s.peers = append(s.peers, spreadPeer{blocks: d.Blocks, first: (&Table{RealNull: d.RealNull}).First(), contacted: contacts(ours, d)})
	}
	for g := range ours.Groups {
		s.tokens = append(s.tokens, peers[0].Groups[g].BlockTokens)
		theirs := map[int][]pageAt{}
		for i, d := range peers {
			if s.peers[i].contacted {
				pagesOf(d, i, g, func(layer int, p pageAt) { theirs[layer] = append(theirs[layer], p) })
			}
		}
		var err error
		pagesOf(ours, 0, g, func(layer int, p pageAt) {
			if err == nil {
				s.pages[g] = append(s.pages[g], spreadPage{})
				err = s.addPage(local.Plan, layer, p, theirs[layer])
				s.pages[g][len(s.pages[g])-1].join()
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return s, nil
}

// contacts reports whether a rank of the peer has to do with ours: of fewer
// ranks the one that our share lies in, of more those that share it.
func contacts(ours, d *Description) bool {
	if ours.TP >= d.TP {
		return d.Rank == ours.Rank/(ours.TP/d.TP)
	}
	return d.Rank/(d.TP/ours.TP) == ours.Rank
}

// spreadable compares what has to be equal, or to fit.
func spreadable(ours *Description, peers []*Description) error {
	var all []error
	differs := func(field string, x, y any) {
		if x != y {
			all = append(all, &MismatchError{field, fmt.Sprint(x), fmt.Sprint(y)})
		}
	}
	for _, d := range peers {
		differs("model", ours.Model, d.Model)
		differs("revision", ours.Revision, d.Revision)
		differs("conv_order", ours.ConvOrder, d.ConvOrder)
		differs("state_mode", ours.StateMode, d.StateMode)
		differs("speculative_tokens", ours.SpeculativeTokens, d.SpeculativeTokens)
		differs("scale", ours.Scale, d.Scale)
		if ours.TP%d.TP != 0 && d.TP%ours.TP != 0 {
			differs("tp", ours.TP, d.TP)
		}
		if len(ours.Groups) != len(d.Groups) {
			differs("groups", fmt.Sprintf("a list of %d", len(ours.Groups)), fmt.Sprintf("a list of %d", len(d.Groups)))
			continue
		}
		for g := range ours.Groups {
			x, y, at := &ours.Groups[g], &d.Groups[g], fmt.Sprintf("groups[%d].", g)
			differs(at+"kind", x.Kind, y.Kind)
			differs(at+"window", x.Window, y.Window)
			if len(d.Groups) != len(peers[0].Groups) {
				continue
			}
			if z := &peers[0].Groups[g]; y.BlockTokens != z.BlockTokens || y.KernelTokens != z.KernelTokens {
				all = append(all, fmt.Errorf("layout: the peer's ranks have blocks of %d and of %d tokens in group %d, or kernel blocks of %d and of %d: %w",
					z.BlockTokens, y.BlockTokens, g, z.KernelTokens, y.KernelTokens, ErrDescription))
			}
		}
	}
	if ours.Scale > 1 {
		all = append(all, fmt.Errorf("layout: a scaled layout can be paired with an equal one only: %w", ErrOptions))
	}
	return errors.Join(all...)
}

// addPage finds the bytes of one of our pages among those of its layer that the
// contacted ranks have.
func (s *spread) addPage(plan *Plan, layer int, ours pageAt, theirs []pageAt) error {
	var same []pageAt
	for _, t := range theirs {
		if t.page.Kind == ours.page.Kind {
			same = append(same, t)
		}
	}
	if len(same) == 0 {
		return &MismatchError{fmt.Sprintf("groups[%d].pages", ours.group), fmt.Sprintf("layer %d, %v", layer, ours.page.Kind), "not on the ranks told"}
	}
	for _, t := range same {
		for _, f := range []struct {
			name string
			x, y any
		}{{"dtype", ours.page.DType, t.page.DType}, {"compression", ours.page.Compression, t.page.Compression},
			{"conv_dtype", ours.page.ConvDType, t.page.ConvDType}, {"state_dtype", ours.page.StateDType, t.page.StateDType},
			{"conv_rows", ours.page.ConvRows, t.page.ConvRows}} {
			if f.x != f.y {
				return &MismatchError{fmt.Sprintf("groups[%d].pages: layer %d: %s", ours.group, layer, f.name), fmt.Sprint(f.x), fmt.Sprint(f.y)}
			}
		}
	}
	if ours.page.Kind == Recurrent {
		return s.addState(plan.Model, layer, ours, same)
	}
	return s.addHeads(layer, ours, same)
}

// addHeads adds the lanes of an attention page: for each run of heads that lie
// side by side in every vector of both sides one, else one for each head.
func (s *spread) addHeads(layer int, ours pageAt, theirs []pageAt) error {
	page := ours.page
	if page.DType == NVFP4 {
		return &MismatchError{fmt.Sprintf("groups[%d].pages: layer %d", ours.group, layer), fmt.Sprintf("%v in another layout", page.DType), "places of tokens are not known"}
	}
	for _, t := range theirs {
		if x, y := ours.content(), t.content(); x != y || x == 0 {
			return &MismatchError{fmt.Sprintf("groups[%d].pages: layer %d: bytes of a head", ours.group, layer), fmt.Sprint(x), fmt.Sprint(y)}
		}
	}
	for h := page.FirstHead; h < page.FirstHead+page.Heads; {
		t, ok := having(theirs, h)
		if !ok {
			return &MismatchError{fmt.Sprintf("groups[%d].pages: layer %d: head", ours.group, layer), fmt.Sprint(h), "not on the ranks told"}
		}
		n := 1
		if ours.together() && t.together() {
			n = min(page.FirstHead+page.Heads, t.page.FirstHead+t.page.Heads) - h
		}
		local, remote := ours.threads(h, n), t.threads(h, n)
		for i := range local {
			s.add(ours.group, lane{peer: t.peer, local: local[i].thread, remote: remote[i].thread, bytes: local[i].bytes, each: max(page.Compression, 1)})
		}
		h += n
	}
	return nil
}

func (s *spread) add(group int, l lane) {
	last := len(s.pages[group]) - 1
	s.pages[group][last].lanes = append(s.pages[group][last].lanes, l)
	s.peers[l.peer].read = true
}

// having returns the first page that has a head.
func having(pages []pageAt, head int) (pageAt, bool) {
	for _, p := range pages {
		if head >= p.page.FirstHead && head < p.page.FirstHead+p.page.Heads {
			return p, true
		}
	}
	return pageAt{}, false
}

// vectors returns how many vectors a block and a kernel block have.
func (p *pageAt) vectors() (block, kernel int) {
	g, each := &p.d.Groups[p.group], max(p.page.Compression, 1)
	return g.BlockTokens / each, g.KernelTokens / each
}

// content returns the bytes of one head in a vector.
func (p *pageAt) content() uint64 {
	n, _ := p.vectors()
	return p.page.Used / uint64(max(n, 1)) / uint64(max(p.page.Heads, 1))
}

// together reports whether the heads of a vector lie side by side.
func (p *pageAt) together() bool {
	o := p.d.Order
	return p.page.Heads == 1 || o == LBNHC || o == BLNHC
}

// start returns the address of the page in block 0 and the stride of blocks.
func (p *pageAt) start() (base, block uint64) {
	if p.d.Order.BlockOutermost() {
		return p.d.Base + p.before, p.d.BlockBytes
	}
	return p.d.Base + p.before*uint64(p.d.Blocks), p.page.Bytes
}

type threadOf struct {
	thread
	bytes uint64 // of a vector that are the lane's
}

// threads returns where n heads from h on lie: one thread, or one for each lane
// of a packed form.
func (p *pageAt) threads(h, n int) []threadOf {
	heads, c := uint64(p.page.Heads), p.content()
	block, kernel := p.vectors()
	at := uint64(h - p.page.FirstHead)
	base, stride := p.start()
	kernelBytes := c * heads * uint64(kernel)
	switch {
	case heads == 1:
	case p.d.Order == LHBNC:
		apart := p.page.Bytes / heads * uint64(p.d.Blocks)
		return []threadOf{{thread{base: base + at*apart, block: stride / heads, step: c, perKernel: block}, c}}
	case p.d.Order == BHLNC:
		apart := p.d.BlockBytes / heads
		return []threadOf{{thread{base: p.d.Base + p.before/heads + at*apart, block: stride, step: c, perKernel: block}, c}}
	}
	switch {
	case p.page.DType == FP8Index, p.page.DType == FP8MLAV4:
		elements := c * indexPerScale / (indexPerScale + indexScale)
		if p.page.DType == FP8MLAV4 {
			elements = v4Row
		}
		t := thread{base: base, block: stride, kernel: kernelBytes, step: elements, perKernel: kernel}
		scales := t
		scales.base, scales.step = base+elements*uint64(kernel), c-elements
		return []threadOf{{t, elements}, {scales, c - elements}}
	case p.together(): // kernel blocks follow each other like one
		return []threadOf{{thread{base: base + at*c, block: stride, step: heads * c, perKernel: block}, uint64(n) * c}}
	}
	return []threadOf{{thread{base: base + at*c*uint64(kernel), block: stride, kernel: kernelBytes, step: c, perKernel: kernel}, c}}
}

// piece is a run of a state that can be cut between units: those from first on,
// n of them, of one part in one row (all rows where channels come first).
type piece struct {
	part, row int
	first, n  int
	unit, off uint64 // bytes of a unit, and where the first is in the page
}

// pieces returns what a rank keeps of a state, in order.
func (s *State) pieces(p *pageAt, conv, temporal uint64) (all []piece) {
	d, page := p.d, p.page
	share := func(units int) (first, n int) {
		if units%d.TP == 0 {
			n = units / d.TP
			return d.Rank * n, n
		}
		return int(int64(d.Rank) * int64(units) / int64(d.TP)), 1 // a copy
	}
	var off uint64
	rows, each := page.ConvRows, uint64(1)
	if d.ConvOrder == ConvDS {
		rows, each = min(rows, 1), uint64(page.ConvRows)
	}
	for row := range rows {
		for i, part := range s.Conv {
			first, n := share(part.Units)
			unit := uint64(part.Width) * each * conv
			all = append(all, piece{i, row, first, n, unit, off})
			off += unit * uint64(n)
		}
	}
	if len(s.Temporal) > 0 {
		first, n := share(s.Temporal[0])
		unit := temporal
		for _, dim := range s.Temporal[1:] {
			unit *= uint64(dim)
		}
		all = append(all, piece{len(s.Conv), 0, first, n, unit, off})
	}
	return all
}

// addState adds a lane for each run of units that one rank of the peer has.
func (s *spread) addState(m *Model, layer int, ours pageAt, theirs []pageAt) error {
	state := m.Layers[layer].State
	conv, temporal := ours.page.ConvDType.size(), ours.page.StateDType.size()
	base, block := ours.start()
	for _, mine := range state.pieces(&ours, conv, temporal) {
		for u := mine.first; u < mine.first+mine.n; {
			found := false
			for i := range theirs {
				t := &theirs[i]
				for _, his := range state.pieces(t, conv, temporal) {
					if found || his.part != mine.part || his.row != mine.row || u < his.first || u >= his.first+his.n {
						continue
					}
					found = true
					n := min(mine.first+mine.n, his.first+his.n) - u
					from, stride := t.start()
					s.add(ours.group, lane{peer: t.peer, bytes: uint64(n) * mine.unit,
						local:  thread{base: base + mine.off + uint64(u-mine.first)*mine.unit, block: block},
						remote: thread{base: from + his.off + uint64(u-his.first)*his.unit, block: stride}})
					u += n
				}
			}
			if !found {
				return &MismatchError{fmt.Sprintf("groups[%d].pages: layer %d: part %d of the state", ours.group, layer, mine.part),
					fmt.Sprintf("unit %d", u), "not on the ranks told"}
			}
		}
	}
	return nil
}
