package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// hybrid is a pool whose blocks hold tokens, which are zeroed, or a state, which
// is reset and uses half of the block's bytes.
func hybrid(blocks int) []Pool {
	return []Pool{{Name: "kv", Blocks: blocks, BlockBytes: 100, HasNull: true, Groups: []Group{
		{Name: "attention", NeedsFill: true},
		{Name: "state", Filling: Resetting, NeedsFill: true, Bytes: []kv.Range{{Off: 0, Len: 20}, {Off: 40, Len: 30}}},
	}}}
}

func newOwner(t testing.TB, pools []Pool) *Core {
	c, err := New(pools, Options{})
	require.NoError(t, err)
	return c
}

func mustAlloc(t testing.TB, c *Core, g kv.Group, n int) []kv.Tenancy {
	ts, err := c.Alloc([]Want{{g, n}}, nil)
	require.NoError(t, err)
	return ts
}

func TestLedgerNullBlock(t *testing.T) {
	c := newOwner(t, []Pool{{Name: "kv", Blocks: 8, BlockBytes: 1, HasNull: true}})
	for range 3 { // through the whole pool, three times over
		ts := mustAlloc(t, c, 0, 7)
		for _, x := range ts {
			require.NotEqual(t, kv.Null, x.Block)
		}
		_, err := c.Alloc([]Want{{0, 1}}, nil)
		require.ErrorIs(t, err, ErrFull)
		require.NoError(t, c.Free(0, ts))
	}
	before := c.PoolCounters(0)
	for gen := range kv.Generation(3) {
		null := kv.Tenancy{Block: kv.Null, Generation: gen}
		require.ErrorIs(t, c.Free(0, []kv.Tenancy{null}), ErrNull)
		require.ErrorIs(t, c.Ref(0, []kv.Tenancy{null}), ErrNull)
	}
	require.Equal(t, before, c.PoolCounters(0))

	c = newOwner(t, []Pool{{Name: "state", Blocks: 1, BlockBytes: 1}})
	ts := mustAlloc(t, c, 0, 1)
	require.Equal(t, []kv.Tenancy{{Block: 0, Generation: 1}}, ts)
	require.NoError(t, c.Free(0, ts))
	require.Equal(t, PoolCounters{Blocks: 1, Free: 1}, c.PoolCounters(0))
}

func TestLedgerRefusesAndChangesNothing(t *testing.T) {
	c := newOwner(t, []Pool{{Name: "kv", Blocks: 10, BlockBytes: 1, HasNull: true}})
	ts := mustAlloc(t, c, 0, 4)
	old := ts[3]
	require.NoError(t, c.Free(0, ts[3:]))
	good := ts[0]
	for name, try := range map[string]struct {
		list []kv.Tenancy
		want error
		says string
	}{
		"freed twice":         {[]kv.Tenancy{good, old}, ErrFreed, "block 4 gen 1"},
		"other generation":    {[]kv.Tenancy{good, {Block: 2, Generation: 7}}, ErrStale, "block 2 gen 7"},
		"never handed out":    {[]kv.Tenancy{good, {Block: 9, Generation: 1}}, ErrStale, "block 9 gen 1"},
		"no generation":       {[]kv.Tenancy{good, {Block: 9}}, ErrInvalid, "block 9 without a generation"},
		"null block":          {[]kv.Tenancy{good, {Block: 0, Generation: 1}}, ErrNull, "block 0"},
		"padding":             {[]kv.Tenancy{good, {Block: kv.Pad}}, ErrInvalid, "block -1"},
		"behind the last":     {[]kv.Tenancy{good, {Block: 10, Generation: 1}}, ErrInvalid, "block 10"},
		"lowest possible id":  {[]kv.Tenancy{good, {Block: -1 << 31}}, ErrInvalid, "block -2147483648"},
		"highest possible id": {[]kv.Tenancy{good, {Block: 1<<31 - 1}}, ErrInvalid, "block 2147483647"},
	} {
		t.Run(name, func(t *testing.T) {
			before := c.PoolCounters(0)
			for what, call := range map[string]func(kv.PoolID, []kv.Tenancy) error{"free": c.Free, "ref": c.Ref} {
				err := call(0, try.list)
				require.ErrorIs(t, err, try.want, what)
				require.ErrorContains(t, err, try.says)
			}
			require.Equal(t, before, c.PoolCounters(0))
			require.Equal(t, 1, c.Refs(0, good))
		})
	}
	require.ErrorIs(t, c.Free(0, []kv.Tenancy{good, ts[1], good}), ErrInvalid, "listed twice")
	require.ErrorIs(t, c.Free(1, nil), ErrInvalid)
	_, err := c.Alloc([]Want{{0, -1}}, nil)
	require.ErrorIs(t, err, ErrInvalid)
	_, err = c.Alloc([]Want{{1, 1}}, nil)
	require.ErrorIs(t, err, ErrInvalid)

	dst := []kv.Tenancy{good}
	dst, err = c.Alloc([]Want{{0, 3}, {0, 4}}, dst)
	require.ErrorIs(t, err, ErrFull)
	require.Equal(t, []kv.Tenancy{good}, dst)
	var full *FullError
	require.ErrorAs(t, err, &full)
	require.Equal(t, FullError{Pool: "kv", Want: 7, Free: 6, Used: 3}, *full)
	require.ErrorContains(t, err, `pool "kv": 7 blocks wanted, 6 free, 3 used, 0 in quarantine: full`)
}

