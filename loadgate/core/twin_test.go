package core

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/kvgate/kvgate/memory/kv"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// twin is the plain account of what touches which block: lists and maps, every
// access ever made, nothing shared or counted. The core's outputs are checked
// against it.
type twin struct {
	t    *rapid.T
	c    *Core
	mode Mode

	gen     []kv.Generation
	free    []kv.Block
	touches map[kv.Block][]kv.Point // every step and zeroing on the block, by mark
	done    map[kv.Timeline]kv.Seq
	issued  map[kv.Timeline]kv.Seq

	holders   map[Holder]map[kv.Tenancy]bool
	plans     map[Plan]*twinPlan
	transfers map[Transfer]*twinTransfer
	live      map[kv.Tenancy]bool
	retired   map[kv.Tenancy]bool
	dirty     map[kv.Tenancy]bool // neither zeroed nor overwritten in this tenancy
	zeroMark  map[kv.Tenancy][]kv.Point
	dead      bool
	steady    bool // no launch fails
}

type twinPlan struct {
	blocks  map[kv.Tenancy]bool
	holders []Holder
}

type twinTransfer struct {
	kind   Kind
	pieces []Piece
	state  string // held, posting, posted, poisoned
	told   bool
}

const (
	tlCompute kv.Timeline = 1
	tlCopy    kv.Timeline = 2
	tlDry     kv.Timeline = 3
	tlWet     kv.Timeline = 4

	twinBlocks = 8
	twinBytes  = 64
)

func newTwin(t *rapid.T, mode Mode) *twin {
	c, err := New([]Pool{{Name: "kv", Blocks: twinBlocks, BlockBytes: twinBytes, HasNull: true, NeedsZero: true, Foreign: true}}, Options{Mode: mode})
	require.NoError(t, err)
	w := &twin{t: t, c: c, mode: mode,
		gen: make([]kv.Generation, twinBlocks), touches: map[kv.Block][]kv.Point{},
		done: map[kv.Timeline]kv.Seq{}, issued: map[kv.Timeline]kv.Seq{},
		holders: map[Holder]map[kv.Tenancy]bool{}, plans: map[Plan]*twinPlan{},
		transfers: map[Transfer]*twinTransfer{}, live: map[kv.Tenancy]bool{}, retired: map[kv.Tenancy]bool{},
		dirty: map[kv.Tenancy]bool{}, zeroMark: map[kv.Tenancy][]kv.Point{},
	}
	for b := range kv.Block(twinBlocks - 1) {
		w.free = append(w.free, b+1)
	}
	return w
}

func (w *twin) fired(p kv.Point) bool { return p.Seq <= w.done[p.Timeline] }

func (w *twin) unfired(b kv.Block) (out []kv.Point) {
	for _, p := range w.touches[b] {
		if !w.fired(p) {
			out = append(out, p)
		}
	}
	return out
}

// covered reports whether waiting for points implies that p has fired.
func covered(p kv.Point, points []kv.Point) bool {
	return slices.ContainsFunc(points, func(o kv.Point) bool { return o.Timeline == p.Timeline && o.Seq >= p.Seq })
}

func pick[K comparable, V any](t *rapid.T, m map[K]V, what string, less func(a, b K) int) (K, bool) {
	var keys []K
	for k := range m {
		keys = append(keys, k)
	}
	var zero K
	if len(keys) == 0 {
		return zero, false
	}
	slices.SortFunc(keys, less)
	return keys[rapid.IntRange(0, len(keys)-1).Draw(t, what)], true
}

func byNumber[K ~uint64](a, b K) int { return int(int64(a) - int64(b)) }

func byBlock(a, b kv.Tenancy) int { return int(a.Block) - int(b.Block) }

func (w *twin) mark(tl kv.Timeline) kv.Point {
	w.issued[tl]++
	return kv.Point{Timeline: tl, Seq: w.issued[tl]}
}

