package core

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// Transfer is the handle of a load or a store. It is dead once the transfer is
// over and quiet; its slot is taken until [Core.Forget].
type Transfer uint64

func (t Transfer) String() string {
	i, gen := unpack(uint64(t))
	return fmt.Sprintf("transfer %d.%d", i, gen)
}

// Slot returns a small number that no other transfer of the core has until this
// one is forgotten, for tables beside the core.
func (t Transfer) Slot() int {
	i, _ := unpack(uint64(t))
	return int(i)
}

// Kind is the direction of a transfer. Grants, by which a peer may touch local
// blocks, will be further kinds.
type Kind uint8

const (
	Load  Kind = iota // into local blocks
	Store             // out of local blocks
)

func (k Kind) String() string {
	if k == Store {
		return "store"
	}
	return "load"
}

// Peer is a number for who is at the other end. 0 is nobody in particular.
type Peer uint32

// State is where a transfer is.
//
//	        post          posted          success
//	Held ────────▶ Posting ───────▶ Posted ───────▶ (over)
//	 │ │              │  │             │
//	 │ └─▶ (over)     │  └─▶ (over)    └──▶ Poisoned ──▶ (over)
//	 │ withdrawn      │  never handed       not quiet    success after all
//	 └─▶ (over)       └──▶ Poisoned
//	     failed            part of it left
type State uint8

const (
	Over     State = iota // over and quiet; the handle is dead
	Held                  // waits in the core
	Posting               // has left the core; what became of it is not known
	Posted                // with the transport
	Poisoned              // over for its caller, not proven quiet
)

var stateNames = [...]string{"over", "held", "posting", "posted", "poisoned"}

func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// next lists the transitions that exist; [Core.move] is the only door.
var next = [...][]State{
	Over:     {Held},
	Held:     {Posting, Over},
	Posting:  {Posted, Poisoned, Over},
	Posted:   {Poisoned, Over},
	Poisoned: {Over},
}

// Piece is a run of bytes of one tenancy.
type Piece struct {
	Pool    kv.PoolID
	Tenancy kv.Tenancy
	Bytes   kv.Range
}

// TransferRequest describes a load or a store.
type TransferRequest struct {
	Kind   Kind
	Holder Holder
	Peer   Peer
	// Pieces are the bytes that it touches: all in blocks of the holder, no
	// byte twice.
	Pieces []Piece
}

type waitKind uint8

const (
	waitNone waitKind = iota
	waitFence
	waitLaunch
	waitPlan
	waitTransfer
	waitStep
	waitDoomed // about to be failed
)

type ticket struct {
	gen       uint32
	state     State
	kind      Kind
	told      bool // its caller knows the outcome
	forgotten bool // its slot is free
	urgent    bool
	waiting   waitKind
	next      int32 // in the list of what it waits for
	prev      int32
	older     int32 // in the aging list, one more than the index
	newer     int32
	first     int32 // piece
	last      int32
	on        int32 // which plan, launch, transfer or step it waits for
	point     kv.Point
	fences    set
	listed    bool // fences is complete
	waiters   list // transfers that come after it
	number    uint64
	peer      Peer
	since     kv.Instant
	holder    Holder
}

type piece struct {
	block, ticket int32
	nextInTicket  int32
	nextInBlock   int32
	prevInBlock   int32
	clears        bool // when it arrives its block needs no zeroing any more
	bytes         kv.Range
}

func (c *Core) transfer(op string, t Transfer) (int32, error) {
	i, gen := unpack(uint64(t))
	if i < 0 || int(i) >= len(c.tickets) {
		return 0, refuse(op, t.String(), ErrInvalid)
	}
	if tk := &c.tickets[i]; tk.state == Over || tk.gen != gen {
		return 0, refuse(op, t.String(), ErrStale)
	}
	return i, nil
}

func (c *Core) transferOf(i int32) Transfer { return Transfer(handle(i, c.tickets[i].gen)) }

// move is the one door between states.
func (c *Core) move(i int32, to State) error {
	tk := &c.tickets[i]
	for _, s := range next[tk.state] {
		if s == to {
			c.countState(tk.state, -1)
			c.countState(to, +1)
			tk.state = to
			return nil
		}
	}
	return refuse("move", fmt.Sprintf("%v is %v, not to become %v", c.transferOf(i), tk.state, to), ErrState)
}

func (c *Core) countState(s State, by int) {
	switch s {
	case Held:
		c.counts.Held += by
	case Posting, Posted:
		c.counts.InFlight += by
	case Poisoned:
		c.counts.Poisoned += by
	}
}

// Transfer asks for a load or a store. It leaves with a [DoPost] action as soon
// as it may: at once, or after inputs to come. A load's blocks that are dirty
// and that it does not cover are zeroed first, in gated modes.
func (c *Core) Transfer(r TransferRequest) (Transfer, error) {
	if err := c.alive(r.Kind.String()); err != nil {
		return 0, err
	}
	h, err := c.holder(r.Kind.String(), r.Holder)
	if err != nil {
		return 0, err
	}
	if len(r.Pieces) == 0 {
		return 0, refuse(r.Kind.String(), r.Holder.String()+" names no bytes", ErrInvalid)
	}
	if r.Kind > Store {
		return 0, refuse("transfer", fmt.Sprintf("kind %d", r.Kind), ErrInvalid)
	}
	i := take(&c.tickets, &c.freeTickets)
	tk := &c.tickets[i]
	c.number++
	*tk = ticket{gen: tk.gen + 1, kind: r.Kind, peer: r.Peer, holder: r.Holder, number: c.number, first: -1, last: -1, since: c.now}
	for k := range r.Pieces {
		if err := c.addPiece(i, h, &r.Pieces[k]); err != nil {
			c.dropPieces(i)
			c.tickets[i].forgotten = true
			c.freeTickets = append(c.freeTickets, i)
			return 0, err
		}
	}
	// Nothing is refused from here on.
	c.must(c.move(i, Held))
	c.clean(i)
	if r.Kind == Load {
		c.counts.Loads++
		for n := c.tickets[i].first; n >= 0; n = c.pieces[n].nextInTicket {
			c.addLoads(c.pieces[n].block, +1)
		}
	} else {
		c.counts.Stores++
	}
	c.aging.add(c, i)
	if c.opts.Mode.Wait == StepOrder && r.Kind == Load {
		c.joinStep(i)
	} else {
		c.evaluate(i)
	}
	if c.tickets[i].state == Held {
		c.counts.HeldAtFirst++
	}
	return c.transferOf(i), nil
}

