package loadgate

import (
	"fmt"

	"github.com/kvgate/kvgate/internal/fifo"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// Request is a request of an engine: a list of blocks in each group of the
// gate's plan, and three counts of tokens. It is a value that may be copied; the
// zero Request, and one that was closed, are refused ([ErrStale]).
//
// Reserved tokens have room. Planned tokens are those that steps were made for,
// and loads: it may turn out that some are not kept. Settled tokens are known to
// stay. Reserved is never less than planned, and planned never less than settled.
//
// Ranks that share a [Ledger] make the same calls for each request, in the same
// order, on each rank's gate; a request then has equal block ids on all of them.
type Request struct {
	g    *Gate
	slot int32
	gen  uint32
}

func (r Request) String() string { return fmt.Sprintf("request %d.%d", r.slot, r.gen) }

// Tokens are the counts of a request; see [Request].
type Tokens struct {
	Reserved int
	Planned  int
	Settled  int
}

// requests are those of a gate, guarded by its lock.
type requests struct {
	plan   *layout.Plan // nil: the gate has none
	rules  []groupRule
	limit  int // of requests; 0: none
	tokens int // of a request at most; 0: no limit

	all  []request
	free []int32
	kept []kept

	freeKept []int32
	byHolder []int32  // slots, by slot of the holder
	loads    []loadOf // by slot of the transfer
	buffers  []*transferBuffer

	stamp uint64

	// Scratch.
	wants   []Want
	ts      []kv.Tenancy
	room    []span32
	holders []Holder
}

// groupRule says how a group's blocks follow from tokens.
type groupRule struct {
	name  string
	state bool
	block int // tokens; 0: a request has rows instead, whatever its tokens
	rows  int
}

// request is a slot of the table.
type request struct {
	gen    uint32
	open   bool
	holder Holder

	reserved, planned, settled int
	known                      int // tokens that loads may bring: not behind them
	// state is after how many tokens the newest row of state was left, as
	// settled; -1: that is not known.
	state int

	stamp   uint64              // of the newest step that names it
	steps   int                 // that name it and are open
	version uint64              // counts changes of the lists
	pending fifo.Queue[pending] // steps and loads that are not settled, oldest first
	groups  []blockList
}

// pending are tokens of a request that a step or a load appends.
type pending struct {
	id     uint64
	tokens int
	load   bool
	done   bool
}

// blockList is a request's blocks of a group: those at the places first and on of
// the list. Those before were let go, or never taken.
type blockList struct {
	first  int
	blocks fifo.Queue[kv.Tenancy]
}

func (l *blockList) end() int { return l.first + l.blocks.Len() }

// span32 are places of a list.
type span32 struct{ first, end int }

func (q *requests) init(p *layout.Plan, o TableOptions) {
	q.plan, q.limit, q.tokens = p, o.Requests, o.Tokens
	for i := range p.Groups {
		q.rules = append(q.rules, ruleOf(p, i))
	}
}

// ruleOf returns the rule of a group: a block for so many tokens, or, of a
// recurrent group without StateAlign, rows for the whole request.
func ruleOf(p *layout.Plan, i int) groupRule {
	g := &p.Groups[i]
	r := groupRule{name: fmt.Sprintf("%v %d", g.Kind, i), state: g.Kind == layout.Recurrent, block: g.BlockTokens}
	if r.state && p.Options.StateMode == layout.StateNone {
		r.block, r.rows = 0, 1+p.Options.SpeculativeTokens
	}
	return r
}

// blocks returns how many places of its list so many tokens need.
func (r *groupRule) blocks(tokens int) int {
	switch {
	case tokens == 0:
		return 0
	case r.block == 0:
		return r.rows
	}
	return (tokens + r.block - 1) / r.block
}

// NewRequest makes a request without blocks. It is refused with [ErrFull] where
// [Options.Tables] has no row for it, and with [ErrInvalid] where the gate has no
// plan.
func (g *Gate) NewRequest() (Request, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.owned == nil {
		return Request{}, fmt.Errorf("loadgate: new request: the gate was not made by Open: %w", core.ErrInvalid)
	}
	if g.closed {
		return Request{}, fmt.Errorf("loadgate: new request: %w", ErrClosed)
	}
	q := &g.owned.requests
	if len(q.free) == 0 && q.limit > 0 && len(q.all) == q.limit {
		return Request{}, fmt.Errorf("loadgate: new request: all %d rows of the block tables are taken: %w", q.limit, core.ErrFull)
	}
	h, err := g.core.Hold(0, nil)
	if err != nil {
		return Request{}, err
	}
	var i int32
	if n := len(q.free); n > 0 {
		i, q.free = q.free[n-1], q.free[:n-1]
	} else {
		i = int32(len(q.all))
		q.all = append(q.all, request{groups: make([]blockList, len(q.rules))})
	}
	r := &q.all[i]
	*r = request{gen: r.gen + 1, open: true, holder: h, state: -1, version: r.version + 1, pending: r.pending, groups: r.groups}
	for h.Slot() >= len(q.byHolder) {
		q.byHolder = append(q.byHolder, -1)
	}
	q.byHolder[h.Slot()] = i
	return Request{g, i, r.gen}, nil
}

// requestOf returns the request that a holder is of, or the zero Request.
func (g *Gate) requestOf(h Holder) Request {
	if g.owned == nil || h.Slot() >= len(g.owned.requests.byHolder) {
		return Request{}
	}
	q := &g.owned.requests
	if i := q.byHolder[h.Slot()]; i >= 0 && q.all[i].open && q.all[i].holder == h {
		return Request{g, i, q.all[i].gen}
	}
	return Request{}
}

// request returns the slot of a request, with the gate locked; see [Request.enter].
func (g *Gate) request(op string, r Request) (*request, error) {
	if r.g == nil || r.g != g {
		return nil, fmt.Errorf("loadgate: %s: not a request of this gate: %w", op, core.ErrInvalid)
	}
	if s := &g.owned.requests.all[r.slot]; s.open && s.gen == r.gen {
		return s, nil
	}
	return nil, fmt.Errorf("loadgate: %s: %v was closed: %w", op, r, core.ErrStale)
}

// enter locks the gate of a request and returns its slot. After an error the gate
// is not locked.
func (r Request) enter(op string) (*Gate, *request, error) {
	if r.g == nil {
		return nil, nil, fmt.Errorf("loadgate: %s: the zero request: %w", op, core.ErrStale)
	}
	r.g.mu.Lock()
	s, err := r.g.request(op, r)
	if err != nil {
		r.g.mu.Unlock()
	}
	return r.g, s, err
}

// Row returns which row of the gate's block tables is the request's: below
// [TableOptions.Requests], and nobody else's until the request is closed.
func (r Request) Row() int { return int(r.slot) }

// Tokens returns the counts of the request.
func (r Request) Tokens() (Tokens, error) {
	g, s, err := r.enter("tokens")
	if err != nil {
		return Tokens{}, err
	}
	defer g.mu.Unlock()
	return Tokens{s.reserved, s.planned, s.settled}, nil
}

// AppendBlocks appends the request's blocks of a group to dst, one for each place
// of its list, the first tokens in front. A place whose block was let go has
// [kv.Pad]. The ids are those of blocks, not of kernel blocks, as a peer or a
// transfer wants them; [kv.Block.Expand] and [Gate.Table] have kernel blocks.
func (r Request) AppendBlocks(dst []kv.Block, group int) ([]kv.Block, error) {
	g, s, err := r.enter("append blocks")
	if err != nil {
		return dst, err
	}
	defer g.mu.Unlock()
	if err := g.owned.requests.checkGroup("append blocks", group); err != nil {
		return dst, err
	}
	return s.groups[group].appendTo(dst), nil
}

func (q *requests) checkGroup(op string, group int) error {
	if group < 0 || group >= len(q.rules) {
		return fmt.Errorf("loadgate: %s: group %d of %d: %w", op, group, len(q.rules), core.ErrInvalid)
	}
	return nil
}

// Close ends the request: its blocks are let go, and are handed out again when no
// step and no transfer touches them any more. Steps that were made for it may
// still be launched, and transfers go on; cancel those that nobody wants.
func (r Request) Close() error {
	g, s, err := r.enter("close")
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	q := &g.owned.requests
	q.ts = q.ts[:0]
	for i := range s.groups {
		l := &s.groups[i]
		for k := range l.blocks.Len() {
			q.ts = append(q.ts, *l.blocks.At(k))
		}
	}
	s.open = false
	if s.steps == 0 {
		g.reuse(r.slot)
	}
	if err := g.core.Drop(s.holder); err != nil || len(q.ts) == 0 {
		return err
	}
	return g.core.Free(0, q.ts)
}

// reuse makes a slot free whose request was closed and is in no open step: until
// then such a step may still read its row.
func (g *Gate) reuse(slot int32) {
	q := &g.owned.requests
	s := &q.all[slot]
	for i := range s.groups {
		l := &s.groups[i]
		l.blocks.Pop(l.blocks.Len())
		l.first = 0
	}
	s.pending.Pop(s.pending.Len())
	g.owned.tables.forget(slot)
	q.free = append(q.free, slot)
}
