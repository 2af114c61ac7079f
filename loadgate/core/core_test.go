package core

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

func newCore(t testing.TB, mode Mode, pools ...Pool) *Core {
	if len(pools) == 0 {
		pools = []Pool{{Name: "kv", Blocks: 16, BlockBytes: 100, HasNull: true, NeedsZero: true}}
	}
	for i := range pools {
		pools[i].Foreign = true
	}
	c, err := New(pools, Options{Mode: mode})
	require.NoError(t, err)
	return c
}

func ten(b kv.Block, gen kv.Generation) kv.Tenancy { return kv.Tenancy{Block: b, Generation: gen} }

// launchAll carries out pending launches on the given timeline.
func launchAll(t testing.TB, c *Core, tl kv.Timeline, seq *kv.Seq) (posts []Transfer, tells []Action) {
	for c.Pending() {
		for _, a := range c.Actions(nil) {
			switch a.Kind {
			case DoLaunch:
				*seq++
				require.NoError(t, c.Launched(a.Launch, kv.Point{Timeline: tl, Seq: *seq}))
			case DoPost:
				posts = append(posts, a.Transfer)
			default:
				tells = append(tells, a)
			}
		}
	}
	return posts, tells
}

func TestEveryStateAndActionHasAName(t *testing.T) {
	for s := range next {
		require.NotContains(t, State(s).String(), "state ")
	}
	for k := DoLaunch; k <= TellOverdue; k++ {
		require.NotContains(t, k.String(), "action ")
	}
	for s := Free; s <= Quarantined; s++ {
		require.NotContains(t, s.String(), "block state")
	}
	for _, m := range Modes() {
		back, err := ParseMode(m.String())
		require.NoError(t, err)
		require.Equal(t, m, back)
	}
	_, err := ParseMode("perblock")
	require.ErrorContains(t, err, `"perblock"`)
}

// TestMoves holds every pair of states against the diagram.
func TestMoves(t *testing.T) {
	for from := range next {
		for to := range next {
			c := newCore(t, PerBlock)
			c.tickets = []ticket{{state: State(from)}}
			allowed := false
			for _, s := range next[from] {
				allowed = allowed || s == State(to)
			}
			err := c.move(0, State(to))
			if allowed {
				require.NoError(t, err)
				require.Equal(t, State(to), c.tickets[0].state)
			} else {
				require.ErrorIs(t, err, ErrState)
				require.Equal(t, State(from), c.tickets[0].state, "a refused move changed the state")
			}
		}
	}
}

// TestFault: a move that does not exist, which only a fault of the core's own
// can ask for, stops everything rather than nothing.
func TestFault(t *testing.T) {
	c := newCore(t, PerBlock)
	c.tickets = []ticket{{state: Over}}
	c.must(c.move(0, Posted))
	c.must(errors.New("second"))
	_, err := c.Hold(0, nil)
	require.ErrorIs(t, err, ErrState)
	_, err = c.Plan(nil, nil)
	require.ErrorIs(t, err, ErrState)
}

func TestNewRefuses(t *testing.T) {
	good := Pool{Name: "p", Blocks: 2, BlockBytes: 1}
	for name, try := range map[string]struct {
		pools []Pool
		o     Options
		says  string
	}{
		"no pools":     {nil, Options{}, "0 pools"},
		"no blocks":    {[]Pool{{Name: "p", BlockBytes: 1}}, Options{}, "pool 0 (p): 0 blocks"},
		"negative":     {[]Pool{good, {Name: "q", Blocks: -1, BlockBytes: 1}}, Options{}, "pool 1 (q): -1 blocks"},
		"too many":     {[]Pool{good, {Name: "q", Blocks: 1<<31 - 1, BlockBytes: 1}}, Options{}, "pool 1 (q)"},
		"no bytes":     {[]Pool{{Name: "p", Blocks: 1}}, Options{}, "without bytes"},
		"bad mode":     {[]Pool{good}, Options{Mode: Mode{Place: 9}}, "place 9"},
		"bad limit":    {[]Pool{good}, Options{HoldLimit: -1}, "hold limit -1"},
		"bad coverage": {[]Pool{good}, Options{Mode: Mode{Coverage: 7}}, "coverage 7"},
	} {
		_, err := New(try.pools, try.o)
		require.ErrorContains(t, err, try.says, name)
	}
}

