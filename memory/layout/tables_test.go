package layout

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// placeOf is the plain twin of all tables: where byte o of a page lies in
// memory, and in the bytes of its block.
func placeOf(a *Arena, g, i int, b kv.Block, o uint64) (address, off uint64) {
	p, n, block := a.Plan, uint64(a.Blocks), uint64(b)
	pg := &p.Groups[g].Pages[i]
	var before uint64
	for _, earlier := range p.Groups[g].Pages[:i] {
		before += earlier.Bytes
	}
	switch p.Options.Order {
	case LHBNC:
		part := pg.Bytes / uint64(pg.Heads)
		return a.Base + before*n + o/part*part*n + block*part + o%part, before + o
	case BLNHC, BLHNC:
		return a.Base + block*p.BlockBytes + before + o, before + o
	case BHLNC:
		heads := uint64(pg.Heads)
		part := pg.Bytes / heads
		off = o/part*p.BlockBytes/heads + before/heads + o%part
		return a.Base + block*p.BlockBytes + off, off
	}
	return a.Base + before*n + block*pg.Bytes + o, before + o
}

// owner is the byte of a block that an address holds.
type owner struct {
	block kv.Block
	off   uint64
}

// ownersOf returns who has each byte of the arena by a table.
func ownersOf(t require.TestingT, a *Arena, table Table) []owner {
	owners := make([]owner, a.Plan.Size(a.Blocks))
	for i := range owners {
		owners[i].block = kv.Pad
	}
	var off uint64
	for _, s := range table.Segments {
		for b := range kv.Block(a.Blocks) {
			for i := range s.Page {
				o := &owners[s.Address(b)+i-a.Base]
				if o.block != kv.Pad {
					require.Equal(t, kv.Pad, o.block, "byte %d twice", s.Address(b)+i-a.Base)
				}
				*o = owner{b, off + i}
			}
		}
		off += s.Page
	}
	return owners
}

// checkTwin holds the arena's tables against placeOf, byte by byte.
func checkTwin(t require.TestingT, a *Arena) {
	tables := a.Tables()
	require.NoError(t, tables.Transfer.Validate())
	transfer := ownersOf(t, a, tables.Transfer)
	require.Len(t, tables.Groups, len(a.Plan.Groups))
	for g := range tables.Groups {
		gr, gt := &a.Plan.Groups[g], &tables.Groups[g]
		require.Equal(t, gr.Kind == Recurrent, gt.State)
		require.Equal(t, len(gr.Pages) > 0 && (a.Plan.NeedsZeroing || gt.State), gt.NeedsZero)
		require.NoError(t, gt.Fill.Validate())
		want := make([]kv.Block, len(transfer)) // 0: not of the fill
		inBlock := make([]bool, tables.Transfer.Bytes())
		for i := range gr.Pages {
			for o := range gr.Pages[i].Used {
				for b := range kv.Block(a.Blocks) {
					address, off := placeOf(a, g, i, b, o)
					if got := transfer[address-a.Base]; got != (owner{b, off}) {
						require.Equal(t, owner{b, off}, got, "group %d, page %d, byte %d", g, i, o)
					}
					want[address-a.Base] = b + 1
					inBlock[off] = true
				}
			}
		}
		for at, o := range ownersOf(t, a, gt.Fill) {
			if want[at] != o.block+1 {
				require.Equal(t, want[at], o.block+1, "group %d, byte %d", g, at)
			}
		}
		ranges, err := tables.Transfer.Ranges(gt.Fill)
		require.NoError(t, err)
		require.Equal(t, runsOf(inBlock), ranges)
	}
}

// runsOf returns the runs of bytes that are set.
func runsOf(set []bool) (runs []kv.Range) {
	for i, ok := range set {
		if n := len(runs); ok && n > 0 && runs[n-1].End() == uint64(i) {
			runs[n-1].Len++
		} else if ok {
			runs = append(runs, kv.Range{Off: uint64(i), Len: 1})
		}
	}
	return runs
}

