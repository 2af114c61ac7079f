package core

import (
	"errors"
	"fmt"
)

// Posted tells that the transport has taken a transfer.
func (c *Core) Posted(t Transfer) error {
	i, err := c.transfer("posted", t)
	if err != nil {
		return err
	}
	if err := c.move(i, Posted); err != nil {
		return err
	}
	if c.dead != nil {
		return c.failed(i, death(c.dead), false)
	}
	return nil
}

// PostFailed tells that posting a transfer went wrong. quiet says that it is
// proven that nothing of it was handed to the transport; otherwise some of it
// may be on its way, and its blocks are poisoned.
func (c *Core) PostFailed(t Transfer, cause error, quiet bool) error {
	i, err := c.transfer("post failed", t)
	if err != nil {
		return err
	}
	if c.tickets[i].state != Posting {
		return refuse("post failed", fmt.Sprintf("%v is %v", t, c.tickets[i].state), ErrState)
	}
	if quiet && c.tickets[i].told && errors.Is(cause, ErrCanceled) {
		c.counts.Abandoned-- // the cancel was in time after all
		c.counts.Withdrawn++
	}
	return c.failed(i, cause, quiet)
}

// Finished tells the end of a posted transfer: nil when all its bytes have
// arrived. A cause is no proof that nothing touches its memory any more: unless
// quiet says so, its blocks are poisoned. Success is proof, also after that.
func (c *Core) Finished(t Transfer, cause error, quiet bool) error {
	i, err := c.transfer("finished", t)
	if err != nil {
		return err
	}
	switch s := c.tickets[i].state; {
	case s == Posted, s == Poisoned && (cause == nil || quiet):
	case s == Poisoned:
		return nil // nothing new
	default:
		return refuse("finished", fmt.Sprintf("%v is %v", t, s), ErrState)
	}
	if cause != nil {
		return c.failed(i, cause, quiet)
	}
	c.end(i, nil)
	return nil
}

func (c *Core) failed(i int32, cause error, quiet bool) error {
	if cause == nil {
		return refuse("transfer failed", c.transferOf(i).String()+" without a cause", ErrInvalid)
	}
	if quiet {
		c.end(i, cause)
		return nil
	}
	c.tell(i, cause)
	if c.tickets[i].state != Poisoned {
		c.must(c.move(i, Poisoned))
	}
	c.wakeWaiters(i)
	return nil
}

// Cancel ends a transfer for its caller. A held one is withdrawn, and nothing
// of it is posted any more; withdrawn is then true. A later one runs on: its
// blocks stay in quarantine until it is quiet. A second Cancel is refused.
func (c *Core) Cancel(t Transfer) (withdrawn bool, err error) {
	i, err := c.transfer("cancel", t)
	if err != nil {
		return false, err
	}
	if c.tickets[i].told {
		return false, refuse("cancel", t.String()+" is over already", ErrState)
	}
	if c.tickets[i].state == Held {
		c.counts.Withdrawn++
		c.end(i, ErrCanceled)
		return true, nil
	}
	c.counts.Abandoned++
	c.tell(i, ErrCanceled)
	return false, nil
}

// PeerLost fails all that depends on a peer: held transfers end, posted ones
// end for their callers and leave their blocks poisoned.
func (c *Core) PeerLost(p Peer, cause error) error {
	if cause == nil {
		return refuse("peer lost", fmt.Sprintf("peer %d without a cause", p), ErrInvalid)
	}
	c.failWhere(func(tk *ticket) bool { return tk.peer == p }, fmt.Errorf("%w: %w", ErrPeerLost, cause))
	return nil
}

// Die fails everything: the device is dead. The first cause is kept. Transfers
// in flight are told as failed, and their blocks stay poisoned.
func (c *Core) Die(cause error) {
	if c.dead != nil {
		return
	}
	if cause == nil {
		cause = ErrDead
	}
	c.dead = cause
	c.failWhere(func(*ticket) bool { return true }, death(cause))
}

// death is what a transfer fails with when the device has died of a cause.
func death(cause error) error {
	if errors.Is(cause, ErrDead) {
		return cause
	}
	return fmt.Errorf("%w: %w", ErrDead, cause)
}