// actions carries out what the core asks for and checks each against the twin.
func (w *twin) actions() {
	t := w.t
	for w.c.Pending() {
		for _, a := range w.c.Actions(nil) {
			switch a.Kind {
			case DoLaunch:
				w.launch(a)
			case DoPost:
				require.False(t, w.dead, "posted after death")
				tr := w.transfers[a.Transfer]
				if tr == nil { // the transfer leaves before its handle is known
					tr = &twinTransfer{}
					w.transfers[a.Transfer] = tr
				}
				tr.state = "posting"
			case TellDone:
				tr := w.transfers[a.Transfer]
				if tr == nil {
					tr = &twinTransfer{}
					w.transfers[a.Transfer] = tr
				}
				require.False(t, tr.told, "told twice: %v", a.Transfer)
				tr.told = true
				if tr.state == "held" {
					tr.state = "" // ended before it left
				}
			}
		}
	}
}

func (w *twin) launch(a Action) {
	t := w.t
	l, err := w.c.Launch(a.Launch)
	require.NoError(t, err)
	require.NotEmpty(t, l.Blocks)
	seen := map[kv.Block]bool{}
	for _, b := range l.Blocks {
		require.False(t, seen[b], "block %d twice in one launch", b)
		seen[b] = true
		for id, tr := range w.transfers {
			for _, p := range tr.pieces {
				require.False(t, p.Tenancy.Block == b && tr.state != "held", "%v touches block %d that is being zeroed", id, b)
			}
		}
		for _, p := range w.unfired(b) {
			require.True(t, covered(p, l.Waits), "zeroing of block %d does not wait for %v", b, p)
		}
	}
	if !w.steady && rapid.IntRange(0, 7).Draw(t, "launch fails") == 0 {
		require.NoError(t, w.c.LaunchFailed(a.Launch, kv.Point{}, errors.New("no resources")))
		for _, b := range l.Blocks {
			ten := kv.Tenancy{Block: b, Generation: w.gen[b]}
			w.dirty[ten] = true
			for id, tr := range w.transfers {
				for _, p := range tr.pieces {
					require.False(t, p.Tenancy == ten && w.c.TransferState(id) == Held, "%v is held for zeroing that failed", id)
				}
			}
		}
		return
	}
	tl := tlCompute
	switch l.Where {
	case OnIdle:
		tl = tlDry
		if w.mode.Place == IdleBusy {
			require.Empty(t, l.Waits, "a dry launch waits")
		}
	case OnBusy:
		tl = tlWet
	}
	m := w.mark(tl)
	for _, b := range l.Blocks {
		w.touches[b] = append(w.touches[b], m)
		ten := kv.Tenancy{Block: b, Generation: w.gen[b]}
		w.dirty[ten] = false
		w.zeroMark[ten] = append(w.zeroMark[ten], m)
	}
	require.NoError(t, w.c.Launched(a.Launch, m))
}

// checkPosts looks at the transfers that have just left.
func (w *twin) checkPosts() {
	t := w.t
	for id, tr := range w.transfers {
		if tr.state != "posting" {
			continue
		}
		if !w.mode.Gated() {
			continue
		}
		for _, p := range tr.pieces {
			for other, o := range w.transfers {
				if other == id || o.state == "held" || o.state == "" || tr.kind == Store && o.kind == Store {
					continue
				}
				for _, q := range o.pieces {
					require.False(t, q.Tenancy.Block == p.Tenancy.Block && q.Bytes.Overlaps(p.Bytes),
						"%v and %v are both under way on block %d", id, other, p.Tenancy.Block)
				}
			}
		}
	}
}

func (w *twin) step(f func(t *rapid.T)) func(t *rapid.T) {
	return func(t *rapid.T) {
		w.t = t
		f(t)
		w.actions()
		w.checkPosts()
		for id, tr := range w.transfers {
			if tr.told && tr.state != "posting" && tr.state != "posted" && tr.state != "poisoned" {
				delete(w.transfers, id)
			}
		}
		w.pool()
	}
}

