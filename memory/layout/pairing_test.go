package layout

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// sides are two arenas of one plan, unlike in place and size.
func sides(t require.TestingT, p *Plan) (local, remote *Arena) {
	local, err := p.Place(1<<30, 12)
	require.NoError(t, err)
	remote, err = p.Place(1<<40, 15)
	require.NoError(t, err)
	return local, remote
}

// request draws lists of blocks for so many tokens, in which windows have given
// blocks back, and speculative rows follow those of states.
func request(p *Plan, tokens, blocks int, r *rand.Rand) [][]kv.Block {
	var free []kv.Block
	for _, b := range r.Perm(blocks) {
		if b > 0 || p.Options.RealNull {
			free = append(free, kv.Block(b))
		}
	}
	take := func() (b kv.Block) {
		if len(free) == 0 {
			return kv.Pad
		}
		b, free = free[0], free[1:]
		return b
	}
	var lists [][]kv.Block
	for g := range p.Groups {
		gr, live := &p.Groups[g], p.Live(g, tokens)
		var list []kv.Block
		switch {
		case gr.Kind == Recurrent && p.Options.StateMode == StateNone:
			list = append(list, take())
		default:
			for i := range int(cdiv(uint64(tokens), uint64(gr.BlockTokens))) {
				if (i+1)*gr.BlockTokens <= live.From {
					list = append(list, []kv.Block{kv.Pad, kv.Null}[r.IntN(2)])
					if p.Options.RealNull {
						list[len(list)-1] = kv.Pad
					}
					continue
				}
				list = append(list, take())
			}
		}
		if gr.Kind == Recurrent {
			for range p.Options.SpeculativeTokens {
				list = append(list, kv.Pad) // never looked at
			}
		}
		lists = append(lists, list)
	}
	return lists
}

// Any plan, request and range of tokens: what the moves change is exactly what
// the tokens have in blocks that both sides have, and it becomes the peer's.
func TestMovesOfAnyPlan(t *testing.T) {
	moved := 0
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawModel(t)
		o.RealNull = rapid.Bool().Draw(t, "real null")
		p, err := NewPlan(m, o)
		if err != nil {
			return
		}
		local, remote := sides(t, p)
		pairing, err := NewPairing(local, remote.Description())
		require.NoError(t, err)
		tokens := drawTokens(t, p, rapid.IntRange(0, len(p.Groups)-1).Draw(t, "group"))
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		ours, theirs := request(p, tokens.To, local.Blocks, r), request(p, tokens.To, remote.Blocks, r)
		tr := &Transfer{Tokens: tokens}
		for g := range ours {
			tr.Groups = append(tr.Groups, GroupBlocks{Local: ours[g], Remote: theirs[g]})
		}
		var moves Moves
		err = pairing.Moves(&moves, tr)
		want, ok := plainMoves(local, remote, tr)
		if !ok {
			require.ErrorIs(t, err, ErrNoBlock)
			require.Empty(t, moves.Peers[0])
			return
		}
		require.NoError(t, err)
		require.Len(t, moves.Peers, 1)
		got := make([]uint64, len(want))
		for _, mv := range moves.Peers[0] {
			for b := range mv.Len {
				at := mv.Local + b - local.Base
				if got[at] != 0 {
					require.Zero(t, got[at], "a byte twice")
				}
				got[at] = mv.Remote + b
			}
			moved++
		}
		require.True(t, slices.Equal(want, got))
	})
	require.Positive(t, moved)
}

