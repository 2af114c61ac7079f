package loadgate_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

func (r *openRig) request() loadgate.Request {
	q, err := r.gate.NewRequest()
	require.NoError(r.t, err)
	return q
}

func (r *openRig) counters() loadgate.PoolCounters {
	p, err := r.gate.Pool(0)
	require.NoError(r.t, err)
	return p.Counters()
}

// lists returns a request's blocks by group.
func lists(t testing.TB, q loadgate.Request, groups int) (out [][]kv.Block) {
	for g := range groups {
		bs, err := q.AppendBlocks(nil, g)
		require.NoError(t, err)
		out = append(out, bs)
	}
	return out
}

// places returns how many blocks of each list were let go or never taken, and how
// many are there.
func places(t testing.TB, q loadgate.Request) (out [][2]int) {
	for _, bs := range lists(t, q, 3) {
		var p [2]int
		for _, b := range bs {
			if b == kv.Pad {
				require.Zero(t, p[1])
				p[0]++
			} else {
				p[1]++
			}
		}
		out = append(out, p)
	}
	return out
}

func tokens(t testing.TB, q loadgate.Request) [3]int {
	c, err := q.Tokens()
	require.NoError(t, err)
	return [3]int{c.Reserved, c.Planned, c.Settled}
}

// step launches a step that does nothing.
func (r *openRig) step(uses ...loadgate.Use) {
	s, err := r.gate.NewStep(uses)
	require.NoError(r.t, err)
	_, err = s.Launch(nil)
	require.NoError(r.t, err)
}

func launch(t testing.TB, s loadgate.Step) {
	_, err := s.Launch(nil)
	require.NoError(t, err)
}

func TestGrowTakesAllOrNothing(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	q := r.request()
	require.NoError(t, q.Grow(33))
	require.Equal(t, [][2]int{{0, 3}, {0, 3}, {0, 1}}, places(t, q), "a state has one row")
	require.Equal(t, 7, r.counters().Used)
	require.NoError(t, q.Grow(20), "never shrinks")
	require.NoError(t, q.Grow(48))
	require.Equal(t, 7, r.counters().Used)

	need, free, soon, err := r.gate.CanGrow(q, 48+16*7)
	require.NoError(t, err)
	require.Equal(t, [3]int{14, 12, 0}, [3]int{need, free, soon})
	err = q.Grow(48 + 16*7)
	var full *loadgate.FullError
	require.ErrorAs(t, err, &full)
	require.ErrorContains(t, err, "request 0.1 to 160 tokens")
	require.Equal(t, [3]int{48, 0, 0}, tokens(t, q))
	require.Equal(t, 7, r.counters().Used, "nothing was taken")
	require.NoError(t, q.Grow(48+16*6))
	require.Zero(t, r.counters().Free)

	require.NoError(t, q.Close())
	require.Equal(t, 19, r.counters().Free)
}

func TestRequestsAreValues(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, func(o *loadgate.Options) {
		o.Tables = loadgate.TableOptions{Requests: 2, Tokens: 64}
	})
	a, b := r.request(), r.request()
	require.Equal(t, []int{0, 1}, []int{a.Row(), b.Row()})
	_, err := r.gate.NewRequest()
	require.ErrorIs(t, err, loadgate.ErrFull)
	require.ErrorContains(t, err, "all 2 rows")
	require.ErrorContains(t, a.Grow(65), "rows for 64")
	require.NoError(t, a.Close())
	c := r.request()
	require.Equal(t, a.Row(), c.Row())
	for says, err := range map[string]error{
		"request 0.1 was closed": a.Grow(1),
		"close: request 0.1":     a.Close(),
		"settle: request 0.1":    a.Settle(0),
		"the zero request":       loadgate.Request{}.Grow(1),
		"zero prefix":            loadgate.Kept{}.Close(),
	} {
		require.ErrorIs(t, err, loadgate.ErrStale)
		require.ErrorContains(t, err, says)
	}
	require.ErrorIs(t, c.Grow(-1), loadgate.ErrInvalid)
	require.ErrorIs(t, c.Grow(1<<40), loadgate.ErrInvalid)
	_, err = c.AppendBlocks(nil, 3)
	require.ErrorIs(t, err, loadgate.ErrInvalid)

	other := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	_, _, _, err = other.gate.CanGrow(c, 1)
	require.ErrorIs(t, err, loadgate.ErrInvalid)
}