// TestOwnedBlocksStayOwned: who does not have a block can not begin a tenancy of
// it, and a block in a holder does not lose its last reference.
func TestOwnedBlocksStayOwned(t *testing.T) {
	c := newOwner(t, hybrid(6))
	_, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.ErrorIs(t, err, ErrStale, "nobody handed it out")
	ts := mustAlloc(t, c, 0, 2)
	_, err = c.Hold(1, ts)
	require.ErrorContains(t, err, "of group 0, not 1")
	require.ErrorIs(t, c.Retire(0, ts), ErrInvalid, "not a foreign pool")

	h, err := c.Hold(0, ts)
	require.NoError(t, err)
	require.NoError(t, c.Ref(0, ts[:1]))
	require.ErrorIs(t, c.Free(0, ts), ErrHeld)
	require.Equal(t, 2, c.Refs(0, ts[0]), "a refused call changed something")
	require.NoError(t, c.Free(0, ts[:1]))
	require.NoError(t, c.Drop(h))
	require.NoError(t, c.Free(0, ts))
	require.Equal(t, PoolCounters{Blocks: 6, Free: 5, Null: 1}, c.PoolCounters(0))
	require.ErrorIs(t, c.Free(0, ts), ErrFreed)
}

// TestGroups: what a block is filled with, and what a load has to bring so that
// it need not be, goes by its group.
func TestGroups(t *testing.T) {
	for name, mode := range map[string]Mode{"all": PerBlock, "uncovered": PerBlockSkipCovered} {
		t.Run(name, func(t *testing.T) {
			c, err := New(hybrid(6), Options{Mode: mode})
			require.NoError(t, err)
			ts, err := c.Alloc([]Want{{0, 1}, {1, 1}}, nil)
			require.NoError(t, err)
			h, err := c.Hold(0, ts[:1])
			require.NoError(t, err)
			require.NoError(t, c.Append(h, 1, ts[1:]))

			load := func(bytes ...kv.Range) (fillings []Filling) {
				r := TransferRequest{Holder: h}
				for _, b := range bytes {
					r.Pieces = append(r.Pieces, Piece{Tenancy: ts[1], Bytes: b})
				}
				id, err := c.Transfer(r)
				require.NoError(t, err)
				for _, a := range c.Actions(nil) {
					if a.Kind == DoLaunch {
						ln, err := c.Launch(a.Launch)
						require.NoError(t, err)
						require.Equal(t, kv.Group(1), ln.Group)
						fillings = append(fillings, ln.Filling)
						require.NoError(t, c.LaunchFailed(a.Launch, kv.Point{}, errors.New("stays dirty")))
					}
				}
				if c.TransferState(id) == Held {
					_, err = c.Cancel(id)
					require.NoError(t, err)
				} else if c.TransferState(id) == Posting {
					require.NoError(t, c.PostFailed(id, errors.New("not now"), true))
				}
				c.Actions(nil)
				return fillings
			}
			require.Equal(t, []Filling{Resetting}, load(kv.Range{Off: 0, Len: 60}), "ten bytes of the state are missing")
			whole := load(kv.Range{Off: 0, Len: 20}, kv.Range{Off: 40, Len: 30})
			if mode.Coverage == ZeroUncovered {
				require.Empty(t, whole, "a load that brings the whole state needs no reset")
			} else {
				require.Equal(t, []Filling{Resetting}, whole)
			}
		})
	}
	for says, g := range map[string]Group{
		"behind 0": {Bytes: []kv.Range{{Off: 90, Len: 11}}}, "behind 20": {Bytes: []kv.Range{{Len: 20}, {Off: 10, Len: 20}}}, "filling 7": {Filling: 7},
	} {
		_, err := New([]Pool{{Name: "p", Blocks: 2, BlockBytes: 100, Groups: []Group{g}}}, Options{})
		require.ErrorContains(t, err, says)
	}
}