// plainMoves returns, for each byte of our arena, where the peer has what it is
// to become, 0 where it has to stay; ok is false where a block is missing.
func plainMoves(local, remote *Arena, tr *Transfer) (want []uint64, ok bool) {
	p := local.Plan
	want = make([]uint64, p.Size(local.Blocks))
	has := func(list []kv.Block, i int) bool {
		return i < len(list) && (list[i] > 0 || list[i] == 0 && p.Options.RealNull)
	}
	for g := range p.Groups {
		gr, l := &p.Groups[g], tr.Groups[g]
		move := func(i int, needed bool, bytes func(f func(page int, o uint64))) bool {
			if !has(l.Local, i) || !has(l.Remote, i) {
				return !needed
			}
			bytes(func(page int, o uint64) {
				x, _ := placeOf(local, g, page, l.Local[i], o)
				want[x-local.Base], _ = placeOf(remote, g, page, l.Remote[i], o)
			})
			return true
		}
		if gr.Kind == Recurrent {
			i := 0
			if p.Options.StateMode == StateAlign {
				i = (tr.Tokens.To - 1) / gr.BlockTokens
			}
			if tr.Tokens.To > tr.Tokens.From && !move(i, true, func(f func(int, uint64)) {
				for page := range gr.Pages {
					for o := range gr.Pages[page].Used {
						f(page, o)
					}
				}
			}) {
				return nil, false
			}
			continue
		}
		needed := map[int]bool{} // places in the list with a token that is still looked at
		for token := range tr.Tokens.To {
			live := gr.Window == 0 || token+gr.Window > tr.Tokens.To
			if gr.Kind == ChunkedLocal { // the next token's chunk
				live = token/gr.Window == tr.Tokens.To/gr.Window
			}
			if live {
				needed[token/gr.BlockTokens] = true
			}
		}
		for token := tr.Tokens.From; token < tr.Tokens.To; token++ {
			i := token / gr.BlockTokens
			if !move(i, needed[i], func(f func(int, uint64)) { tokenBytes(local, g, token%gr.BlockTokens, f) }) {
				return nil, false
			}
		}
	}
	return want, true
}

func TestMovesAreMerged(t *testing.T) {
	p := plan(t, &Model{Layers: []Layer{full(2, 8), full(2, 8)}}, Options{}) // pages of 1024, tokens of 64
	local, remote := sides(t, p)
	pairing, err := NewPairing(local, remote.Description())
	require.NoError(t, err)
	var m Moves
	require.NoError(t, pairing.Moves(&m, &Transfer{Tokens: TokenRange{0, 70}, Groups: []GroupBlocks{{
		Local: []kv.Block{2, 3, 4, 8, 9}, Remote: []kv.Block{5, 6, 9, 1, 2}}}}))
	const l, r, nextL, nextR = 1 << 30, 1 << 40, 12 << 10, 15 << 10
	require.Equal(t, [][]Move{{
		{l + 2<<10, r + 5<<10, 2 << 10}, {l + 4<<10, r + 9<<10, 1 << 10}, {l + 8<<10, r + 1<<10, 1 << 10},
		{l + nextL + 2<<10, r + nextR + 5<<10, 2 << 10}, {l + nextL + 4<<10, r + nextR + 9<<10, 1 << 10}, {l + nextL + 8<<10, r + nextR + 1<<10, 1 << 10},
		{l + 9<<10, r + 2<<10, 6 * 64}, {l + nextL + 9<<10, r + nextR + 2<<10, 6 * 64},
	}}, m.Peers)

	// A prefix that is here already is not moved.
	require.NoError(t, pairing.Moves(&m, &Transfer{Tokens: TokenRange{16, 32}, Groups: []GroupBlocks{{
		Local: []kv.Block{2, 3}, Remote: []kv.Block{-1, 6}}}}))
	require.Equal(t, [][]Move{{{l + 3<<10, r + 6<<10, 1 << 10}, {l + nextL + 3<<10, r + nextR + 6<<10, 1 << 10}}}, m.Peers)
	require.NoError(t, pairing.Moves(&m, &Transfer{Tokens: TokenRange{32, 32}, Groups: []GroupBlocks{{}}}))
	require.Empty(t, m.Peers[0])
}

