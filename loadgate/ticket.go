package loadgate

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

// Ticket is a load or a store that was handed to the gate. It is over exactly
// once: it succeeded, failed, or was canceled.
//
// The gate owns the transfer from the call that made the ticket on, and closes
// it when it is quiet. The caller may hand the ticket back with
// [Ticket.Release] when it is over and no longer of interest.
type Ticket struct {
	g        *Gate
	id       core.Transfer
	kind     core.Kind
	transfer nixl.Transfer
	peer     nixl.Peer
	stage    atomic.Int32 // of the posting
	over     atomic.Bool
	queued   bool // a poster has it, or will; guarded by the gate
	released bool // by its owner; guarded by the gate
	quiet    bool // the core is done with it; guarded by the gate
	err      error
}

// The stages of posting. A ticket that is queued for a poster can be taken back
// until a poster has entered the transport's call with it: whoever swaps
// stageQueued for something else first has decided.
const (
	stageNone int32 = iota
	stageQueued
	stageEntered
	stageWithdrawn
)

// Done reports whether the ticket is over. It never blocks.
func (t *Ticket) Done() bool { return t.over.Load() }

// Err returns nil while the ticket is not over and when it succeeded, and the
// cause otherwise.
func (t *Ticket) Err() error {
	if !t.over.Load() {
		return nil
	}
	return t.err
}

func (t *Ticket) String() string {
	if t.Done() {
		if t.err != nil {
			return fmt.Sprintf("%v %v: %v", t.kind, t.id, t.err)
		}
		return fmt.Sprintf("%v %v: done", t.kind, t.id)
	}
	return fmt.Sprintf("%v %v", t.kind, t.id)
}

// Release hands a ticket that is over back for reuse. It must not be used
// afterwards. Releasing one that is not over is refused.
func (t *Ticket) Release() error {
	t.g.mu.Lock()
	defer t.g.mu.Unlock()
	if !t.over.Load() || t.released {
		return fmt.Errorf("loadgate: release %v: %w", t.id, core.ErrState)
	}
	t.released = true
	t.g.recycle(t)
	return nil
}

func (g *Gate) recycle(t *Ticket) {
	if t.released && t.quiet && !t.queued {
		g.free = append(g.free, t)
	}
}

// Load hands in a transfer that brings bytes into blocks of h: a read that was
// made with the gate's agent and not posted. Its local descriptors say which
// bytes it touches; all of them have to lie in blocks of h. It is posted as
// soon as it may be, and is never posted after [Gate.Cancel] withdrew it.
//
// When Load refuses, the caller keeps the transfer.
func (g *Gate) Load(h Holder, t nixl.Transfer) (*Ticket, error) { return g.transfer(core.Load, h, t) }

// Store hands in a transfer that sends bytes of blocks of h: a write that was
// made with the gate's agent and not posted. It is posted when the last step
// that was planned before it and may write them has run.
func (g *Gate) Store(h Holder, t nixl.Transfer) (*Ticket, error) { return g.transfer(core.Store, h, t) }

func (g *Gate) transfer(kind core.Kind, h Holder, tr nixl.Transfer) (*Ticket, error) {
	g.mu.Lock()
	defer g.unlock()
	if g.agent == nil {
		return nil, fmt.Errorf("loadgate: %v: the gate has no agent: %w", kind, core.ErrInvalid)
	}
	if tr == nil {
		return nil, fmt.Errorf("loadgate: %v: no transfer: %w", kind, core.ErrInvalid)
	}
	spec := tr.Spec()
	if want := nixl.Read; kind == core.Store && spec.Op != nixl.Write || kind == core.Load && spec.Op != want {
		return nil, fmt.Errorf("loadgate: %v by a %v: %w", kind, spec.Op, core.ErrInvalid)
	}
	if err := g.ours(kind, tr); err != nil {
		return nil, err
	}
	if err := g.locate(kind, spec); err != nil {
		return nil, err
	}
	if err := g.ready(kind.String()); err != nil {
		return nil, err
	}
	r := core.TransferRequest{Kind: kind, Holder: h, Peer: g.peer(spec.Peer), Pieces: g.pieces}
	id, err := g.core.Transfer(r)
	if errors.Is(err, core.ErrUnready) { // zeroing of these blocks was asked for and is not launched yet
		if err = g.flush(); err == nil {
			id, err = g.core.Transfer(r)
		}
	}
	if err != nil {
		return nil, err
	}
	t := g.ticket()
	t.id, t.kind, t.transfer, t.peer = id, kind, tr, spec.Peer
	for id.Slot() >= len(g.bySlot) {
		g.bySlot = append(g.bySlot, nil)
	}
	g.bySlot[id.Slot()] = t
	if g.core.TransferState(id) == core.Held && g.listener.Held != nil {
		why, _ := g.core.Reason(id)
		g.note(notice{kind: noticeHeld, transfer: TransferInfo{Ticket: t, Kind: kind, Why: why}})
	}
	g.act()
	return t, nil
}