// TestGenerationsOfOwnedBlocks: the generation after the last is the first.
func TestGenerationsOfOwnedBlocks(t *testing.T) {
	c := newOwner(t, []Pool{{Name: "kv", Blocks: 2, BlockBytes: 1, HasNull: true}})
	c.view.entries[1].gen = 1<<32 - 2
	for _, want := range []kv.Generation{1<<32 - 1, 1, 2} {
		ts := mustAlloc(t, c, 0, 1)
		require.Equal(t, []kv.Tenancy{ten(1, want)}, ts)
		h, err := c.Hold(0, ts)
		require.NoError(t, err)
		require.NoError(t, c.Drop(h))
		require.NoError(t, c.Free(0, ts))
		require.ErrorIs(t, c.Free(0, ts), ErrFreed)
	}
}

func TestLedgerJoins(t *testing.T) {
	l, err := NewLedger(hybrid(4), 2, nil)
	require.NoError(t, err)
	for name, try := range map[string]struct {
		pools []Pool
		rank  int
		says  string
	}{
		"rank too high": {hybrid(4), 2, "rank 2 of a ledger for 2"},
		"negative rank": {hybrid(4), -1, "rank -1"},
		"more blocks":   {hybrid(5), 0, "pool 0 (kv) has 5 blocks"},
		"more pools":    {append(hybrid(4), hybrid(4)...), 0, "2 pools, its ledger 1"},
	} {
		_, err := New(try.pools, Options{Ledger: l, Rank: try.rank})
		require.ErrorContains(t, err, try.says, name)
	}
	_, err = New(hybrid(4), Options{Ledger: l, Rank: 1})
	require.NoError(t, err)
	_, err = New(hybrid(4), Options{Ledger: l, Rank: 1})
	require.ErrorContains(t, err, "rank 1 of the ledger has a gate already")
	_, err = NewLedger([]Pool{{Blocks: 2, BlockBytes: 1, Foreign: true}}, 2, nil)
	require.ErrorContains(t, err, "hands out the ids itself")
	_, err = NewLedger(hybrid(4), MaxRanks+1, nil)
	require.ErrorIs(t, err, ErrInvalid)
}

func TestRanksThatDiffer(t *testing.T) {
	l, err := NewLedger(hybrid(4), 2, nil)
	require.NoError(t, err)
	a, err := New(hybrid(4), Options{Ledger: l})
	require.NoError(t, err)
	b, err := New(hybrid(4), Options{Ledger: l, Rank: 1})
	require.NoError(t, err)
	mustAlloc(t, a, 0, 2)
	_, err = b.Alloc([]Want{{0, 3}}, nil)
	require.ErrorIs(t, err, ErrDiverged)
	require.ErrorContains(t, err, "rank 1: operation 0 is alloc [{0 3}]")
	mustAlloc(t, b, 0, 2)
	_, err = b.Alloc([]Want{{0, 2}}, nil)
	require.ErrorIs(t, err, ErrFull)
	_, err = a.Alloc([]Want{{0, 2}}, nil)
	require.ErrorIs(t, err, ErrFull, "both ranks are told the same")
}

// rankTwin is one rank of TestTwoRanks: it does the program's operations in
// order, and its transfers and steps end when they like.
type rankTwin struct {
	c       *Core
	program int // the next operation
	holders map[int]Holder
	blocks  map[int][]kv.Tenancy
	open    map[kv.Tenancy]int // plans that may touch it
	plans   []rankPlan
}

type rankPlan struct {
	p  Plan
	ts []kv.Tenancy
}