func (c *Core) addPiece(i, holder int32, p *Piece) error {
	op := c.tickets[i].kind.String()
	b, err := c.live(op, p.Pool, p.Tenancy)
	if err != nil {
		return err
	}
	if c.find(b, holder) < 0 {
		return c.blockError(op, b, p.Tenancy.Generation, ErrNotHeld)
	}
	bytes, err := c.clip(op, b, p.Tenancy.Generation, p.Bytes)
	if err != nil {
		return err
	}
	if c.tickets[i].kind == Store && c.missed(b, bytes) && !c.healing(b, bytes) {
		return c.blockError(op, b, p.Tenancy.Generation, fmt.Errorf("%w: %w", ErrLost, c.causeOf(b)))
	}
	for q := c.blocks[b].pieces; q >= 0; q = c.pieces[q].nextInBlock {
		o := &c.pieces[q]
		if !o.bytes.Overlaps(bytes) {
			continue
		}
		if o.ticket == i {
			return c.blockError(op, b, p.Tenancy.Generation, fmt.Errorf("bytes %v listed twice: %w", bytes, ErrInvalid))
		}
		if c.tickets[o.ticket].state == Poisoned {
			return c.blockError(op, b, p.Tenancy.Generation, ErrPoisoned)
		}
	}
	n := take(&c.pieces, &c.freePieces)
	tk, bl := &c.tickets[i], &c.blocks[b]
	c.pieces[n] = piece{block: b, ticket: i, nextInTicket: -1, nextInBlock: bl.pieces, prevInBlock: -1, bytes: bytes}
	if bl.pieces >= 0 {
		c.pieces[bl.pieces].prevInBlock = n
	}
	bl.pieces = n
	if tk.last >= 0 {
		c.pieces[tk.last].nextInTicket = n
	} else {
		tk.first = n
	}
	tk.last = n
	return nil
}

// dropPieces unlinks a ticket from its blocks; those of them whose tenancy is
// over come back if nothing else holds them.
func (c *Core) dropPieces(i int32) {
	for n := c.tickets[i].first; n >= 0; {
		pc := c.pieces[n]
		if pc.prevInBlock >= 0 {
			c.pieces[pc.prevInBlock].nextInBlock = pc.nextInBlock
		} else {
			c.blocks[pc.block].pieces = pc.nextInBlock
		}
		if pc.nextInBlock >= 0 {
			c.pieces[pc.nextInBlock].prevInBlock = pc.prevInBlock
		}
		c.freePieces = append(c.freePieces, n)
		c.settleBlock(pc.block)
		n = pc.nextInTicket
	}
	c.tickets[i].first, c.tickets[i].last = -1, -1
}

// clean asks, in gated modes, for the zeroing of a transfer's dirty blocks
// before it touches them; a load that overwrites a block wholly does without
// where the mode says so. A block that another transfer may touch already is
// left as it is: either that transfer cleans it, or it is lost.
func (c *Core) clean(i int32) {
	mode := c.opts.Mode
	dirty := launchList{c.launching[:0]}
	c.visit++
	for n := c.tickets[i].first; n >= 0; n = c.pieces[n].nextInTicket {
		b := c.pieces[n].block
		if !c.blocks[b].dirty {
			continue
		}
		whole, alone := c.covers(i, b)
		c.pieces[n].clears = whole || !mode.Gated()
		skip := c.tickets[i].kind == Load && whole && mode.Coverage == ZeroUncovered
		if mode.Gated() && alone && !skip && c.blocks[b].visit != c.visit {
			c.blocks[b].visit = c.visit
			c.addLaunch(&dirty, b, c.blocks[b].owed)
		}
	}
	c.launchAll(&dirty)
}

// covers reports whether a ticket's pieces, which are disjoint, have all bytes
// of a block that its group fills, and whether they are the only ones on it.
func (c *Core) covers(i, b int32) (whole, alone bool) {
	g := &c.groups[c.blocks[b].group]
	left := g.size
	alone = true
	for q := c.blocks[b].pieces; q >= 0; q = c.pieces[q].nextInBlock {
		if c.pieces[q].ticket == i {
			left -= shared(g.Bytes, c.pieces[q].bytes)
		} else {
			alone = false
		}
	}
	return left == 0, alone
}

// shared returns how many of the bytes r has; ranges are sorted and disjoint.
func shared(ranges []kv.Range, r kv.Range) (n uint64) {
	i, _ := slices.BinarySearchFunc(ranges, r.Off+1, func(have kv.Range, off uint64) int { return cmp.Compare(have.End(), off) })
	for ; i < len(ranges) && ranges[i].Off < r.End(); i++ {
		n += min(ranges[i].End(), r.End()) - max(ranges[i].Off, r.Off)
	}
	return n
}