func TestMovesAreRefused(t *testing.T) {
	local, remote := sides(t, plan(t, byHand(), Options{}))
	pairing, err := NewPairing(local, remote.Description())
	require.NoError(t, err)
	good := func() *Transfer {
		return &Transfer{Tokens: TokenRange{0, 20}, Groups: []GroupBlocks{{Local: []kv.Block{1}, Remote: []kv.Block{1}}, {Local: []kv.Block{2, 3}, Remote: []kv.Block{3, 14}}}}
	}
	var m Moves
	require.NoError(t, pairing.Moves(&m, good()))
	require.NotEmpty(t, m.Peers[0])
	states := good()
	states.Groups[1] = GroupBlocks{Skip: true}
	require.NoError(t, pairing.Moves(&m, states))
	require.Len(t, m.Peers[0], 4, "a group can be left out")
	for says, c := range map[string]struct {
		change func(*Transfer)
		is     error
	}{
		"lists of blocks for 1 groups, want 2": {func(t *Transfer) { t.Groups = t.Groups[:1] }, ErrNoBlock},
		"tokens [5,4)":                         {func(t *Transfer) { t.Tokens = TokenRange{5, 4} }, ErrTokens},
		"group 0: place 0 of our list, of tokens [0,20): no block":          {func(t *Transfer) { t.Groups[0].Local = nil }, ErrNoBlock},
		"group 1: place 1 of our list, of tokens":                           {func(t *Transfer) { t.Groups[1].Local[1] = kv.Null }, ErrNoBlock},
		"group 1: place 0 of the peer's list, of tokens":                    {func(t *Transfer) { t.Groups[1].Remote[0] = kv.Pad }, ErrNoBlock},
		"group 1: place 1 of our list is block 12 of 12: block id out of":   {func(t *Transfer) { t.Groups[1].Local[1] = 12 }, ErrRange},
		"group 0: place 0 of the peer's list is block 15 of 15: block id o": {func(t *Transfer) { t.Groups[0].Remote[0] = 15 }, ErrRange},
	} {
		tr := good()
		c.change(tr)
		err := pairing.Moves(&m, tr)
		require.ErrorIs(t, err, c.is, says)
		require.ErrorContains(t, err, says)
		require.Empty(t, m.Peers[0])
	}
}

func TestPairing(t *testing.T) {
	rank := func(r int) *Arena {
		a, err := plan(t, byHand(), Options{TP: 2, Rank: r}).Place(uint64(r+1)<<40, 8)
		require.NoError(t, err)
		return a
	}
	var m Moves
	pairing, err := NewPairing(rank(1), rank(0).Description(), rank(1).Description())
	require.NoError(t, err)
	require.NoError(t, pairing.Moves(&m, &Transfer{Tokens: TokenRange{0, 1}, Groups: []GroupBlocks{{Local: []kv.Block{1}, Remote: []kv.Block{2}}, {Local: []kv.Block{3}, Remote: []kv.Block{4}}}}))
	require.Len(t, m.Peers, 2)
	require.Empty(t, m.Peers[0])
	require.Len(t, m.Peers[1], 4+3)

	var mismatch *MismatchError
	_, err = NewPairing(rank(1), rank(0).Description())
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, &MismatchError{"groups[0].pages", "layer 0, recurrent", "not on the ranks told"}, mismatch)
	other := rank(1)
	other.Revision = "another"
	_, err = NewPairing(rank(1), other.Description())
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, "revision", mismatch.Field)
	_, err = NewPairing(rank(1))
	require.ErrorIs(t, err, ErrDescription)
	bad := rank(1).Description()
	bad.Base = 0
	_, err = NewPairing(rank(1), bad)
	require.ErrorIs(t, err, ErrDescription)
}