func (w *twin) pool() {
	for _, r := range w.c.Reusable(0, nil) {
		require.True(w.t, w.retired[r], "%v came back without being retired", r)
		delete(w.retired, r)
		for id, p := range w.plans {
			require.False(w.t, p.blocks[r], "%v came back while %v is open", r, id)
		}
		for id, tr := range w.transfers {
			for _, p := range tr.pieces {
				require.NotEqual(w.t, r, p.Tenancy, "%v came back while %v is %s", r, id, tr.state)
			}
		}
		w.free = append(w.free, r.Block)
	}
}

func (w *twin) alloc(t *rapid.T) (out []kv.Tenancy) {
	n := rapid.IntRange(0, min(3, len(w.free))).Draw(t, "blocks")
	for range n {
		b := w.free[0]
		w.free = w.free[1:]
		w.gen[b]++
		ten := kv.Tenancy{Block: b, Generation: w.gen[b]}
		w.live[ten], w.dirty[ten] = true, true
		out = append(out, ten)
	}
	return out
}

func (w *twin) holderBlocks(h Holder) []kv.Tenancy {
	var out []kv.Tenancy
	for ten := range w.holders[h] {
		out = append(out, ten)
	}
	slices.SortFunc(out, byBlock)
	return out
}

func (w *twin) hold(t *rapid.T) {
	ts := w.alloc(t)
	// Some blocks may be shared with a holder that is there.
	if h, ok := pick(t, w.holders, "share", byNumber[Holder]); ok && rapid.Bool().Draw(t, "shared") {
		for _, ten := range w.holderBlocks(h) {
			if rapid.Bool().Draw(t, "this") {
				ts = append(ts, ten)
			}
		}
	}
	h, err := w.c.Hold(0, ts)
	if w.dead {
		require.ErrorIs(t, err, ErrDead)
		return
	}
	require.NoError(t, err)
	w.holders[h] = map[kv.Tenancy]bool{}
	for _, ten := range ts {
		w.holders[h][ten] = true
	}
}

func (w *twin) append(t *rapid.T) {
	h, ok := pick(t, w.holders, "holder", byNumber[Holder])
	if !ok || w.dead {
		return
	}
	ts := w.alloc(t)
	require.NoError(t, w.c.Append(h, 0, ts))
	for _, ten := range ts {
		w.holders[h][ten] = true
		for _, p := range w.plans {
			if slices.Contains(p.holders, h) {
				p.blocks[ten] = true
			}
		}
	}
}

func (w *twin) drop(t *rapid.T) {
	h, ok := pick(t, w.holders, "holder", byNumber[Holder])
	if !ok {
		return
	}
	ts := w.holderBlocks(h)
	if rapid.Bool().Draw(t, "some") {
		ts = ts[:len(ts)/2]
		require.NoError(t, w.c.Remove(h, 0, ts))
		for _, ten := range ts {
			delete(w.holders[h], ten)
		}
	} else {
		require.NoError(t, w.c.Drop(h))
		require.ErrorIs(t, w.c.Drop(h), ErrStale)
		delete(w.holders, h)
	}
	for _, ten := range ts {
		held := false
		for _, o := range w.holders {
			held = held || o[ten]
		}
		if held {
			require.ErrorIs(t, w.c.Retire(0, []kv.Tenancy{ten}), ErrHeld)
			continue
		}
		require.NoError(t, w.c.Retire(0, []kv.Tenancy{ten}))
		require.ErrorIs(t, w.c.Retire(0, []kv.Tenancy{ten}), ErrFreed)
		delete(w.live, ten)
		w.retired[ten] = true
	}
}

func (w *twin) zero(t *rapid.T) {
	h, ok := pick(t, w.holders, "holder", byNumber[Holder])
	if !ok || w.dead {
		return
	}
	ts := w.holderBlocks(h)
	ts = append(ts, ts...)
	ts = append(ts, kv.Tenancy{Block: kv.Pad})
	busy := false
	for _, tr := range w.transfers {
		for _, p := range tr.pieces {
			busy = busy || w.holders[h][p.Tenancy]
		}
	}
	left := rapid.Bool().Draw(t, "covered")
	err := w.c.Zero(ZeroRequest{Tenancies: ts, Covered: left})
	if busy {
		require.ErrorIs(t, err, ErrTransfer)
		return
	}
	require.NoError(t, err)
	if left && w.mode.Coverage == ZeroUncovered {
		for ten := range w.holders[h] { // owed until a load has brought it all
			w.dirty[ten] = true
		}
	}
}

