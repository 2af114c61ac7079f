package core

import "fmt"

// evaluate lets a held ticket go, or puts it where it waits for the first thing
// that is in its way.
func (c *Core) evaluate(i int32) {
	tk := &c.tickets[i]
	if tk.kind == Load && c.opts.Mode.Wait == AtOnce {
		c.post(i)
		return
	}
	if !tk.listed && !c.listFences(i) {
		return
	}
	if p, wait := c.unfired(tk.fences); wait {
		tk.waiting, tk.point = waitFence, p
		l := c.line(p.Timeline)
		c.push(l.waiters.at(int(p.Seq-l.done-1)), i)
		return
	}
	c.post(i)
}

// listFences finds what a ticket has to wait for. While that is something
// without a fence the ticket is put to wait for it, and the answer is false.
func (c *Core) listFences(i int32) bool {
	tk := &c.tickets[i]
	var s set
	for n := tk.first; n >= 0; n = c.pieces[n].nextInTicket {
		pc := &c.pieces[n]
		bl := &c.blocks[pc.block]
		if bl.launch >= 0 {
			c.waitOn(i, waitLaunch, bl.launch, &c.launchs[bl.launch].waiters)
			return false
		}
		if o := c.transferBefore(pc, tk); o >= 0 {
			if c.tickets[o].state == Poisoned {
				c.end(i, c.blockError(tk.kind.String(), pc.block, c.view.at[pc.block].gen, ErrPoisoned))
				return false
			}
			c.waitOn(i, waitTransfer, o, &c.tickets[o].waiters)
			return false
		}
		if k := c.planBefore(pc.block, tk.kind, tk.number); k >= 0 {
			c.waitOn(i, waitPlan, k, &c.plans[k].waiters)
			return false
		}
		if tk.kind == Store && c.missed(pc.block, pc.bytes) { // the load that it waited for
			c.end(i, c.blockError("store", pc.block, c.view.at[pc.block].gen, fmt.Errorf("%w: %w", ErrLost, c.causeOf(pc.block))))
			return false
		}
		s = c.union(s, c.uses(pc.block))
	}
	tk.fences, tk.listed = s, true
	return true
}

// transferBefore returns an earlier transfer that touches the same bytes, one
// of the two writing them; -1 is none.
func (c *Core) transferBefore(pc *piece, tk *ticket) int32 {
	for q := c.blocks[pc.block].pieces; q >= 0; q = c.pieces[q].nextInBlock {
		o := &c.pieces[q]
		ot := &c.tickets[o.ticket]
		if ot.number < tk.number && (ot.kind == Load || tk.kind == Load) && o.bytes.Overlaps(pc.bytes) {
			return o.ticket
		}
	}
	return -1
}

func (c *Core) waitOn(i int32, kind waitKind, on int32, l *list) {
	tk := &c.tickets[i]
	tk.waiting, tk.on = kind, on
	c.push(l, i)
}

// unwait takes a ticket out of the list that it waits in.
func (c *Core) unwait(i int32) {
	tk := &c.tickets[i]
	switch tk.waiting {
	case waitFence:
		l := c.line(tk.point.Timeline)
		c.unlink(l.waiters.at(int(tk.point.Seq-l.done-1)), i)
	case waitLaunch:
		c.unlink(&c.launchs[tk.on].waiters, i)
	case waitPlan:
		c.unlink(&c.plans[tk.on].waiters, i)
	case waitTransfer:
		c.unlink(&c.tickets[tk.on].waiters, i)
	case waitStep:
		c.leaveStep(i)
	}
	tk.waiting = waitNone
}

// wakeAll evaluates the tickets of a list that has been taken off its place.
func (c *Core) wakeAll(l list) {
	for t := l.head; t != 0; {
		tk := &c.tickets[t-1]
		following := tk.next
		tk.next, tk.prev, tk.waiting = 0, 0, waitNone
		c.evaluate(t - 1)
		t = following
	}
}

func (c *Core) post(i int32) {
	c.aging.remove(c, i)
	c.unhurry(i)
	c.must(c.move(i, Posting))
	c.emit(Action{Kind: DoPost, Transfer: c.transferOf(i), Holder: c.tickets[i].holder})
}