// Dead returns the cause of the device's death, or nil.
func (c *Core) Dead() error { return c.dead }

// failWhere fails held and posted transfers that match. What is being posted is
// left alone: its result is yet to come.
func (c *Core) failWhere(match func(*ticket) bool, cause error) {
	var doomed list
	for i := range c.tickets {
		if match(&c.tickets[i]) {
			c.doom(&doomed, int32(i))
		}
	}
	c.endDoomed(doomed, cause)
	for i := range c.tickets {
		if tk := &c.tickets[i]; tk.state == Posted && match(tk) {
			c.must(c.failed(int32(i), cause, false))
		}
	}
}

// doom takes a ticket that is held out of the list that it waits in. Those that
// are to fail together are all taken out before the first of them is told, so
// that none is woken into posting by the end of another.
func (c *Core) doom(doomed *list, i int32) {
	if tk := &c.tickets[i]; tk.state == Held && tk.waiting != waitDoomed {
		c.unwait(i)
		tk.waiting = waitDoomed
		c.push(doomed, i)
	}
}

func (c *Core) endDoomed(doomed list, cause error) {
	for t := doomed.head; t != 0; {
		tk := &c.tickets[t-1]
		following := tk.next
		tk.next, tk.prev, tk.waiting = 0, 0, waitNone
		c.end(t-1, cause)
		t = following
	}
}

// tell passes the outcome on, once: to the caller of the transfer and, when a
// load did not arrive, to every holder of one of its blocks.
func (c *Core) tell(i int32, cause error) {
	tk := &c.tickets[i]
	if tk.told {
		return
	}
	tk.told = true
	switch {
	case cause == nil:
		c.counts.Succeeded++
	case !errors.Is(cause, ErrCanceled):
		c.counts.Failed++
	}
	c.emit(Action{Kind: TellDone, Transfer: c.transferOf(i), Holder: tk.holder, Err: cause})
	if tk.kind != Load {
		return
	}
	for n := tk.first; n >= 0; n = c.pieces[n].nextInTicket {
		pc := &c.pieces[n]
		c.addLoads(pc.block, -1)
		if cause == nil {
			c.arrived(pc)
		} else {
			c.missing(i, pc, cause)
		}
	}
}

func (c *Core) arrived(pc *piece) {
	if pc.clears {
		c.setDirty(pc.block, false)
	}
	c.bring(pc.block, pc.bytes)
}

// missing marks a block as lost. It is not zeroed for that: other bytes of it
// may be good, and no step may use it before a load has brought all the missing
// ones, or its owner asked for zeros.
func (c *Core) missing(i int32, pc *piece, cause error) {
	bl := &c.blocks[pc.block]
	c.lose(pc.block, pc.bytes, cause)
	for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
		k := c.nodes[n].holder
		hd := &c.holders[k]
		if hd.cause == nil {
			hd.cause = cause
		}
		if hd.told == c.tickets[i].number || hd.dropped {
			continue
		}
		hd.told = c.tickets[i].number
		c.emit(Action{Kind: TellFailed, Transfer: c.transferOf(i), Holder: c.handleOf(k), Err: cause})
	}
}

// end closes a transfer that is quiet: its blocks may come back.
func (c *Core) end(i int32, cause error) {
	c.tell(i, cause)
	tk := &c.tickets[i]
	if tk.state == Held {
		c.unwait(i)
		c.unhurry(i)
		c.aging.remove(c, i)
	}
	c.must(c.move(i, Over))
	tk.fences = 0
	c.dropPieces(i)
	c.wakeWaiters(i)
}

// Forget frees the slot of a transfer that is over. Its handle, which was dead
// already, may be that of nobody from then on.
func (c *Core) Forget(t Transfer) error {
	i, gen := unpack(uint64(t))
	if i < 0 || int(i) >= len(c.tickets) || c.tickets[i].gen != gen || c.tickets[i].state != Over || c.tickets[i].forgotten {
		return refuse("forget", t.String(), ErrState)
	}
	c.tickets[i].forgotten = true
	c.freeTickets = append(c.freeTickets, i)
	return nil
}

func (c *Core) wakeWaiters(i int32) {
	l := c.tickets[i].waiters
	c.tickets[i].waiters = list{}
	c.wakeAll(l)
}