// bench returns a transfer of 512 blocks of one group with 16 pages.
func benchTransfer(t testing.TB, o Options) (*Pairing, *Transfer) {
	m := &Model{}
	for range 16 {
		m.Layers = append(m.Layers, full(8, 64))
	}
	p := plan(t, m, o)
	local, err := p.Place(1<<40, 2000)
	require.NoError(t, err)
	remote, err := p.Place(1<<42, 2000)
	require.NoError(t, err)
	pairing, err := NewPairing(local, remote.Description())
	require.NoError(t, err)
	var g GroupBlocks
	r := rand.New(rand.NewPCG(1, 2))
	for i := range 512 {
		g.Local = append(g.Local, kv.Block(3*i+1))
		g.Remote = append(g.Remote, kv.Block(3*i+2))
	}
	r.Shuffle(512, func(i, j int) { g.Local[i], g.Local[j] = g.Local[j], g.Local[i] })
	return pairing, &Transfer{TokenRange{0, 512 * 16}, []GroupBlocks{g}}
}

func TestMovesAllocateNothing(t *testing.T) {
	for order := LBNHC; order <= BHLNC; order++ {
		pairing, tr := benchTransfer(t, Options{Order: order})
		tr.Tokens.From += 5
		tr.Tokens.To -= 5
		var m Moves
		run := func() {
			if err := pairing.Moves(&m, tr); err != nil {
				t.Fatal(err)
			}
		}
		run()
		require.Zero(t, testing.AllocsPerRun(10, run), "%v", order)
	}
}

func BenchmarkMoves(b *testing.B) {
	for _, order := range []Order{LBNHC, LBHNC, LHBNC, BLHNC} {
		b.Run(order.String()+"/512x16", func(b *testing.B) {
			pairing, tr := benchTransfer(b, Options{Order: order})
			var m Moves
			b.ReportAllocs()
			for b.Loop() {
				if err := pairing.Moves(&m, tr); err != nil {
					b.Fatal(err)
				}
			}
			n := len(m.Peers[0])
			b.ReportMetric(float64(n), "descriptors")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/descriptor")
		})
	}
}

// Every model at its true size: whole blocks and a part of the last, in lists
// that are in order and apart.
func TestMovesOfModels(t *testing.T) {
	eachModel(t, func(t *testing.T, p *Plan) {
		local, err := p.Place(1<<40, 400)
		require.NoError(t, err)
		remote, err := p.Place(1<<50, 300)
		require.NoError(t, err)
		pairing, err := NewPairing(local, remote.Description())
		require.NoError(t, err)
		widest := 0
		for g := range p.Groups {
			if p.Groups[g].Kind.Attention() {
				widest = max(widest, p.Groups[g].BlockTokens)
			}
		}
		tokens := TokenRange{0, 2*widest + 5}
		r := rand.New(rand.NewPCG(1, 2))
		ours, theirs := request(p, tokens.To, local.Blocks, r), request(p, tokens.To, remote.Blocks, r)
		tr := &Transfer{Tokens: tokens}
		for g := range ours {
			tr.Groups = append(tr.Groups, GroupBlocks{Local: ours[g], Remote: theirs[g]})
		}
		var m Moves
		require.NoError(t, pairing.Moves(&m, tr))
		list := slices.Clone(m.Peers[0])
		require.NotEmpty(t, list)
		var bytes uint64
		whole, err := NewMap(local.Tables().Transfer)
		require.NoError(t, err)
		for _, mv := range list {
			bytes += mv.Len
			require.LessOrEqual(t, mv.Remote+mv.Len, remote.Base+p.Size(remote.Blocks))
			b, _, err := whole.Locate(mv.Local, 1)
			require.NoError(t, err)
			require.Positive(t, b)
		}
		slices.SortFunc(list, func(x, y Move) int { return int(int64(x.Local - y.Local)) })
		for i := range list[1:] {
			require.LessOrEqual(t, list[i].Local+list[i].Len, list[i+1].Local, "apart")
		}
		var want uint64
		var c Cover
		tables := local.Tables()
		for g := range p.Groups {
			require.NoError(t, p.Cover(&c, g, tokens))
			for i := c.WholeFirst; i < c.WholeEnd; i++ {
				if i < len(ours[g]) && ours[g][i] > 0 {
					want += tables.Groups[g].Fill.Bytes()
				}
			}
			for _, part := range c.Parts {
				want += lengths(part.Bytes)
			}
		}
		require.Equal(t, want, bytes)
	})
}