func TestRequestsOfAClosedGate(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, func(o *loadgate.Options) {
		o.Tables = loadgate.TableOptions{Requests: 2, Tokens: 64}
	})
	q := r.request()
	require.NoError(t, q.Grow(10))
	require.NoError(t, r.gate.Close(context.Background()))
	_, err := r.gate.NewRequest()
	require.ErrorIs(t, err, loadgate.ErrClosed)
	require.ErrorIs(t, q.Grow(20), loadgate.ErrClosed)
	_, err = r.gate.NewStep([]loadgate.Use{{Request: q, Tokens: 1}})
	require.ErrorIs(t, err, loadgate.ErrClosed)
	_, err = r.gate.Table(0)
	require.ErrorIs(t, err, loadgate.ErrClosed)
	require.NoError(t, q.Close())
}

func TestWindowsAreTrimmedOnSettledTokensOnly(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 40, nil)
	q := r.request()
	require.NoError(t, q.Grow(80))
	r.step(loadgate.Use{Request: q, Tokens: 40})
	r.step(loadgate.Use{Request: q, Tokens: 40})
	require.Equal(t, [3]int{80, 80, 0}, tokens(t, q))
	require.Equal(t, [][2]int{{0, 5}, {0, 5}, {0, 1}}, places(t, q), "planned tokens trim nothing")
	require.NoError(t, q.Settle(40))
	require.Equal(t, [3]int{80, 80, 40}, tokens(t, q))
	// The next token, 40, reads from token 9 on.
	require.Equal(t, [][2]int{{0, 5}, {0, 5}, {0, 1}}, places(t, q))
	require.NoError(t, q.Settle(40))
	// Token 80 reads from 49 on: blocks 0 to 2 are behind.
	require.Equal(t, [][2]int{{0, 5}, {3, 2}, {0, 1}}, places(t, q))
	require.ErrorIs(t, q.Settle(0), loadgate.ErrState)
	require.NoError(t, q.Close())
	require.Zero(t, r.counters().Used)
}

func TestRejectedTokensGiveTheirRoomBack(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 40, nil)
	q := r.request()
	require.NoError(t, q.Grow(16))
	r.step(loadgate.Use{Request: q, Tokens: 16})
	require.NoError(t, q.Settle(16))
	require.NoError(t, q.GrowTo(loadgate.Room{Tokens: 17, Lookahead: 20}))
	require.Equal(t, [][2]int{{0, 3}, {0, 3}, {0, 1}}, places(t, q))
	r.step(loadgate.Use{Request: q, Tokens: 21})
	require.Equal(t, [3]int{37, 37, 16}, tokens(t, q))
	for _, bad := range []int{-1, 22} {
		require.ErrorIs(t, q.Settle(bad), loadgate.ErrInvalid)
	}
	require.NoError(t, q.Settle(2))
	require.Equal(t, [3]int{18, 18, 18}, tokens(t, q))
	require.Equal(t, [][2]int{{0, 2}, {0, 2}, {0, 1}}, places(t, q))
	require.Equal(t, 5, r.counters().Used)
	require.NoError(t, q.Close())
}

// A step that was planned on the optimistic count, and one that is abandoned.
func TestSettleWithMoreStepsPlanned(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 40, nil)
	q := r.request()
	require.NoError(t, q.Grow(40))
	first, err := r.gate.NewStep([]loadgate.Use{loadgate.Use{Request: q, Tokens: 10}})
	require.NoError(t, err)
	second, err := r.gate.NewStep([]loadgate.Use{loadgate.Use{Request: q, Tokens: 10}})
	require.NoError(t, err)
	third, err := r.gate.NewStep([]loadgate.Use{loadgate.Use{Request: q, Tokens: 10}})
	require.NoError(t, err)
	err = q.Settle(10)
	require.ErrorIs(t, err, loadgate.ErrState)
	require.ErrorContains(t, err, "its oldest step was not launched")
	launch(t, first)
	require.NoError(t, second.Abandon())
	require.Equal(t, [3]int{40, 20, 0}, tokens(t, q))
	require.NoError(t, q.Settle(4))
	require.Equal(t, [3]int{34, 14, 4}, tokens(t, q))
	launch(t, third)
	require.NoError(t, q.Settle(10))
	require.Equal(t, [3]int{34, 14, 14}, tokens(t, q))
	require.NoError(t, q.Close())
}