// TestTwoRanks skews the ranks of a ledger at random: they have equal ids, and a
// block is handed out again only when no rank has a plan for it any more.
func TestTwoRanks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const ranks, blocks = 2, 8
		l, err := NewLedger(hybrid(blocks), ranks, nil)
		require.NoError(t, err)
		type operation struct {
			grow      bool
			request   int
			group     kv.Group
			count     int
			done      bool // by the first rank
			allocated []kv.Tenancy
			err       error
		}
		var program []operation
		var rs [ranks]*rankTwin
		for k := range rs {
			c, err := New(hybrid(blocks), Options{Ledger: l, Rank: k})
			require.NoError(t, err)
			rs[k] = &rankTwin{c: c, holders: map[int]Holder{}, blocks: map[int][]kv.Tenancy{}, open: map[kv.Tenancy]int{}}
		}
		alive := map[int]int{} // requests of the program, and how often they grew
		next := 0
		extend := func(t *rapid.T) {
			var ids []int
			for id := range alive {
				ids = append(ids, id)
			}
			slices.Sort(ids)
			if len(ids) > 0 && rapid.Bool().Draw(t, "close") {
				id := rapid.SampledFrom(ids).Draw(t, "request")
				delete(alive, id)
				program = append(program, operation{request: id})
				return
			}
			program = append(program, operation{grow: true, request: next, group: kv.Group(rapid.IntRange(0, 1).Draw(t, "group")),
				count: rapid.IntRange(1, 4).Draw(t, "count")})
			alive[next] = 1
			next++
		}
		advance := func(t *rapid.T, r *rankTwin) {
			if r.program == len(program) {
				extend(t)
			}
			o := &program[r.program]
			r.program++
			if !o.grow {
				h, ok := r.holders[o.request]
				if !ok {
					return // its allocation failed, on every rank
				}
				require.NoError(t, r.c.Drop(h))
				require.NoError(t, r.c.Free(0, r.blocks[o.request]))
				delete(r.holders, o.request)
				return
			}
			ts, err := r.c.Alloc([]Want{{o.group, o.count}}, nil)
			if !o.done {
				o.done, o.allocated, o.err = true, slices.Clone(ts), err
				for _, x := range ts {
					for k, other := range rs {
						for old, n := range other.open {
							require.False(t, old.Block == x.Block && n > 0, "%v was handed out while rank %d has a plan for %v", x, k, old)
						}
					}
				}
			}
			require.Equal(t, o.allocated, slices.Clone(ts))
			require.Equal(t, errors.Is(o.err, ErrFull), errors.Is(err, ErrFull))
			if err != nil {
				require.ErrorIs(t, err, ErrFull)
				return
			}
			h, err := r.c.Hold(o.group, ts)
			require.NoError(t, err)
			r.holders[o.request], r.blocks[o.request] = h, ts
		}
		actions := map[string]func(*rapid.T){}
		for k, r := range rs {
			actions[fmt.Sprint("rank ", k)] = func(t *rapid.T) { advance(t, r) }
			actions[fmt.Sprint("plan ", k)] = func(t *rapid.T) {
				for id := range next {
					if h, ok := r.holders[id]; ok {
						p, err := r.c.Plan([]Holder{h}, nil)
						require.NoError(t, err)
						r.plans = append(r.plans, rankPlan{p, r.blocks[id]})
						for _, x := range r.blocks[id] {
							r.open[x]++
						}
						return
					}
				}
			}
			actions[fmt.Sprint("give up ", k)] = func(t *rapid.T) {
				if len(r.plans) == 0 {
					return
				}
				i := rapid.IntRange(0, len(r.plans)-1).Draw(t, "which")
				require.NoError(t, r.c.GiveUp(r.plans[i].p))
				for _, x := range r.plans[i].ts {
					r.open[x]--
				}
				r.plans = slices.Delete(r.plans, i, i+1)
			}
		}
		t.Repeat(actions)
		for _, r := range rs {
			for _, p := range r.plans {
				require.NoError(t, r.c.GiveUp(p.p))
			}
		}
		for id := range alive {
			program = append(program, operation{request: id})
		}
		for _, r := range rs {
			for r.program < len(program) {
				advance(t, r)
			}
		}
		require.Equal(t, PoolCounters{Blocks: blocks, Free: blocks - 1, Null: 1}, rs[0].c.PoolCounters(0))
		require.Empty(t, l.log)
	})
}