// TestSequenceAcross32Bits: marks are 64-bit; nothing happens at 2^32.
func TestSequenceAcross32Bits(t *testing.T) {
	c := newCore(t, PerBlock)
	const start = 1<<32 - 2
	require.NoError(t, c.Fired(3, start))
	seq := kv.Seq(start)
	for gen := kv.Generation(1); gen < 6; gen++ {
		h, err := c.Hold(0, []kv.Tenancy{ten(1, gen)})
		require.NoError(t, err)
		id, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, gen), Bytes: kv.WholeBlock}}})
		require.NoError(t, err)
		posts, _ := launchAll(t, c, 3, &seq)
		require.Empty(t, posts, "posted before its zeroing, mark %d, fired", seq)
		require.NoError(t, c.Fired(3, seq))
		posts, _ = launchAll(t, c, 3, &seq)
		require.Equal(t, []Transfer{id}, posts)
		require.NoError(t, c.Posted(id))
		require.NoError(t, c.Finished(id, nil, true))
		require.NoError(t, c.Drop(h))
		require.NoError(t, c.Retire(0, []kv.Tenancy{ten(1, gen)}))
	}
	require.Greater(t, uint64(seq), uint64(1<<32))
	require.ErrorIs(t, c.Fired(3, seq-1), ErrBackwards)
}

// TestMarksFarAhead: a mark that no stream can have reached is refused, and does
// not cost memory.
func TestMarksFarAhead(t *testing.T) {
	c := newCore(t, PerBlock)
	p, err := c.Plan(nil, nil)
	require.NoError(t, err)
	_, _, err = c.Begin(p)
	require.NoError(t, err)
	require.ErrorIs(t, c.Submitted(p, kv.Point{Timeline: 1, Seq: 1 << 40}), ErrInvalid)
	require.ErrorIs(t, c.Submitted(p, kv.Point{Timeline: 1 << 30, Seq: 1}), ErrInvalid)
	require.ErrorIs(t, c.Submitted(p, kv.Point{}), ErrInvalid)
	require.NoError(t, c.Submitted(p, kv.Point{Timeline: 1, Seq: 1}))
}

// TestOpenPlanKeepsBlocks: a step that is planned and not launched has no event
// to wait for, so its blocks do not come back.
func TestOpenPlanKeepsBlocks(t *testing.T) {
	c := newCore(t, PerBlock)
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1), ten(2, 1)})
	require.NoError(t, err)
	p, err := c.Plan([]Holder{h}, nil)
	require.NoError(t, err)
	require.NoError(t, c.Remove(h, 0, []kv.Tenancy{ten(2, 1)}))
	require.NoError(t, c.Drop(h))
	_, err = c.Plan([]Holder{h}, nil)
	require.ErrorIs(t, err, ErrStale)
	require.NoError(t, c.Retire(0, []kv.Tenancy{ten(1, 1), ten(2, 1)}))
	require.Empty(t, c.Reusable(0, nil))
	_, err = c.Hold(0, []kv.Tenancy{ten(1, 2)})
	require.ErrorIs(t, err, ErrQuarantined)

	var seq kv.Seq
	require.NoError(t, c.Prepare(p))
	launchAll(t, c, 9, &seq)
	_, _, err = c.Begin(p)
	require.NoError(t, err)
	require.NoError(t, c.Submitted(p, kv.Point{Timeline: 1, Seq: 1}))
	require.ElementsMatch(t, []kv.Tenancy{ten(1, 1), ten(2, 1)}, c.Reusable(0, nil), "they come back wet")
	info, err := c.Block(0, 2)
	require.NoError(t, err)
	require.True(t, info.Busy)
}