func TestNewStepNamesAllThatAreNotReady(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 40, nil)
	a, b, c, d := r.request(), r.request(), r.request(), r.request()
	for _, q := range []loadgate.Request{a, b, c} {
		require.NoError(t, q.Grow(8))
	}
	require.NoError(t, c.Close())
	_, err := r.gate.NewStep([]loadgate.Use{{Request: a, Tokens: 9}, {Request: b, Tokens: 8}, {Request: b},
		{Request: c}, {Request: d, Tokens: -1}, {}})
	var not *loadgate.NotReadyError
	require.ErrorAs(t, err, &not)
	require.Len(t, not.Requests, 5)
	for i, want := range []error{loadgate.ErrFull, loadgate.ErrInvalid, loadgate.ErrStale, loadgate.ErrInvalid, loadgate.ErrInvalid} {
		require.ErrorIs(t, not.Requests[i].Err, want)
		require.ErrorIs(t, err, want)
	}
	require.ErrorContains(t, err, "request 0.1: 9 tokens behind 0, and room for 8: full; request 1.1: listed twice")
	require.Equal(t, [3]int{8, 0, 0}, tokens(t, b), "nothing was planned")
}

func TestLoadedTokensNeedOnlyWhatIsRead(t *testing.T) {
	for mode, want := range map[layout.StateMode][][2]int{
		layout.StateNone:  {{0, 7}, {4, 3}, {0, 1}},
		layout.StateAlign: {{0, 7}, {4, 3}, {6, 1}},
	} {
		r := newOpenRig(t, hybrid(t, layout.Options{StateMode: mode}), 40, nil)
		q := r.request()
		require.ErrorIs(t, q.GrowTo(loadgate.Room{Tokens: 4, Loaded: 5}), loadgate.ErrInvalid)
		require.NoError(t, q.GrowTo(loadgate.Room{Tokens: 100, Loaded: 100}))
		require.Equal(t, want, places(t, q))
		require.NoError(t, q.Grow(113))
		require.Equal(t, 8, len(lists(t, q, 1)[0]))
		require.NoError(t, q.Close())
	}
}

func TestKeepAndAdopt(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{StateMode: layout.StateAlign}), 60, nil)
	q := r.request()
	require.NoError(t, q.Grow(80))
	r.step(loadgate.Use{Request: q, Tokens: 64})
	_, err := q.Keep(64)
	require.ErrorIs(t, err, loadgate.ErrInvalid, "not settled")
	require.NoError(t, q.Settle(64))
	require.Equal(t, [][2]int{{0, 5}, {2, 3}, {3, 2}}, places(t, q))

	refused := func(tokens, group int, why error) {
		t.Helper()
		_, err := q.Keep(tokens)
		var k *loadgate.KeepError
		require.ErrorAs(t, err, &k)
		require.Equal(t, group, k.Group)
		require.ErrorIs(t, err, why)
	}
	refused(60, 0, loadgate.ErrPartial)
	refused(48, 1, loadgate.ErrLetGo)
	kept, err := q.Keep(64)
	require.NoError(t, err)
	before := lists(t, q, 3)

	r.step(loadgate.Use{Request: q, Tokens: 1})
	require.NoError(t, q.Settle(1))
	refused(64, 2, loadgate.ErrNoState)
	require.NoError(t, q.Close())
	require.Equal(t, 4+2+1, r.counters().Used)

	a, b := r.request(), r.request()
	require.NoError(t, a.Adopt(kept))
	require.ErrorIs(t, a.Adopt(kept), loadgate.ErrState)
	require.NoError(t, b.Adopt(kept))
	require.Equal(t, [3]int{64, 64, 64}, tokens(t, a))
	require.Equal(t, 4+2+1, r.counters().Used)
	require.Equal(t, 3*(4+2+1), r.counters().Refs)
	require.NoError(t, a.Grow(65))
	require.NoError(t, b.Grow(65))
	mine, theirs := lists(t, a, 3), lists(t, b, 3)
	require.Equal(t, before[0][:4], mine[0][:4])
	require.Equal(t, before[1][2:4], mine[1][2:4])
	require.Equal(t, []kv.Block{kv.Pad, kv.Pad}, mine[1][:2])
	require.Equal(t, before[2][3], mine[2][3])
	for g := range 3 {
		require.Len(t, mine[g], 5)
		require.Equal(t, mine[g][:4], theirs[g][:4], "shared")
		require.NotEqual(t, mine[g][4], theirs[g][4], "appended to by each for itself")
	}

	require.NoError(t, kept.Close())
	require.ErrorIs(t, kept.Close(), loadgate.ErrStale)
	require.ErrorIs(t, r.request().Adopt(kept), loadgate.ErrStale)
	again, err := a.Keep(64)
	require.NoError(t, err, "its state is untouched")
	require.NoError(t, again.Close())
	require.NoError(t, a.Close())
	require.Equal(t, 10, r.counters().Used)
	require.NoError(t, b.Close())
	require.Zero(t, r.counters().Used)
}