// ours refuses transfers of another agent, which nobody would poll, and those
// that are under way already.
func (g *Gate) ours(kind core.Kind, tr nixl.Transfer) error {
	if o, ok := tr.(nixl.Owned); ok && o.Agent() != g.agent {
		return fmt.Errorf("loadgate: %v: a transfer of agent %s, not of %s: %w", kind, o.Agent().Name(), g.agent.Name(), core.ErrInvalid)
	}
	if status, _ := tr.Status(); status == nixl.InProgress {
		return fmt.Errorf("loadgate: %v: the transfer is posted already: %w", kind, nixl.ErrBusy)
	}
	return nil
}

func (g *Gate) ticket() *Ticket {
	if n := len(g.free); n > 0 {
		t := g.free[n-1]
		g.free = g.free[:n-1]
		*t = Ticket{g: g}
		return t
	}
	return &Ticket{g: g}
}

func (g *Gate) peer(p nixl.Peer) core.Peer {
	if g.lastID != 0 && g.lastPeer == p {
		return g.lastID
	}
	id, ok := g.peers[p]
	if !ok {
		id = core.Peer(len(g.peers) + 1)
		g.peers[p] = id
	}
	g.lastPeer, g.lastID = p, id
	return id
}

// locate finds the blocks that a transfer touches and puts them, merged, into
// g.pieces.
func (g *Gate) locate(kind core.Kind, spec *nixl.Spec) error {
	g.pieces = g.pieces[:0]
	for i := range spec.Local {
		d := &spec.Local[i]
		p, err := g.find(d)
		if err != nil {
			return fmt.Errorf("loadgate: %v: local descriptor %d (%v): %w", kind, i, d, err)
		}
		// Pages of a block are usually listed one after the other.
		if n := len(g.pieces); n > 0 && g.join(&g.pieces[n-1], &p) {
			continue
		}
		g.pieces = append(g.pieces, p)
	}
	// Descriptors in another order: layers outermost, or at random.
	if len(g.pieces) > 1 {
		slices.SortFunc(g.pieces, comparePieces)
		n := 0
		for i := 1; i < len(g.pieces); i++ {
			if !g.join(&g.pieces[n], &g.pieces[i]) {
				n++
				g.pieces[n] = g.pieces[i]
			}
		}
		g.pieces = g.pieces[:n+1]
	}
	return nil
}

func comparePieces(a, b core.Piece) int {
	switch {
	case a.Pool != b.Pool:
		return int(a.Pool) - int(b.Pool)
	case a.Tenancy.Block != b.Tenancy.Block:
		return int(a.Tenancy.Block) - int(b.Tenancy.Block)
	case a.Bytes.Off < b.Bytes.Off:
		return -1
	case a.Bytes.Off > b.Bytes.Off:
		return 1
	}
	return 0
}

// join extends a by b where b follows it in the same block. Bytes that are
// listed twice stay apart, and are refused later; but for blocks whose pages
// overlap, where every descriptor stands for the whole block.
func (g *Gate) join(a, b *core.Piece) bool {
	if a.Pool != b.Pool || a.Tenancy != b.Tenancy {
		return false
	}
	if a.Bytes == kv.WholeBlock && b.Bytes == kv.WholeBlock {
		return true
	}
	if a.Bytes.End() != b.Bytes.Off || b.Bytes == kv.WholeBlock {
		return false
	}
	a.Bytes.Len += b.Bytes.Len
	return true
}

func (g *Gate) find(d *nixl.Descriptor) (core.Piece, error) {
	var first error
	for i := range g.pools {
		b, bytes, err := g.pools[i].where.Locate(d.Addr, d.Len)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		return core.Piece{Pool: kv.PoolID(i), Bytes: bytes,
			Tenancy: kv.Tenancy{Block: b, Generation: g.core.Generation(kv.PoolID(i), b)}}, nil
	}
	return core.Piece{}, first
}

// Cancel ends a ticket. When it reports that it withdrew it, nothing of the
// transfer is posted any more. Otherwise the transfer may be under way: the
// ticket is over all the same, and the blocks stay in quarantine until the
// transfer is quiet.
//
// Either way the bytes of a load are missing: its blocks are refused to steps
// ([core.ErrLost]) until another load brings them or they are zeroed anew, and
// their holders are told ([Listener.Failed]). A ticket that is over already is
// refused with [core.ErrState].
func (g *Gate) Cancel(t *Ticket) (withdrawn bool, err error) {
	g.mu.Lock()
	defer g.unlock()
	if err := g.mine("cancel", t); err != nil {
		return false, err
	}
	if t.over.Load() {
		return false, fmt.Errorf("loadgate: cancel %v: %w", t.id, core.ErrState)
	}
	withdrawn, err = g.core.Cancel(t.id)
	if err != nil {
		return false, err
	}
	if !withdrawn && g.takeBack(t, core.ErrCanceled) {
		withdrawn = true
	}
	g.act()
	return withdrawn, nil
}

func (g *Gate) mine(op string, t *Ticket) error {
	if t == nil || t.g != g {
		return fmt.Errorf("loadgate: %s: not a ticket of this gate: %w", op, core.ErrInvalid)
	}
	return nil
}

// takeBack stops a ticket that no poster has entered the transport with.
func (g *Gate) takeBack(t *Ticket, cause error) bool {
	if !t.stage.CompareAndSwap(stageQueued, stageWithdrawn) {
		return false
	}
	// The swap has decided: the poster that finds it drops it.
	g.must(g.core.PostFailed(t.id, cause, true))
	g.act()
	return true
}