// TestExtraTenancyStaysWithItsPlan: a block that a plan names singly does not
// come back before the plan is closed, and carries its mark.
func TestExtraTenancyStaysWithItsPlan(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	p, err := c.Plan(nil, []Access{{Tenancy: ten(1, 1), Range: kv.WholeBlock}})
	require.NoError(t, err)
	require.NoError(t, c.Drop(h))
	require.NoError(t, c.Retire(0, []kv.Tenancy{ten(1, 1)}))
	require.Empty(t, c.Reusable(0, nil))
	_, _, err = c.Begin(p)
	require.NoError(t, err)
	require.NoError(t, c.Submitted(p, kv.Point{Timeline: 1, Seq: 1}))
	require.Equal(t, []kv.Tenancy{ten(1, 1)}, c.Reusable(0, nil))
	h, err = c.Hold(0, []kv.Tenancy{ten(1, 2)})
	require.NoError(t, err)
	_, err = c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 2), Bytes: kv.WholeBlock}}})
	require.NoError(t, err)
	require.Equal(t, 1, c.Counters().Held, "the step that the plan was for still runs")
}

// TestAccessRanges: no range is the whole block, and bytes that a block does not
// have are refused.
func TestAccessRanges(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	l, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.Range{Off: 90, Len: 10}}}})
	require.NoError(t, err)
	p, err := c.Plan(nil, []Access{{Tenancy: ten(1, 1)}})
	require.NoError(t, err)
	require.ErrorIs(t, c.Prepare(p), ErrLoading)
	for _, r := range []kv.Range{{Off: 1}, {Off: 99, Len: 2}, {Off: 1 << 63, Len: 1 << 63}} {
		_, err = c.Plan(nil, []Access{{Tenancy: ten(1, 1), Range: r}})
		require.ErrorIs(t, err, ErrInvalid, "%v", r)
	}
	require.NoError(t, c.Posted(l))
	require.NoError(t, c.Finished(l, nil, true))
	require.NoError(t, c.Prepare(p))
}

// TestGenerationsWrap: 2^32 tenancies later the numbers start anew, at 1.
func TestGenerationsWrap(t *testing.T) {
	c := newCore(t, PerBlock)
	last := kv.Generation(1<<32 - 1)
	for _, gen := range []kv.Generation{1 << 30, 1 << 31, 3 << 30, last, 1, 2} {
		h, err := c.Hold(0, []kv.Tenancy{ten(1, gen)})
		require.NoError(t, err, "%d", gen)
		require.NoError(t, c.Drop(h))
		require.NoError(t, c.Retire(0, []kv.Tenancy{ten(1, gen)}))
	}
	_, err := c.Hold(0, []kv.Tenancy{ten(1, last)})
	require.ErrorIs(t, err, ErrStale)
}

// TestFailedLaunchIsStillOwed: what was asked for is done before the block is
// used, and it is that which is done.
func TestFailedLaunchIsStillOwed(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "rows", Blocks: 4, BlockBytes: 100})
	ts := []kv.Tenancy{ten(1, 1), ten(2, 1)}
	h, err := c.Hold(0, ts)
	require.NoError(t, err)
	require.NoError(t, c.Zero(ZeroRequest{Filling: Resetting, Tenancies: ts[:1]}))
	require.NoError(t, c.Zero(ZeroRequest{Filling: Zeroing, Tenancies: ts[1:]}))
	for _, a := range c.Actions(nil) {
		require.NoError(t, c.LaunchFailed(a.Launch, kv.Point{}, errors.New("out of memory")))
	}
	p, err := c.Plan([]Holder{h}, nil)
	require.NoError(t, err)
	_, _, err = c.Begin(p)
	require.ErrorIs(t, err, ErrUnready)
	require.NoError(t, c.Prepare(p))
	owed := map[Filling][]kv.Block{}
	for _, a := range c.Actions(nil) {
		l, err := c.Launch(a.Launch)
		require.NoError(t, err)
		owed[l.Filling] = append(owed[l.Filling], l.Blocks...)
	}
	require.Equal(t, map[Filling][]kv.Block{Resetting: {1}, Zeroing: {2}}, owed)
	require.ErrorIs(t, c.Zero(ZeroRequest{Pool: 9}), ErrInvalid)
	require.ErrorIs(t, c.Zero(ZeroRequest{Filling: 7}), ErrInvalid)
}

