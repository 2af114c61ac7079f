package loadgate

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
)

// TransferSpec says what a load brings into a request's blocks, or what a store
// sends of them.
type TransferSpec struct {
	// Peers are where the other side's blocks are: one, of the same rank and
	// layout.
	Peers []Peer
	// Blocks are the other side's blocks, in each group of the plan, as
	// [Request.AppendBlocks] gives them there.
	Blocks [][]kv.Block
	// Tokens are those that move, with the same places on both sides. Of a
	// window and of a recurrent group only what tokens behind them need moves.
	Tokens layout.TokenRange
	// Message, if not nil, reaches the peer when all bytes have arrived.
	Message []byte
}

// transferBuffer is what a transfer is made from.
type transferBuffer struct {
	moves  layout.Moves
	groups []layout.GroupBlocks
	local  [][]kv.Block
	spec   nixl.Spec
}

// loadOf is the request that a load is for.
type loadOf struct {
	id   core.Transfer
	slot int32
	gen  uint32
}

// Load brings tokens into the request's blocks: those behind the tokens that are
// planned. It leaves when the gate lets it, and what it does not cover of a new
// block is zeroed. The tokens are planned from now on, and settled when the load
// has arrived; when it fails they are not, and neither are those of loads behind
// it. Until then the request is not ready for steps.
//
// Load refuses tokens that may never be: those behind [Room.Tokens], and any
// while a step of the request is not settled.
func (r Request) Load(spec TransferSpec) (Transfer, error) { return r.move(core.Load, spec) }

// Store sends settled tokens of the request to a peer. It leaves when the steps
// are over that may write them.
func (r Request) Store(spec TransferSpec) (Transfer, error) { return r.move(core.Store, spec) }

func (r Request) move(kind core.Kind, spec TransferSpec) (Transfer, error) {
	g, s, err := r.enter(kind.String())
	if err != nil {
		return Transfer{}, err
	}
	fail := func(err error) (Transfer, error) {
		return Transfer{}, fmt.Errorf("loadgate: %v of %v: %w", kind, r, err)
	}
	q := &g.owned.requests
	if err := s.moves(kind, spec.Tokens); err != nil {
		g.mu.Unlock()
		return fail(err)
	}
	b := &transferBuffer{}
	if n := len(q.buffers); n > 0 {
		b, q.buffers = q.buffers[n-1], q.buffers[:n-1]
	}
	err = g.fillBuffer(b, kind, s, spec)
	g.mu.Unlock()
	var tr nixl.Transfer
	if err == nil {
		tr, err = g.agent.NewTransfer(b.spec) // may take some time
	}
	g.mu.Lock()
	q.buffers = append(q.buffers, b)
	if err != nil {
		g.mu.Unlock()
		return fail(err)
	}
	// Meanwhile anything may have happened.
	if s, err = g.request(kind.String(), r); err == nil {
		err = s.moves(kind, spec.Tokens)
	}
	var t Transfer
	if err == nil {
		t, err = g.handIn(kind, s.holder, tr)
	}
	if err != nil {
		g.unlock()
		return fail(errors.Join(err, tr.Close()))
	}
	if kind == core.Load {
		g.noteLoad(t, r, spec.Tokens)
	}
	g.unlock()
	return t, nil
}

// moves says why tokens of a request can't be loaded, or stored.
func (s *request) moves(kind core.Kind, tokens layout.TokenRange) error {
	if tokens.From < 0 || tokens.To <= tokens.From {
		return fmt.Errorf("tokens %v: %w", tokens, core.ErrInvalid)
	}
	if kind == core.Store {
		if tokens.To > s.settled {
			return fmt.Errorf("tokens %v, of %d that are settled: %w", tokens, s.settled, core.ErrInvalid)
		}
		return nil
	}
	for i := range s.pending.Len() {
		if !s.pending.At(i).load {
			return fmt.Errorf("tokens %v behind a step that is not settled: %w", tokens, core.ErrState)
		}
	}
	switch {
	case tokens.From != s.planned:
		return fmt.Errorf("tokens %v, and not from the first behind the %d that are planned: %w", tokens, s.planned, core.ErrInvalid)
	case tokens.To > s.known:
		return fmt.Errorf("tokens %v reach behind the %d that there are room and certainty for: %w", tokens, s.known, core.ErrInvalid)
	}
	return nil
}