func (w *twin) plan(t *rapid.T) {
	if w.dead {
		return
	}
	var hs []Holder
	p := &twinPlan{blocks: map[kv.Tenancy]bool{}}
	for h := range w.holders {
		hs = append(hs, h)
	}
	slices.SortFunc(hs, byNumber[Holder])
	hs = slices.DeleteFunc(hs, func(Holder) bool { return !rapid.Bool().Draw(t, "planned") })
	for _, h := range hs {
		for _, ten := range w.holderBlocks(h) {
			p.blocks[ten] = true
		}
	}
	p.holders = hs
	id, err := w.c.Plan(hs, nil)
	require.NoError(t, err)
	w.plans[id] = p
}

func (w *twin) submit(t *rapid.T) {
	id, ok := pick(t, w.plans, "plan", byNumber[Plan])
	if !ok {
		return
	}
	p := w.plans[id]
	if rapid.IntRange(0, 4).Draw(t, "give up") == 0 {
		require.NoError(t, w.c.GiveUp(id))
		delete(w.plans, id)
		return
	}
	for _, h := range p.holders {
		for ten := range w.holders[h] {
			p.blocks[ten] = true
		}
	}
	loading, sending := false, false
	for _, tr := range w.transfers {
		for _, q := range tr.pieces {
			sending = sending || p.blocks[q.Tenancy] && w.dirty[q.Tenancy]
			loading = loading || tr.kind == Load && !tr.told && p.blocks[q.Tenancy]
		}
	}
	err := w.c.Prepare(id)
	switch {
	case w.dead:
		require.ErrorIs(t, err, ErrDead)
		return
	case errors.Is(err, ErrLost):
		return // the twin does not follow what arrived
	case loading:
		require.ErrorIs(t, err, ErrLoading)
		return
	case sending:
		require.ErrorIs(t, err, ErrSending)
		return
	}
	require.NoError(t, err)
	w.steady = true
	w.actions()
	w.steady = false
	waits, launches, err := w.c.Begin(id)
	require.NoError(t, err)
	require.Empty(t, launches, "all launches were carried out")
	for ten := range p.blocks {
		require.False(t, w.dirty[ten], "%v is used dirty", ten)
		for _, m := range w.zeroMark[ten] {
			require.True(t, w.fired(m) || covered(m, waits), "the step does not wait for the zeroing %v of %v", m, ten)
		}
	}
	tl := rapid.SampledFrom([]kv.Timeline{tlCompute, tlCopy}).Draw(t, "stream")
	m := w.mark(tl)
	require.NoError(t, w.c.Submitted(id, m))
	require.ErrorIs(t, w.c.Submitted(id, m), ErrStale)
	for ten := range p.blocks {
		w.touches[ten.Block] = append(w.touches[ten.Block], m)
	}
	delete(w.plans, id)
}