// TestDryAndWet: blocks whose uses have fired are not in the launch of blocks
// whose uses have not.
func TestDryAndWet(t *testing.T) {
	c := newCore(t, PerBlock)
	var seq kv.Seq
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	require.NoError(t, c.Zero(ZeroRequest{Tenancies: []kv.Tenancy{ten(1, 1)}}))
	launchAll(t, c, 7, &seq)
	p, err := c.Plan([]Holder{h}, nil)
	require.NoError(t, err)
	_, _, err = c.Begin(p)
	require.NoError(t, err)
	require.NoError(t, c.Submitted(p, kv.Point{Timeline: 1, Seq: 1}))
	require.NoError(t, c.Drop(h))
	require.NoError(t, c.Retire(0, []kv.Tenancy{ten(1, 1)}))

	ts := []kv.Tenancy{ten(2, 1), ten(1, 2), ten(3, 1), ten(2, 1)}
	_, err = c.Hold(0, ts[:3])
	require.NoError(t, err)
	require.NoError(t, c.Zero(ZeroRequest{Tenancies: ts}))
	got := map[Where][]kv.Block{}
	for _, a := range c.Actions(nil) {
		l, err := c.Launch(a.Launch)
		require.NoError(t, err)
		got[l.Where] = l.Blocks
		if l.Where == OnBusy {
			require.ElementsMatch(t, []kv.Point{{Timeline: 1, Seq: 1}, {Timeline: 7, Seq: 1}}, l.Waits)
		} else {
			require.Empty(t, l.Waits)
		}
	}
	require.Equal(t, map[Where][]kv.Block{OnIdle: {2, 3}, OnBusy: {1}}, got)
}

// TestWritesBehindAStore: bytes being sent may not be written, bytes behind them
// may.
func TestWritesBehindAStore(t *testing.T) {
	c := newCore(t, PerBlock)
	var seq kv.Seq
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	sent := kv.Range{Off: 0, Len: 40}
	s, err := c.Transfer(TransferRequest{Kind: Store, Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: sent}}})
	require.NoError(t, err)
	launchAll(t, c, 7, &seq)
	require.NoError(t, c.Fired(7, seq))
	posts, _ := launchAll(t, c, 7, &seq)
	require.Equal(t, []Transfer{s}, posts)

	inside, err := c.Plan([]Holder{h}, []Access{{Tenancy: ten(1, 1), Range: kv.Range{Off: 39, Len: 2}, Write: true}})
	require.NoError(t, err)
	require.ErrorIs(t, c.Prepare(inside), ErrSending)
	behind, err := c.Plan([]Holder{h}, []Access{{Tenancy: ten(1, 1), Range: kv.Range{Off: 40, Len: 60}, Write: true}})
	require.NoError(t, err)
	require.NoError(t, c.Prepare(behind))
	read, err := c.Plan(nil, []Access{{Tenancy: ten(1, 1), Range: kv.WholeBlock}})
	require.NoError(t, err)
	require.NoError(t, c.Prepare(read))
	require.NoError(t, c.Posted(s))
	require.NoError(t, c.Finished(s, nil, true))
	require.NoError(t, c.Prepare(inside))
}

