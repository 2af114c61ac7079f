package loadgate

import (
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/nixl"
)

// Transfer is a load or a store that was handed to the gate. It is over exactly
// once: it succeeded, failed, or was canceled.
//
// A Transfer is a value. The gate keeps its outcome until [Gate.Ended] has told
// it, or until it is over and its holder has been dropped. After that, methods
// return [ErrStale].
type Transfer struct {
	g  *Gate
	id core.Transfer
}

// ticket is what the gate knows of a transfer beside its core.
type ticket struct {
	id       core.Transfer
	kind     core.Kind
	transfer nixl.Transfer
	holder   Holder
	peer     nixl.Peer
	stage    atomic.Int32 // of the posting
	over     atomic.Bool
	err      error // of one that is over
	queued   bool  // a poster has it, or will
	quiet    bool  // the core is done with it
	told     bool  // its owner has been told the end, or does not care
	freed    bool  // it is in Gate.free
	waiters  int

	next, prev *ticket // of the same holder
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

// Ended says that a transfer is over, or that a load failed for a holder that
// shares its blocks.
type Ended struct {
	Transfer Transfer
	Kind     Kind
	// Holder is whose transfer it was or, if Shared is set, another holder of a
	// block into which the load did not arrive.
	Holder Holder
	Shared bool
	// Request is the request that Holder is of, where it is one's.
	Request Request
	Err     error // nil: it succeeded
}

func (e Ended) String() string {
	switch {
	case e.Err == nil:
		return fmt.Sprintf("%v of %v: done", e.Kind, e.Holder)
	case e.Shared:
		return fmt.Sprintf("%v into blocks of %v: %v", e.Kind, e.Holder, e.Err)
	}
	return fmt.Sprintf("%v of %v: %v", e.Kind, e.Holder, e.Err)
}

// Ended appends what has ended since the last call to dst, in order. It tells
// nothing of holders that have been dropped. An engine calls it once a step.
func (g *Gate) Ended(dst []Ended) []Ended {
	g.mu.Lock()
	defer g.mu.Unlock()
	for i := range g.news {
		e := &g.news[i]
		if g.core.Held(e.Holder) {
			e.Request = g.requestOf(e.Holder)
			dst = append(dst, *e)
		}
		if t := g.find(e.Transfer); t != nil && !e.Shared {
			g.forget(t)
		}
	}
	clear(g.news)
	g.news = g.news[:0]
	return dst
}

// endedNews enters an end, for [Gate.Ended]. Where nobody asks, what concerns
// holders that are gone is thrown away from time to time.
func (g *Gate) endedNews(e Ended) {
	if len(g.news) >= 64 && len(g.news) >= 2*g.kept {
		g.news = slices.DeleteFunc(g.news, func(e Ended) bool { return !g.core.Held(e.Holder) })
		g.kept = len(g.news)
	}
	g.news = append(g.news, e)
}

func (t Transfer) String() string {
	if t.g == nil {
		return "no transfer"
	}
	return t.id.String()
}

// find returns the ticket of a transfer; nil: it is stale.
func (g *Gate) find(t Transfer) *ticket {
	if i := t.id.Slot(); t.g == g && i >= 0 && i < len(g.bySlot) && g.bySlot[i] != nil && g.bySlot[i].id == t.id {
		return g.bySlot[i]
	}
	return nil
}

// ticket returns the transfer's gate, locked, and what it knows.
func (t Transfer) ticket(op string) (*Gate, *ticket, error) {
	if t.g == nil {
		return nil, nil, fmt.Errorf("loadgate: %s: the zero Transfer: %w", op, core.ErrInvalid)
	}
	t.g.mu.Lock()
	if k := t.g.find(t); k != nil {
		return t.g, k, nil
	}
	t.g.mu.Unlock()
	return nil, nil, fmt.Errorf("loadgate: %s %v: its end has been told, or its holder dropped: %w", op, t, core.ErrStale)
}

// Done reports whether the transfer is over, or stale.
func (t Transfer) Done() bool {
	g, k, err := t.ticket("done")
	if err != nil {
		return true
	}
	defer g.mu.Unlock()
	return k.over.Load()
}

// Err returns nil while the transfer is not over and when it succeeded, the
// cause when it did not, and [ErrStale] when the transfer is stale.
func (t Transfer) Err() error {
	g, k, err := t.ticket("outcome of")
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	return k.err
}

// newTicket returns the ticket of a transfer.
func (g *Gate) newTicket(id core.Transfer, h Holder) *ticket {
	var t *ticket
	if n := len(g.free); n > 0 {
		t, g.free = g.free[n-1], g.free[:n-1]
		*t = ticket{}
	} else {
		t = &ticket{}
	}
	t.id, t.holder = id, h
	for id.Slot() >= len(g.bySlot) {
		g.bySlot = append(g.bySlot, nil)
	}
	g.bySlot[id.Slot()] = t
	for h.Slot() >= len(g.ofHolder) {
		g.ofHolder = append(g.ofHolder, nil)
	}
	if t.next = g.ofHolder[h.Slot()]; t.next != nil {
		t.next.prev = t
	}
	g.ofHolder[h.Slot()] = t
	return t
}

// forget says that a ticket's owner knows its end.
func (g *Gate) forget(t *ticket) {
	if !t.told {
		t.told = true
		if t.prev != nil {
			t.prev.next = t.next
		} else {
			g.ofHolder[t.holder.Slot()] = t.next
		}
		if t.next != nil {
			t.next.prev = t.prev
		}
		t.next, t.prev = nil, nil
		g.recycle(t)
	}
}

// dropped forgets the transfers of a holder that was dropped.
func (g *Gate) dropped(h Holder) {
	if h.Slot() < len(g.ofHolder) {
		for t := g.ofHolder[h.Slot()]; t != nil; t = g.ofHolder[h.Slot()] {
			g.forget(t)
		}
	}
}

// recycle makes a ticket free that nobody names any more. Its handle is stale
// from then on.
func (g *Gate) recycle(t *ticket) {
	if t.told && t.quiet && !t.queued && t.waiters == 0 && t.over.Load() && !t.freed {
		t.freed = true
		g.bySlot[t.id.Slot()] = nil
		g.must(g.core.Forget(t.id))
		g.free = append(g.free, t)
	}
}

// Load hands in a transfer that brings bytes into blocks of h: a read that was
// made with the gate's agent and not posted. Its local descriptors say which
// bytes it touches; all of them have to lie in blocks of h. It is posted as
// soon as it may be, and is never posted after [Transfer.Cancel] withdrew it.
//
// When Load refuses, the caller keeps the transfer.
func (g *Gate) Load(h Holder, t nixl.Transfer) (Transfer, error) { return g.transfer(core.Load, h, t) }

// Store hands in a transfer that sends bytes of blocks of h: a write that was
// made with the gate's agent and not posted. It is posted when the last step
// that was planned before it and may write them has run.
func (g *Gate) Store(h Holder, t nixl.Transfer) (Transfer, error) {
	return g.transfer(core.Store, h, t)
}

func (g *Gate) transfer(kind core.Kind, h Holder, tr nixl.Transfer) (Transfer, error) {
	g.mu.Lock()
	defer g.unlock()
	return g.handIn(kind, h, tr)
}

// handIn hands in a transfer, with the gate locked.
func (g *Gate) handIn(kind core.Kind, h Holder, tr nixl.Transfer) (Transfer, error) {
	if g.agent == nil {
		return Transfer{}, fmt.Errorf("loadgate: %v: the gate has no agent: %w", kind, core.ErrInvalid)
	}
	if tr == nil {
		return Transfer{}, fmt.Errorf("loadgate: %v: no transfer: %w", kind, core.ErrInvalid)
	}
	spec := tr.Spec()
	if want := nixl.Read; kind == core.Store && spec.Op != nixl.Write || kind == core.Load && spec.Op != want {
		return Transfer{}, fmt.Errorf("loadgate: %v by a %v: %w", kind, spec.Op, core.ErrInvalid)
	}
	if err := g.ours(kind, tr); err != nil {
		return Transfer{}, err
	}
	if !reflect.TypeOf(tr).Comparable() {
		return Transfer{}, fmt.Errorf("loadgate: %v: a %T has no identity: %w", kind, tr, core.ErrInvalid)
	}
	if old, ok := g.handed[tr]; ok {
		return Transfer{}, fmt.Errorf("loadgate: %v: the gate has it already, as %v: %w", kind, old, core.ErrState)
	}
	if err := g.locate(kind, spec); err != nil {
		return Transfer{}, err
	}
	if err := g.ready(kind.String()); err != nil {
		return Transfer{}, err
	}
	id, err := g.core.Transfer(core.TransferRequest{Kind: kind, Holder: h, Peer: g.peer(spec.Peer), Pieces: g.pieces})
	if err != nil {
		return Transfer{}, err
	}
	t := g.newTicket(id, h)
	t.kind, t.transfer, t.peer = kind, tr, spec.Peer
	g.handed[tr] = id
	if g.core.TransferState(id) == core.Held && g.listener.Held != nil {
		why, _ := g.core.Reason(id)
		i := g.info(t, nil)
		i.Why = why
		g.note(notice{kind: noticeHeld, transfer: i})
	}
	g.act()
	return Transfer{g, t.id}, nil
}

// info describes a transfer.
func (g *Gate) info(t *ticket, err error) TransferInfo {
	return TransferInfo{Transfer: Transfer{g, t.id}, Kind: t.kind, Holder: t.holder, Peer: t.peer, Spec: t.transfer.Spec(), Err: err}
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

// Cancel ends a transfer for its owner. When it reports that it withdrew it,
// nothing of it is posted any more. Otherwise the transfer may be under way: its
// transport is asked to stop, and its blocks stay in quarantine until it is
// quiet.
//
// Either way the bytes of a load are missing: its blocks are refused to steps
// ([ErrLost]) until another load brings them or they are zeroed anew, and their
// other holders are told. A transfer that is over already is refused with
// [ErrState].
func (t Transfer) Cancel() (withdrawn bool, err error) {
	g, k, err := t.ticket("cancel")
	if err != nil {
		return false, err
	}
	defer g.unlock()
	if k.over.Load() {
		return false, fmt.Errorf("loadgate: cancel %v: %w", t, core.ErrState)
	}
	withdrawn, err = g.core.Cancel(k.id)
	if err != nil {
		return false, err
	}
	if !withdrawn {
		if g.takeBack(k, core.ErrCanceled) {
			withdrawn = true
		} else {
			k.transfer.Cancel()
		}
	}
	g.act()
	return withdrawn, nil
}

// takeBack stops a transfer that no poster has entered the transport with.
func (g *Gate) takeBack(t *ticket, cause error) bool {
	if !t.stage.CompareAndSwap(stageQueued, stageWithdrawn) {
		return false
	}
	// The swap has decided: the poster that finds it drops it.
	g.must(g.core.PostFailed(t.id, cause, true))
	g.act()
	return true
}