// eachModel runs f for a model of each architecture with options that
// lead to other tables: orders, kernel blocks, ranks, dtypes, pieces of states.
func eachModel(t *testing.T, f func(t *testing.T, p *Plan)) {
	smallest := map[string]*Model{}
	for _, model := range allModels(t) {
		m := loadModel(t, model)
		if s := smallest[m.Architecture]; s == nil || len(m.Layers) < len(s.Layers) {
			smallest[m.Architecture] = m
		}
	}
	for _, m := range smallest {
		model := m.Name
		planned := 0
		for order := LBNHC; order <= BHLNC; order++ {
			for name, o := range map[string]Options{
				"plain":       {},
				"flashinfer":  {Kernel: FlashInfer()},
				"tp2, pieces": {TP: 2, Rank: 1, ConvOrder: ConvDS, SpeculativeTokens: 2, KVDType: FP8, StateMode: StateAlign, BlockTokens: 64},
			} {
				o.Order = order
				p, err := NewPlan(m, o)
				if err != nil {
					require.ErrorIs(t, err, ErrOptions)
					continue
				}
				planned++
				t.Run(fmt.Sprintf("%s/%v/%s", model, order, name), func(t *testing.T) { f(t, p) })
			}
		}
		require.Positive(t, planned, model)
	}
}

func TestTablesOfModels(t *testing.T) {
	eachModel(t, func(t *testing.T, p *Plan) {
		p, err := p.Scaled(p.MaxScale(4))
		require.NoError(t, err)
		a, err := p.Place(1<<40, 2)
		require.NoError(t, err)
		checkTwin(t, a)
	})
}

func TestTablesOfAnyPlan(t *testing.T) {
	planned := 0
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawModel(t)
		p, err := NewPlan(m, o)
		if err != nil {
			return
		}
		planned++
		p, err = p.Scaled(p.MaxScale(4))
		require.NoError(t, err)
		a, err := p.Place(1<<30, rapid.IntRange(1, 3).Draw(t, "blocks"))
		require.NoError(t, err)
		checkTwin(t, a)
	})
	require.Positive(t, planned)
}

func TestTablesByHand(t *testing.T) {
	a, err := plan(t, byHand(), Options{Pool: 3}).Place(0x10000, 10)
	require.NoError(t, err)
	tables := a.Tables()
	const all = 10 * 1024
	states, attention := tables.Groups[0], tables.Groups[1]
	require.Equal(t, "recurrent 0", states.Name)
	require.Equal(t, []bool{true, true, false, true}, []bool{states.State, states.NeedsZero, attention.State, attention.NeedsZero})
	require.Equal(t, []Segment{{0x10000, 1024, 800}, {0x10000 + all, 1024, 800}, {0x10000 + 2*all, 1024, 800}, {0x10000 + 3*all, 1024, 800}},
		states.Fill.Segments, "without padding")
	require.Equal(t, []Segment{{0x10000, 1024, 1024}, {0x10000 + all, 1024, 1024}, {0x10000 + 2*all, 1024, 1024}}, attention.Fill.Segments)
	ranges, err := tables.Transfer.Ranges(states.Fill)
	require.NoError(t, err)
	require.Equal(t, []kv.Range{{Off: 0, Len: 800}, {Off: 1024, Len: 800}, {Off: 2048, Len: 800}, {Off: 3072, Len: 800}}, ranges)
	ranges, err = tables.Transfer.Ranges(attention.Fill)
	require.NoError(t, err)
	require.Equal(t, []kv.Range{{Off: 0, Len: 3072}}, ranges, "pages that lie apart follow each other in the block")

	a, err = plan(t, byHand(), Options{Order: BLNHC}).Place(0x10000, 10)
	require.NoError(t, err)
	require.Equal(t, []Segment{{0x10000, 4096, 3072}}, a.Tables().Groups[1].Fill.Segments, "pages that follow each other are one run")

	a, err = plan(t, &Model{Layers: []Layer{full(2, 8), full(2, 8)}}, Options{Order: BHLNC}).Place(0x10000, 1)
	require.NoError(t, err)
	require.Equal(t, []Segment{{0x10000, 2048, 2048}}, a.Tables().Groups[0].Fill.Segments, "all heads of all layers")
	require.False(t, a.Tables().Groups[0].NeedsZero)
}