// TestStoreWaitsForThePlanBeforeIt: the step that fills a block was planned
// before the store, and is launched after it.
func TestStoreWaitsForThePlanBeforeIt(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	p, err := c.Plan([]Holder{h}, []Access{{Tenancy: ten(1, 1), Range: kv.WholeBlock, Write: true}})
	require.NoError(t, err)
	s, err := c.Transfer(TransferRequest{Kind: Store, Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.WholeBlock}}})
	require.NoError(t, err)
	why, err := c.Reason(s)
	require.NoError(t, err)
	require.Contains(t, why, "to be submitted")
	require.NoError(t, c.Prepare(p), "the store waits for this very step")
	_, _, err = c.Begin(p)
	require.NoError(t, err)
	require.NoError(t, c.Submitted(p, kv.Point{Timeline: 1, Seq: 1}))
	require.False(t, c.Pending())
	require.NoError(t, c.Fired(1, 1))
	require.Equal(t, []Action{{Kind: DoPost, Transfer: s, Holder: h}}, c.Actions(nil))
}

// TestFailureReachesEveryHolderOnce, with the cause, and is repaired by a load
// that brings the missing bytes.
func TestFailureReachesEveryHolderOnce(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	ts := []kv.Tenancy{ten(1, 1), ten(2, 1)}
	h1, err := c.Hold(0, ts)
	require.NoError(t, err)
	h2, err := c.Hold(0, ts)
	require.NoError(t, err)
	half := kv.Range{Off: 50, Len: 50}
	r := TransferRequest{Holder: h1, Pieces: []Piece{{Tenancy: ts[0], Bytes: kv.WholeBlock}, {Tenancy: ts[1], Bytes: half}}}
	l, err := c.Transfer(r)
	require.NoError(t, err)
	cause := errors.New("gone")
	require.NoError(t, c.PostFailed(l, cause, true))
	told := map[Holder]int{}
	for _, a := range c.Actions(nil) {
		if a.Kind == TellFailed {
			require.ErrorIs(t, a.Err, cause)
			told[a.Holder]++
		}
	}
	require.Equal(t, map[Holder]int{h1: 1, h2: 1}, told)
	p, err := c.Plan([]Holder{h2}, nil)
	require.NoError(t, err)
	err = c.Prepare(p)
	require.ErrorIs(t, err, ErrLost)
	require.ErrorIs(t, err, cause)

	// A load of other bytes does not repair it; one that brings them does.
	for i, pieces := range [][]Piece{
		{{Tenancy: ts[0], Bytes: kv.WholeBlock}, {Tenancy: ts[1], Bytes: kv.Range{Off: 0, Len: 99}}},
		{{Tenancy: ts[1], Bytes: kv.Range{Off: 40, Len: 60}}},
	} {
		again, err := c.Transfer(TransferRequest{Holder: h1, Pieces: pieces})
		require.NoError(t, err)
		require.ErrorIs(t, c.Prepare(p), ErrLoading)
		require.NoError(t, c.Posted(again))
		require.NoError(t, c.Finished(again, nil, true))
		if i == 0 {
			require.ErrorIs(t, c.Prepare(p), ErrLost)
		} else {
			require.NoError(t, c.Prepare(p))
		}
	}
}

// TestStepOrder: in StepFIFO a step whose blocks are ready waits behind one whose
// blocks are not, and both are looked at when a step ends and at no other time.
func TestStepOrder(t *testing.T) {
	c := newCore(t, StepFIFO)
	var seq, other kv.Seq
	ready, late := []kv.Tenancy{ten(1, 1)}, []kv.Tenancy{ten(2, 1)}
	h, err := c.Hold(0, append(late, ready...))
	require.NoError(t, err)
	require.NoError(t, c.Zero(ZeroRequest{Tenancies: ready}))
	launchAll(t, c, 8, &other)
	require.NoError(t, c.Fired(8, other))
	c.EndStep()

	first, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: late[0], Bytes: kv.WholeBlock}}})
	require.NoError(t, err)
	launchAll(t, c, 7, &seq)
	c.EndStep()
	second, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ready[0], Bytes: kv.WholeBlock}}})
	require.NoError(t, err)
	c.EndStep()
	require.False(t, c.Pending(), "the second step does not overtake the first")
	require.NoError(t, c.Fired(7, seq))
	require.False(t, c.Pending(), "nothing leaves between steps")
	c.EndStep()
	posts, _ := launchAll(t, c, 7, &seq)
	require.Equal(t, []Transfer{first, second}, posts)
}