func (w *twin) transfer(t *rapid.T) {
	h, ok := pick(t, w.holders, "holder", byNumber[Holder])
	if !ok || w.dead {
		return
	}
	tr := &twinTransfer{kind: rapid.SampledFrom([]Kind{Load, Load, Store}).Draw(t, "kind"), state: "held"}
	for _, ten := range w.holderBlocks(h) {
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			tr.pieces = append(tr.pieces, Piece{Tenancy: ten, Bytes: kv.WholeBlock})
		case 1:
			tr.pieces = append(tr.pieces, Piece{Tenancy: ten, Bytes: kv.Range{Off: 0, Len: twinBytes / 2}})
		case 2:
			tr.pieces = append(tr.pieces, Piece{Tenancy: ten, Bytes: kv.Range{Off: twinBytes / 2, Len: twinBytes / 2}},
				Piece{Tenancy: ten, Bytes: kv.Range{Off: 0, Len: twinBytes / 2}})
		}
	}
	whole := map[kv.Tenancy]uint64{}
	for _, p := range tr.pieces {
		whole[p.Tenancy] += min(p.Bytes.Len, twinBytes)
	}
	shared := map[kv.Tenancy]bool{} // with a transfer that is there already
	for _, o := range w.transfers {
		for _, p := range o.pieces {
			shared[p.Tenancy] = true
		}
	}
	before := map[kv.Tenancy][]kv.Point{}
	for _, p := range tr.pieces {
		before[p.Tenancy] = w.unfired(p.Tenancy.Block)
	}
	id, err := w.c.Transfer(TransferRequest{Kind: tr.kind, Holder: h, Pieces: tr.pieces})
	if len(tr.pieces) == 0 {
		require.ErrorIs(t, err, ErrInvalid)
		return
	}
	if errors.Is(err, ErrPoisoned) || tr.kind == Store && errors.Is(err, ErrLost) {
		return
	}
	require.NoError(t, err)
	w.transfers[id] = tr
	w.actions()
	if tr.kind == Load && w.mode.Gated() && !tr.told {
		for ten := range whole {
			if w.dirty[ten] && !shared[ten] {
				require.True(t, w.mode.Coverage == ZeroUncovered && whole[ten] == twinBytes, "%v is loaded into dirty", ten)
			}
		}
	}
	if tr.kind == Load && w.mode.Gated() || tr.kind == Store {
		for ten := range whole {
			if tr.state == "posting" {
				require.Empty(t, before[ten], "%v was posted before earlier uses fired", id)
			}
		}
	}
}

// fire lets a stream get further, and checks what leaves at that moment.
func (w *twin) fire(t *rapid.T) {
	tl := rapid.SampledFrom([]kv.Timeline{tlCompute, tlCopy, tlDry, tlWet}).Draw(t, "timeline")
	if w.issued[tl] == w.done[tl] {
		return
	}
	seq := kv.Seq(rapid.Uint64Range(uint64(w.done[tl])+1, uint64(w.issued[tl])).Draw(t, "seq"))
	held := map[Transfer]bool{}
	for id, tr := range w.transfers {
		held[id] = tr.state == "held"
	}
	w.done[tl] = seq
	require.NoError(t, w.c.Fired(tl, seq))
	w.actions()
	for id, tr := range w.transfers {
		if held[id] && tr.state == "posting" && (w.mode.Gated() || tr.kind == Store) {
			for _, p := range tr.pieces {
				for _, m := range w.zeroMark[p.Tenancy] {
					require.True(t, w.fired(m), "%v left before the zeroing %v of %v", id, m, p.Tenancy)
				}
			}
		}
	}
}

func (w *twin) result(t *rapid.T) {
	id, ok := pick(t, w.transfers, "transfer", byNumber[Transfer])
	if !ok {
		return
	}
	tr := w.transfers[id]
	cause := errors.New("transport")
	switch tr.state {
	case "held":
		require.ErrorIs(t, w.c.Posted(id), ErrState)
		require.ErrorIs(t, w.c.Finished(id, nil, true), ErrState)
	case "posting":
		switch rapid.IntRange(0, 4).Draw(t, "result") {
		case 0:
			require.NoError(t, w.c.PostFailed(id, cause, true))
			tr.state = ""
		case 1:
			require.NoError(t, w.c.PostFailed(id, cause, false))
			tr.state = "poisoned"
		default:
			require.NoError(t, w.c.Posted(id))
			tr.state = "posted"
			if w.dead {
				tr.state = "poisoned"
			}
		}
	case "posted", "poisoned":
		switch rapid.IntRange(0, 3).Draw(t, "result") {
		case 0:
			require.NoError(t, w.c.Finished(id, cause, false))
			tr.state = "poisoned"
		default:
			require.NoError(t, w.c.Finished(id, nil, true))
			if tr.state == "posted" && !tr.told && tr.kind == Load {
				for _, p := range tr.pieces {
					w.arrived(tr, p.Tenancy)
				}
			}
			tr.state = ""
		}
	}
}