// A state that was left in the middle of a block, or of which tokens were
// rejected, is not at the boundary; a single row never is.
func TestKeepRefusesWhereNoStateIs(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{StateMode: layout.StateAlign}), 60, nil)
	q := r.request()
	require.NoError(t, q.Grow(80))
	r.step(loadgate.Use{Request: q, Tokens: 20})
	require.NoError(t, q.Settle(20))
	_, err := q.Keep(16)
	require.ErrorIs(t, err, loadgate.ErrNoState)
	require.ErrorContains(t, err, "keep 16 tokens: group 2 (recurrent 2), blocks of 16: no row holds the state there")
	r.step(loadgate.Use{Request: q, Tokens: 13})
	require.NoError(t, q.Settle(12))
	_, err = q.Keep(32)
	require.ErrorIs(t, err, loadgate.ErrNoState, "the last of 13 was rejected")

	r = newOpenRig(t, hybrid(t, layout.Options{}), 60, nil)
	q = r.request()
	require.NoError(t, q.Grow(16))
	r.step(loadgate.Use{Request: q, Tokens: 16})
	require.NoError(t, q.Settle(16))
	_, err = q.Keep(16)
	require.ErrorIs(t, err, loadgate.ErrNoState)
}

// Nothing is allocated once slots and lists have grown.
func TestRequestsAllocateNothing(t *testing.T) {
	plan := hybrid(t, layout.Options{})
	g, err := loadgate.Open(noopdev.New(noopdev.Options{}), loadgate.Options{Plan: plan, Memory: plan.Size(400),
		Tables: loadgate.TableOptions{Requests: 1, Tokens: 2000}})
	require.NoError(t, err)
	defer g.Close(context.Background())
	q, err := g.NewRequest()
	require.NoError(t, err)
	require.NoError(t, q.Grow(512))
	s, err := g.NewStep([]loadgate.Use{{Request: q, Tokens: 512}})
	require.NoError(t, err)
	launch(t, s)
	require.NoError(t, q.Settle(512))
	n, uses := 512, make([]loadgate.Use, 1)
	round := func() {
		if n++; n == 1500 {
			_ = q.Close()
			q, _ = g.NewRequest()
			n = 1
		}
		if q.Grow(n) != nil {
			panic("full")
		}
		uses[0] = loadgate.Use{Request: q, Tokens: 1}
		s, err := g.NewStep(uses)
		if err == nil {
			_, err = s.Launch(nil)
		}
		if err == nil {
			err = q.Settle(1)
		}
		if err == nil {
			_, err = g.Progress(0)
		}
		if err != nil {
			panic(err)
		}
	}
	for range 3000 {
		round()
	}
	require.Zero(t, testing.AllocsPerRun(1000, round))
}