// TestOverdue: age is reported, once, and frees nothing.
func TestOverdue(t *testing.T) {
	c, err := New([]Pool{{Blocks: 8, BlockBytes: 1, NeedsZero: true, Foreign: true}}, Options{Mode: PerBlock, HoldLimit: 100})
	require.NoError(t, err)
	var seq kv.Seq
	var ids []Transfer
	for i := range kv.Block(3) {
		require.NoError(t, c.Tick(kv.Instant(10*i)))
		h, err := c.Hold(0, []kv.Tenancy{ten(i, 1)})
		require.NoError(t, err)
		id, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(i, 1), Bytes: kv.WholeBlock}}})
		require.NoError(t, err)
		launchAll(t, c, 7, &seq)
		ids = append(ids, id)
	}
	require.Equal(t, kv.Instant(100), c.Deadline())
	withdrawn, err := c.Cancel(ids[0])
	require.NoError(t, err)
	require.True(t, withdrawn)
	c.Actions(nil)
	require.Equal(t, kv.Instant(110), c.Deadline())
	require.NoError(t, c.Tick(109))
	require.False(t, c.Pending())
	require.NoError(t, c.Tick(115))
	acts := c.Actions(nil)
	require.Len(t, acts, 1)
	require.Equal(t, ids[1], acts[0].Transfer)
	require.ErrorContains(t, acts[0].Err, "fence t7@2")
	require.Equal(t, kv.Instant(120), c.Deadline())
	require.Equal(t, Held, c.TransferState(ids[1]))
	require.NoError(t, c.Tick(1000))
	require.Len(t, c.Actions(nil), 1)
	require.Equal(t, kv.Never, c.Deadline())
	require.ErrorIs(t, c.Tick(999), ErrBackwards)
}

// TestPoisonThenProof: a transfer that failed without proof keeps its blocks
// until success is told after all.
func TestPoisonThenProof(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	l, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.Range{Off: 0, Len: 1}}}})
	require.NoError(t, err)
	require.NoError(t, c.Posted(l))
	require.NoError(t, c.PeerLost(0, errors.New("reset")))
	require.Equal(t, Poisoned, c.TransferState(l))
	_, err = c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.WholeBlock}}})
	require.ErrorIs(t, err, ErrPoisoned)
	require.NoError(t, c.Drop(h))
	require.NoError(t, c.Retire(0, []kv.Tenancy{ten(1, 1)}))
	require.Empty(t, c.Reusable(0, nil))
	require.Equal(t, []kv.Tenancy{ten(1, 1)}, c.Poisoned(0, nil))
	require.NoError(t, c.Finished(l, errors.New("not found"), false), "no news")
	require.Empty(t, c.Reusable(0, nil))
	require.NoError(t, c.Finished(l, nil, true))
	require.Equal(t, []kv.Tenancy{ten(1, 1)}, c.Reusable(0, nil))
	require.Zero(t, c.Counters().Poisoned)
}

// TestPartOfALaunch: a launch of which a part is in the stream leaves its blocks
// dirty, and whoever comes next waits for the part.
func TestPartOfALaunch(t *testing.T) {
	c := newCore(t, PerBlock)
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	l, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.WholeBlock}}})
	require.NoError(t, err)
	acts := c.Actions(nil)
	require.Len(t, acts, 1)
	cause := errors.New("out of resources")
	require.ErrorIs(t, c.LaunchFailed(acts[0].Launch, kv.Point{}, nil), ErrInvalid)
	require.NoError(t, c.LaunchFailed(acts[0].Launch, kv.Point{Timeline: 7, Seq: 1}, cause))
	require.Equal(t, Over, c.TransferState(l))
	info, err := c.Block(0, 1)
	require.NoError(t, err)
	require.True(t, info.Dirty && info.Busy && info.Lost)
	c.Actions(nil)
	require.NoError(t, c.Zero(ZeroRequest{Tenancies: []kv.Tenancy{ten(1, 1)}}))
	ln, err := c.Launch(c.Actions(nil)[0].Launch)
	require.NoError(t, err)
	require.Equal(t, OnBusy, ln.Where)
	require.Equal(t, []kv.Point{{Timeline: 7, Seq: 1}}, ln.Waits)
}