// fillBuffer makes the descriptors of a transfer.
func (g *Gate) fillBuffer(b *transferBuffer, kind core.Kind, s *request, spec TransferSpec) error {
	q := &g.owned.requests
	if len(spec.Peers) != 1 {
		return fmt.Errorf("%d peers, want the one of our rank: %w", len(spec.Peers), core.ErrInvalid)
	}
	p, err := g.peerOf(kind.String(), spec.Peers[0])
	if err != nil {
		return err
	}
	if len(spec.Blocks) != len(q.rules) {
		return fmt.Errorf("the other side's blocks of %d groups, want %d: %w", len(spec.Blocks), len(q.rules), core.ErrInvalid)
	}
	b.groups = b.groups[:0]
	for len(b.local) < len(q.rules) {
		b.local = append(b.local, nil)
	}
	for i := range q.rules {
		b.local[i] = s.groups[i].appendTo(b.local[i][:0])
		b.groups = append(b.groups, layout.GroupBlocks{Local: b.local[i], Remote: spec.Blocks[i]})
	}
	if err := p.pairing.Moves(&b.moves, &layout.Transfer{Tokens: spec.Tokens, Groups: b.groups}); err != nil {
		return err
	}
	n := &b.spec
	*n = nixl.Spec{Op: nixl.Read, Peer: p.agent, LocalMemory: g.owned.kind, RemoteMemory: p.kind, Local: n.Local[:0], Remote: n.Remote[:0],
		Notification: spec.Message}
	if kind == core.Store {
		n.Op = nixl.Write
	}
	for _, moves := range b.moves.Peers {
		for _, m := range moves {
			n.Local = append(n.Local, nixl.Descriptor{Addr: m.Local, Len: m.Len})
			n.Remote = append(n.Remote, nixl.Descriptor{Addr: m.Remote, Len: m.Len})
		}
	}
	return nil
}

// noteLoad books the tokens of a load that was handed in.
func (g *Gate) noteLoad(t Transfer, r Request, tokens layout.TokenRange) {
	q := &g.owned.requests
	s := &q.all[r.slot]
	n := tokens.To - tokens.From
	s.pending.Push(pending{id: uint64(t.id), tokens: n, load: true})
	s.planned += n
	for t.id.Slot() >= len(q.loads) {
		q.loads = append(q.loads, loadOf{})
	}
	q.loads[t.id.Slot()] = loadOf{t.id, r.slot, r.gen}
	if k := g.find(t); k != nil && k.over.Load() {
		g.loadOver(t.id, k.err)
	}
}

// loadOver books the end of a load: its tokens are settled, in their turn, or
// taken back with those of the loads behind it.
func (g *Gate) loadOver(id core.Transfer, err error) {
	if g.owned == nil {
		return
	}
	q := &g.owned.requests
	if id.Slot() >= len(q.loads) || q.loads[id.Slot()].id != id {
		return
	}
	l := q.loads[id.Slot()]
	s := &q.all[l.slot]
	if !s.open || s.gen != l.gen {
		return
	}
	if err == nil {
		if p := s.find(uint64(id), true); p != nil {
			p.done = true
		}
		s.settleLoads()
		return
	}
	for i := range s.pending.Len() {
		if p := s.pending.At(i); p.load && p.id == uint64(id) {
			for s.pending.Len() > i {
				s.planned -= s.pending.At(s.pending.Len() - 1).tokens
				s.pending.Drop()
			}
			return
		}
	}
}

// appendTo appends the blocks of a list, with padding for those that are not
// there.
func (l *blockList) appendTo(dst []kv.Block) []kv.Block {
	for range l.first {
		dst = append(dst, kv.Pad)
	}
	for i := range l.blocks.Len() {
		dst = append(dst, l.blocks.At(i).Block)
	}
	return dst
}