func (w *twin) arrived(tr *twinTransfer, ten kv.Tenancy) {
	var n uint64
	for _, p := range tr.pieces {
		if p.Tenancy == ten {
			n += min(p.Bytes.Len, twinBytes)
		}
	}
	if n == twinBytes || !w.mode.Gated() {
		w.dirty[ten] = false
	}
}

func (w *twin) cancel(t *rapid.T) {
	id, ok := pick(t, w.transfers, "transfer", byNumber[Transfer])
	if !ok {
		return
	}
	tr := w.transfers[id]
	withdrawn, err := w.c.Cancel(id)
	if tr.told {
		require.ErrorIs(t, err, ErrState)
		return
	}
	require.NoError(t, err)
	require.Equal(t, tr.state == "held", withdrawn)
	if withdrawn {
		tr.state = ""
	}
}

func (w *twin) die(t *rapid.T) {
	if w.dead || rapid.IntRange(0, 30).Draw(t, "die") != 0 {
		return
	}
	w.dead = true
	w.c.Die(errors.New("sticky"))
	w.actions()
	for _, tr := range w.transfers {
		switch tr.state {
		case "held":
			require.True(t, tr.told, "a held transfer was not told of the death")
			tr.state = ""
		case "posted":
			require.True(t, tr.told)
			tr.state = "poisoned"
		}
	}
}

// TestTwin runs random programs against the core and holds every output
// against the plain account.
func TestTwin(t *testing.T) {
	for _, mode := range Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				w := newTwin(t, mode)
				t.Repeat(map[string]func(*rapid.T){
					"hold":     w.step(w.hold),
					"append":   w.step(w.append),
					"drop":     w.step(w.drop),
					"zero":     w.step(w.zero),
					"plan":     w.step(w.plan),
					"submit":   w.step(w.submit),
					"transfer": w.step(w.transfer),
					"fire":     w.step(w.fire),
					"fire2":    w.step(w.fire),
					"result":   w.step(w.result),
					"result2":  w.step(w.result),
					"cancel":   w.step(w.cancel),
					"end step": w.step(func(*rapid.T) { w.c.EndStep() }),
					"die":      w.step(w.die),
				})
				w.drain(t)
			})
		})
	}
}

// drain brings everything to its end and looks for what was lost on the way.
func (w *twin) drain(t *rapid.T) {
	w.t = t
	settle := func() {
		for range 100 {
			for _, tl := range []kv.Timeline{tlCompute, tlCopy, tlDry, tlWet} {
				w.done[tl] = w.issued[tl]
				require.NoError(t, w.c.Fired(tl, w.issued[tl]))
			}
			w.c.EndStep()
			w.actions()
			for id, tr := range w.transfers {
				switch tr.state {
				case "posting":
					require.NoError(t, w.c.Posted(id))
					fallthrough
				case "posted", "poisoned":
					require.NoError(t, w.c.Finished(id, nil, true))
				}
				if tr.state != "held" {
					delete(w.transfers, id)
				}
			}
			w.actions()
			for id, tr := range w.transfers {
				if tr.told && tr.state == "held" {
					delete(w.transfers, id)
				}
			}
		}
	}
	for id := range w.plans {
		require.NoError(t, w.c.GiveUp(id))
	}
	clear(w.plans)
	settle()
	require.Empty(t, w.transfers, "a transfer never left")
	for h := range w.holders {
		require.NoError(t, w.c.Drop(h))
	}
	for ten := range w.live {
		require.NoError(t, w.c.Retire(0, []kv.Tenancy{ten}))
		w.retired[ten] = true
	}
	settle()
	w.pool()
	require.Empty(t, w.retired, "blocks were lost")
	require.Len(t, w.free, twinBlocks-1)
	n := w.c.Counters()
	require.Equal(t, [3]int{}, [3]int{n.Held, n.InFlight, n.Poisoned}, fmt.Sprintf("%+v", n))
}