// TestHostileInput feeds every method with garbage: errors, no panic, and what
// is there stays as it is.
func TestHostileInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		mode := rapid.SampledFrom(Modes()).Draw(t, "mode")
		c, err := New([]Pool{{Blocks: 4, BlockBytes: 8, HasNull: true, NeedsZero: true, Foreign: true},
			{Blocks: 3, BlockBytes: 2, Groups: []Group{{NeedsFill: true, Bytes: []kv.Range{{Len: 1}}}, {Filling: Resetting, NeedsFill: true}}}},
			Options{Mode: mode, HoldLimit: 5})
		if err != nil {
			t.Fatal(err)
		}
		number := rapid.OneOf(rapid.Uint64Range(0, 4), rapid.Uint64Range(1<<32, 1<<32+4), rapid.Uint64())
		tenancy := rapid.Custom(func(t *rapid.T) kv.Tenancy {
			return kv.Tenancy{Block: kv.Block(rapid.Int32Range(-2, 5).Draw(t, "block")),
				Generation: kv.Generation(rapid.Uint32Range(0, 3).Draw(t, "gen"))}
		})
		tenancies := rapid.SliceOfN(tenancy, 0, 4)
		pool := rapid.Custom(func(t *rapid.T) kv.PoolID { return kv.PoolID(rapid.Uint16Range(0, 3).Draw(t, "pool")) })
		group := rapid.Custom(func(t *rapid.T) kv.Group { return kv.Group(rapid.Uint16Range(0, 3).Draw(t, "group")) })
		bytes := rapid.Custom(func(t *rapid.T) kv.Range { return kv.Range{Off: number.Draw(t, "off"), Len: number.Draw(t, "len")} })
		point := rapid.Custom(func(t *rapid.T) kv.Point {
			return kv.Point{Timeline: kv.Timeline(number.Draw(t, "timeline")), Seq: kv.Seq(number.Draw(t, "seq"))}
		})
		cause := rapid.SampledFrom([]error{nil, errors.New("cause")})
		t.Repeat(map[string]func(*rapid.T){
			"hold": func(t *rapid.T) { _, _ = c.Hold(group.Draw(t, "g"), tenancies.Draw(t, "ts")) },
			"append": func(t *rapid.T) {
				_ = c.Append(Holder(number.Draw(t, "h")), group.Draw(t, "g"), tenancies.Draw(t, "ts"))
			},
			"alloc": func(t *rapid.T) {
				want := Want{group.Draw(t, "g"), rapid.IntRange(-1, 4).Draw(t, "n")}
				_, _ = c.Alloc([]Want{want, {Group: want.Group}}, nil)
			},
			"ref":  func(t *rapid.T) { _ = c.Ref(pool.Draw(t, "p"), tenancies.Draw(t, "ts")) },
			"free": func(t *rapid.T) { _ = c.Free(pool.Draw(t, "p"), tenancies.Draw(t, "ts")) },
			"remove": func(t *rapid.T) {
				_ = c.Remove(Holder(number.Draw(t, "h")), pool.Draw(t, "p"), tenancies.Draw(t, "ts"))
			},
			"drop":   func(t *rapid.T) { _ = c.Drop(Holder(number.Draw(t, "h"))) },
			"retire": func(t *rapid.T) { _ = c.Retire(pool.Draw(t, "p"), tenancies.Draw(t, "ts")) },
			"zero": func(t *rapid.T) {
				_ = c.Zero(ZeroRequest{Pool: pool.Draw(t, "p"), Tenancies: tenancies.Draw(t, "ts"), Covered: rapid.Bool().Draw(t, "c")})
			},
			"plan": func(t *rapid.T) {
				a := Access{Pool: pool.Draw(t, "p"), Tenancy: tenancy.Draw(t, "t"), Range: bytes.Draw(t, "r"), Write: true}
				_, _ = c.Plan([]Holder{Holder(number.Draw(t, "h"))}, []Access{a})
				_, _ = c.Plan(nil, []Access{a})
			},
			"submit": func(t *rapid.T) {
				p := Plan(number.Draw(t, "plan"))
				_ = c.Prepare(p)
				_, _, _ = c.Begin(p)
				_ = c.Submitted(p, point.Draw(t, "mark"))
				_ = c.GiveUp(p)
			},
			"transfer": func(t *rapid.T) {
				_, _ = c.Transfer(TransferRequest{Kind: Kind(rapid.Uint8Range(0, 3).Draw(t, "kind")), Holder: Holder(number.Draw(t, "h")),
					Pieces: []Piece{{Pool: pool.Draw(t, "p"), Tenancy: tenancy.Draw(t, "t"), Bytes: bytes.Draw(t, "r")},
						{Pool: pool.Draw(t, "p"), Tenancy: tenancy.Draw(t, "t"), Bytes: kv.WholeBlock}}})
			},
			"result": func(t *rapid.T) {
				id := Transfer(number.Draw(t, "id"))
				switch rapid.IntRange(0, 5).Draw(t, "which") {
				case 0:
					_ = c.Posted(id)
				case 1:
					_ = c.PostFailed(id, cause.Draw(t, "cause"), rapid.Bool().Draw(t, "quiet"))
				case 2:
					_ = c.Finished(id, cause.Draw(t, "cause"), rapid.Bool().Draw(t, "quiet"))
				case 3:
					_, _ = c.Cancel(id)
				case 4:
					_ = c.Forget(id)
					_ = c.Hurry(id)
				case 5:
					_, _ = c.Reason(id)
				}
			},
			"launch": func(t *rapid.T) {
				id := LaunchID(rapid.Int32Range(-1, 3).Draw(t, "launch"))
				if rapid.Bool().Draw(t, "ok") {
					_ = c.Launched(id, point.Draw(t, "mark"))
				} else {
					_ = c.LaunchFailed(id, point.Draw(t, "mark"), cause.Draw(t, "cause"))
				}
			},
			"fired": func(t *rapid.T) {
				_ = c.Fired(kv.Timeline(rapid.Uint32Range(0, 3).Draw(t, "tl")), kv.Seq(number.Draw(t, "seq")))
			},
			"tick": func(t *rapid.T) { _ = c.Tick(kv.Instant(number.Draw(t, "now"))) },
			"ask": func(t *rapid.T) {
				_, _ = c.Block(pool.Draw(t, "p"), kv.Block(rapid.Int32().Draw(t, "b")))
				_, _ = c.Uses(pool.Draw(t, "p"), tenancies.Draw(t, "ts"))
				_ = c.Poisoned(pool.Draw(t, "p"), nil)
				_ = c.Generation(pool.Draw(t, "p"), kv.Block(rapid.Int32().Draw(t, "b")))
				_ = c.Reusable(pool.Draw(t, "p"), nil)
				_ = c.Refs(pool.Draw(t, "p"), tenancy.Draw(t, "t"))
				_ = c.PoolCounters(pool.Draw(t, "p"))
				_ = c.Actions(nil)
				c.EndStep()
				_ = c.Deadline()
			},
			"lost": func(t *rapid.T) { _ = c.PeerLost(Peer(number.Draw(t, "peer")), cause.Draw(t, "cause")) },
		})
		n := c.Counters()
		if n.Held < 0 || n.InFlight < 0 || n.Poisoned < 0 {
			t.Fatal(fmt.Sprintf("%+v", n))
		}
	})
}
