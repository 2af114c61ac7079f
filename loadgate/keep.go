package loadgate

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

// Why a group of a request can't be kept up to some token; see [KeepError].
var (
	// ErrNoState: the group has no row with the state behind that token. A row
	// holds the state behind the newest settled token, and with layout.StateAlign
	// it can be kept when that token is the last of a block and no step that
	// ended there had a token rejected. Without StateAlign there is one row, which
	// every step overwrites.
	ErrNoState = errors.New("no row holds the state there")
	// ErrPartial: the tokens end inside a block.
	ErrPartial = errors.New("not a whole number of blocks")
	// ErrLetGo: blocks in the window of that token were let go.
	ErrLetGo = errors.New("blocks in the window were let go")
)

// KeepError names the group of a request that can't be kept.
type KeepError struct {
	Group  int
	Name   string
	Block  int // tokens of a block; 0 where the group has rows of state
	Tokens int
	Err    error
}

func (e *KeepError) Error() string {
	s := fmt.Sprintf("loadgate: keep %d tokens: group %d (%s)", e.Tokens, e.Group, e.Name)
	if e.Block > 0 {
		s += fmt.Sprintf(", blocks of %d", e.Block)
	}
	return s + ": " + e.Err.Error()
}

func (e *KeepError) Unwrap() error { return e.Err }

// Kept is the blocks of a request's first tokens, held without a request, as a
// prefix cache does. Requests adopt them, any number at a time. The blocks are
// only read from then on: what a request appends goes into blocks of its own. It
// is a value; the zero Kept, and one that was closed, are refused ([ErrStale]).
type Kept struct {
	g    *Gate
	slot int32
	gen  uint32
}

func (k Kept) String() string { return fmt.Sprintf("prefix %d.%d", k.slot, k.gen) }

// kept is a slot of the table.
type kept struct {
	gen    uint32
	open   bool
	tokens int
	groups []keptGroup
	ts     []kv.Tenancy // of all groups, in their order
}

// keptGroup are the places first to end-1 of a list.
type keptGroup span32

// Keep holds the blocks of the request's first so many tokens, which have to be
// settled, and whole blocks in each group: otherwise it is refused with a
// *[KeepError] that names the group. Of a sliding window it holds what the next
// token needs, of recurrent groups the row with the state there.
func (r Request) Keep(tokens int) (Kept, error) {
	g, s, err := r.enter("keep")
	if err != nil {
		return Kept{}, err
	}
	defer g.mu.Unlock()
	q := &g.owned.requests
	if tokens <= 0 || tokens > s.settled {
		return Kept{}, fmt.Errorf("loadgate: keep: %v: %d tokens, of %d that are settled: %w", r, tokens, s.settled, core.ErrInvalid)
	}
	q.ts, q.room = q.ts[:0], q.room[:0]
	for i := range q.rules {
		p, err := q.keeps(s, i, tokens)
		if err != nil {
			return Kept{}, &KeepError{i, q.rules[i].name, q.rules[i].block, tokens, err}
		}
		l := &s.groups[i]
		for k := p.first; k < p.end; k++ {
			q.ts = append(q.ts, *l.blocks.At(k - l.first))
		}
		q.room = append(q.room, p)
	}
	if err := g.core.Ref(0, q.ts); err != nil {
		return Kept{}, err
	}
	var i int32
	if n := len(q.freeKept); n > 0 {
		i, q.freeKept = q.freeKept[n-1], q.freeKept[:n-1]
	} else {
		i = int32(len(q.kept))
		q.kept = append(q.kept, kept{})
	}
	k := &q.kept[i]
	k.gen++
	k.open, k.tokens, k.ts, k.groups = true, tokens, append(k.ts[:0], q.ts...), k.groups[:0]
	for _, p := range q.room {
		k.groups = append(k.groups, keptGroup(p))
	}
	return Kept{g, i, k.gen}, nil
}

// keeps returns the places of a group that hold what a request of so many tokens
// goes on from.
func (q *requests) keeps(s *request, i, tokens int) (span32, error) {
	rule, l := &q.rules[i], &s.groups[i]
	switch {
	case rule.block == 0:
		return span32{}, ErrNoState
	case tokens%rule.block != 0:
		return span32{}, ErrPartial
	case rule.state && s.state != tokens:
		return span32{}, ErrNoState
	}
	p := span32{q.plan.Live(i, tokens).From / rule.block, tokens / rule.block}
	if p.first < l.first && p.first < p.end {
		return span32{}, ErrLetGo
	}
	return p, nil
}

// enter locks the gate and returns the slot; see [Request.enter].
func (k Kept) enter(op string) (*Gate, *kept, error) {
	if k.g == nil {
		return nil, nil, fmt.Errorf("loadgate: %s: the zero prefix: %w", op, core.ErrStale)
	}
	k.g.mu.Lock()
	if s := &k.g.owned.requests.kept[k.slot]; s.open && s.gen == k.gen {
		return k.g, s, nil
	}
	k.g.mu.Unlock()
	return k.g, nil, fmt.Errorf("loadgate: %s: %v was closed: %w", op, k, core.ErrStale)
}

// Tokens returns how many tokens are kept.
func (k Kept) Tokens() (int, error) {
	g, s, err := k.enter("tokens")
	if err != nil {
		return 0, err
	}
	defer g.mu.Unlock()
	return s.tokens, nil
}

// Close lets the blocks go. Those that no request shares are handed out again.
func (k Kept) Close() error {
	g, s, err := k.enter("close")
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if err := g.core.Free(0, s.ts); err != nil {
		return err
	}
	s.open = false
	g.owned.requests.freeKept = append(g.owned.requests.freeKept, k.slot)
	return nil
}

// Adopt gives a new request the kept tokens, which are settled from then on. The
// request must not have room yet.
func (r Request) Adopt(k Kept) error {
	g, s, err := r.enter("adopt")
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if k.g != g {
		return fmt.Errorf("loadgate: adopt: %v: not a prefix of this gate: %w", r, core.ErrInvalid)
	}
	q := &g.owned.requests
	p := &q.kept[k.slot]
	switch {
	case !p.open || p.gen != k.gen:
		return fmt.Errorf("loadgate: adopt: %v was closed: %w", k, core.ErrStale)
	case s.reserved > 0:
		return fmt.Errorf("loadgate: adopt: %v has room for %d tokens already: %w", r, s.reserved, core.ErrState)
	case q.tokens > 0 && p.tokens > q.tokens:
		return fmt.Errorf("loadgate: adopt: %v: %d tokens, the block tables have rows for %d: %w", r, p.tokens, q.tokens, core.ErrInvalid)
	}
	if err := g.core.Ref(0, p.ts); err != nil {
		return err
	}
	s.version++
	rest := p.ts
	for i, places := range p.groups {
		n := places.end - places.first
		g.must(g.core.Append(s.holder, kv.Group(i), rest[:n]))
		l := &s.groups[i]
		l.first = places.first
		for _, t := range rest[:n] {
			l.blocks.Push(t)
		}
		rest = rest[n:]
	}
	s.reserved, s.planned, s.settled, s.known, s.state = p.tokens, p.tokens, p.tokens, p.tokens, p.tokens
	return nil
}
