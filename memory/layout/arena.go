package layout

import (
	"math"

	"github.com/kvgate/kvgate/memory/kv"
)

// Blocks returns how many blocks, the null block included, fit into so many
// bytes. None that can be handed out is an error that wraps [ErrOptions].
func (p *Plan) Blocks(available uint64) (int, error) {
	n := min(available/p.BlockBytes, MaxBlocks)
	if least := 1 + uint64(p.first()); n < least {
		return 0, optionFault("model %q: %d bytes hold %d blocks of %d, want at least %d",
			p.Model.Name, available, n, p.BlockBytes, least)
	}
	return int(n), nil
}

func (p *Plan) first() kv.Block {
	t := Table{RealNull: p.Options.RealNull}
	return t.First()
}

// Size returns the bytes that so many blocks take: one allocation.
func (p *Plan) Size(blocks int) uint64 { return mul(p.BlockBytes, uint64(max(blocks, 0))) }

// Arena is a plan with memory: one run of bytes at Base that holds the blocks.
type Arena struct {
	Plan   *Plan
	Base   uint64
	Blocks int
	// Revision is that of the checkpoint, and Generation counts the lives of the
	// pool: an engine that starts anew has another, and what was told of blocks
	// before is void. Both are the engine's to set, for [Arena.Description].
	Revision   string
	Generation uint64
}

// Place puts a plan at an address. The size is [Plan.Size]; the memory itself
// is the caller's. The error wraps [ErrOptions].
func (p *Plan) Place(base uint64, blocks int) (*Arena, error) {
	switch size := p.Size(blocks); {
	case blocks < 1 || blocks > MaxBlocks:
		return nil, optionFault("model %q: %d blocks, want 1 to %d", p.Model.Name, blocks, MaxBlocks)
	case base == 0:
		return nil, optionFault("model %q: base address 0", p.Model.Name)
	case size > math.MaxUint64-base:
		return nil, optionFault("model %q: %d blocks of %d bytes at %#x reach past the end of the address space",
			p.Model.Name, blocks, p.BlockBytes, base)
	}
	return &Arena{Plan: p, Base: base, Blocks: blocks}, nil
}

func (a *Arena) table(s []Segment) Table {
	o := &a.Plan.Options
	return Table{Pool: o.Pool, RealNull: o.RealNull, Blocks: a.Blocks, Segments: s}
}

// Page returns the segment of one page, padding included: group g, layer i of
// that group. Under LHBNC and BHLNC it is the page's first head only.
func (a *Arena) Page(g, i int) Segment {
	pg := &a.Plan.Groups[g].Pages[i]
	o := a.Plan.Options.Order
	s := Segment{Base: a.Base + pg.before, Stride: a.Plan.BlockBytes, Page: pg.Bytes}
	if !o.BlockOutermost() {
		s.Base, s.Stride = a.Base+pg.before*uint64(a.Blocks), pg.Bytes
	}
	if heads := uint64(max(pg.Heads, 1)); o.splitsPages() {
		s.Page = pg.Bytes / heads
		if o == BHLNC {
			s.Base = a.Base + pg.before/heads
		} else {
			s.Stride = s.Page
		}
	}
	return s
}

// Segments returns the segments of group g as vLLM 0.33.0 has them; what a gate
// writes is in [Arena.Tables].
//
// An attention group has a segment for each layer, or for each of its heads
// where the order takes them apart, and of these one for each kernel block.
// Padding is not included. Under BHLNC the pages of a block overlap: each spans
// from its first head to its last.
//
// A recurrent group has a segment for each [Region] of each layer, without
// padding.
func (a *Arena) Segments(g int) Table {
	gr := &a.Plan.Groups[g]
	var s []Segment
	for i := range gr.Pages {
		pg, whole := &gr.Pages[i], a.Page(g, i)
		if gr.Kind == Recurrent {
			for _, r := range pg.Regions {
				s = append(s, Segment{whole.Base + r.Off, whole.Stride, r.Len})
			}
			continue
		}
		whole.Page = min(whole.Page, pg.Used)
		s = a.appendPage(s, pg, whole, uint64(gr.Ratio))
	}
	return a.table(s)
}

func (a *Arena) appendPage(s []Segment, pg *Page, whole Segment, ratio uint64) []Segment {
	heads, apart := a.heads(pg)
	if a.Plan.Options.Order == BHLNC {
		whole.Page += (heads - 1) * apart
		heads = 1
	}
	for h := range heads {
		for k := range ratio {
			page := whole.Page / ratio
			s = append(s, Segment{whole.Base + h*apart + k*page, whole.Stride, page})
		}
	}
	return s
}