func TestRanges(t *testing.T) {
	table := Table{Pool: 1, Blocks: 3, Segments: []Segment{{0x2000, 64, 48}, {0x1000, 64, 64}, {0x2030, 64, 16}}}
	fill := func(s ...Segment) Table { return Table{Pool: 1, Blocks: 3, Segments: s} }
	for name, c := range map[string]struct {
		fill Table
		want []kv.Range
		err  string
	}{
		"nothing":                     {fill(), nil, ""},
		"one page":                    {fill(Segment{0x1000, 64, 64}), []kv.Range{{Off: 48, Len: 64}}, ""},
		"over two pages":              {fill(Segment{0x2020, 64, 32}), []kv.Range{{Off: 32, Len: 16}, {Off: 112, Len: 16}}, ""},
		"neighbours merge":            {fill(Segment{0x1000, 64, 8}, Segment{0x2028, 64, 8}), []kv.Range{{Off: 40, Len: 16}}, ""},
		"a byte twice":                {fill(Segment{0x1000, 64, 8}, Segment{0x1004, 64, 8}), []kv.Range{{Off: 48, Len: 12}}, ""},
		"below":                       {fill(Segment{0xfff, 64, 8}), nil, "segment 0 of the fill: the byte at 0xfff of block 0"},
		"behind":                      {fill(Segment{0x1000, 64, 8}, Segment{0x2000, 64, 48}, Segment{0x1040, 64, 8}), nil, "segment 2 of the fill: the byte at 0x1040"},
		"another stride":              {fill(Segment{0x1000, 32, 8}), nil, "the byte at 0x1000"},
		"another pool":                {Table{Blocks: 3}, nil, "pool 0 with 3 blocks"},
		"more blocks":                 {Table{Pool: 1, Blocks: 4}, nil, "pool 1 with 4 blocks, want 3"},
		"a fill that makes no sense":  {fill(Segment{0x1000, 64, 0}), nil, "page of 0 bytes"},
		"a block in place of block 0": {fill(Segment{0x1040, 64, 64}), nil, "the byte at 0x1040"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := table.Ranges(c.fill)
			if c.err != "" {
				require.ErrorIs(t, err, ErrTable)
				require.ErrorContains(t, err, c.err)
				require.Nil(t, got)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, got)
		})
	}
}

// Tables of any kind, overlapping pages included, against bytes.
func TestRangesOfAnyTables(t *testing.T) {
	found := 0
	rapid.Check(t, func(t *rapid.T) {
		table, fill := drawTable(t), drawTable(t)
		fill.Blocks = table.Blocks
		if table.Validate() != nil || fill.Validate() != nil {
			return
		}
		set, inside := make([]bool, table.Bytes()), true
		for _, f := range fill.Segments {
			for at := f.Base; at < f.Base+f.Page; at++ {
				var off uint64
				here := false
				for _, s := range table.Segments {
					if at >= s.Base && at < s.Base+s.Page && (s.Stride == f.Stride || table.Blocks == 1) {
						set[off+at-s.Base], here = true, true
					}
					off += s.Page
				}
				inside = inside && here
			}
		}
		got, err := table.Ranges(fill)
		if !inside {
			require.ErrorIs(t, err, ErrTable)
			return
		}
		found++
		require.NoError(t, err)
		require.Equal(t, runsOf(set), got)
	})
	require.Positive(t, found)
}
