package core

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// Plan is one step's access to blocks, from the moment the scheduler names them
// until its work is in the streams or it is given up.
type Plan uint64

func (p Plan) String() string {
	i, gen := unpack(uint64(p))
	return fmt.Sprintf("plan %d.%d", i, gen)
}

// Slot returns a small number that no other plan of the core has until this one
// is closed, for tables beside the core.
func (p Plan) Slot() int {
	i, _ := unpack(uint64(p))
	return int(i)
}

// Access names bytes of a single tenancy for a plan, beside the holders. The
// zero Range is the whole block.
//
// A step writes through its holders only behind the bytes that a store covers.
// Whoever writes elsewhere says so here.
type Access struct {
	Pool    kv.PoolID
	Tenancy kv.Tenancy
	Range   kv.Range
	Write   bool
}

type planState uint8

const (
	planFree planState = iota
	planOpen
	planBegun // its waits are known; whatever comes now is after it
)

type plan struct {
	gen     uint32
	state   planState
	number  uint64
	holders []int32
	extra   []Access
	waiters list // transfers that come after it
}

func (c *Core) plan(op string, p Plan, want ...planState) (int32, error) {
	i, gen := unpack(uint64(p))
	if i < 0 || int(i) >= len(c.plans) {
		return 0, refuse(op, p.String(), ErrInvalid)
	}
	pl := &c.plans[i]
	if pl.state == planFree || pl.gen != gen {
		return 0, refuse(op, p.String(), ErrStale)
	}
	for _, s := range want {
		if s == pl.state {
			return i, nil
		}
	}
	return 0, refuse(op, p.String(), ErrState)
}

// Plan opens a use of holders and single tenancies. It costs O(holders). Until
// it is closed by [Core.Submitted] or [Core.GiveUp], none of their blocks comes
// back.
func (c *Core) Plan(holders []Holder, extra []Access) (Plan, error) {
	if err := c.alive("plan"); err != nil {
		return 0, err
	}
	c.visit++
	for _, h := range holders {
		i, err := c.holder("plan", h)
		if err != nil {
			return 0, err
		}
		if c.holders[i].visit == c.visit {
			return 0, refuse("plan", h.String()+" listed twice", ErrInvalid)
		}
		c.holders[i].visit = c.visit
	}
	for _, a := range extra {
		b, err := c.live("plan", a.Pool, a.Tenancy)
		if err != nil {
			return 0, err
		}
		if a.Range == (kv.Range{}) {
			continue
		}
		if _, err := c.clip("plan", b, a.Tenancy.Generation, a.Range); err != nil {
			return 0, err
		}
	}
	k := take(&c.plans, &c.freePlans)
	pl := &c.plans[k]
	c.number++
	pl.gen++
	pl.state, pl.number, pl.waiters = planOpen, c.number, list{}
	pl.holders, pl.extra = pl.holders[:0], append(pl.extra[:0], extra...)
	for _, h := range holders {
		i, _ := unpack(uint64(h))
		c.holders[i].plans++
		pl.holders = append(pl.holders, i)
	}
	for i := range pl.extra {
		a := &pl.extra[i]
		if a.Range == (kv.Range{}) {
			a.Range = kv.WholeBlock
		}
		c.blocks[c.at(*a)].plans++
	}
	return Plan(handle(k, pl.gen)), nil
}

func (c *Core) at(a Access) int32 { return c.pools[a.Pool].base + int32(a.Tenancy.Block) }

// Prepare checks that a plan could begin, and asks for the zeroing of those of
// its blocks that are dirty: the launches are among the next actions. It
// refuses blocks whose load is unfinished ([ErrLoading]) or did not arrive
// ([ErrLost], with the cause), and bytes that are being sent ([ErrSending]).
func (c *Core) Prepare(p Plan) error {
	k, err := c.checkPlan("launch", p)
	if err != nil {
		return err
	}
	dirty := launchList{c.launching[:0]}
	c.visit++
	var sent error // a dirty block that is being sent
	add := func(b int32) {
		if bl := &c.blocks[b]; bl.dirty && bl.pieces >= 0 && sent == nil {
			sent = c.blockError("launch", b, c.view.at[b].gen, ErrSending)
		}
		c.gather(&dirty, b)
	}
	for _, i := range c.plans[k].holders {
		// New blocks are in front of the list: it is followed no further than to
		// the last dirty one.
		left := c.holders[i].dirty
		for n := c.holders[i].nodes; n >= 0 && left > 0; n = c.nodes[n].nextInHolder {
			if c.blocks[c.nodes[n].block].dirty {
				left--
				add(c.nodes[n].block)
			}
		}
	}
	for _, a := range c.plans[k].extra {
		add(c.at(a))
	}
	c.launchAll(&dirty)
	return sent
}

// gather adds a block to a list of zeroing to launch if it is dirty, no
// transfer may touch it, and it is not there yet.
func (c *Core) gather(l *launchList, b int32) {
	if bl := &c.blocks[b]; bl.dirty && bl.pieces < 0 && bl.launch < 0 && bl.visit != c.visit {
		bl.visit = c.visit
		c.addLaunch(l, b, bl.owed)
	}
}

// PlanOpen reports whether a plan is not closed.
func (c *Core) PlanOpen(p Plan) bool {
	i, gen := unpack(uint64(p))
	return i >= 0 && int(i) < len(c.plans) && c.plans[i].state != planFree && c.plans[i].gen == gen
}

func (c *Core) checkPlan(op string, p Plan) (int32, error) {
	if err := c.alive(op); err != nil {
		return 0, err
	}
	k, err := c.plan(op, p, planOpen)
	if err != nil {
		return 0, err
	}
	pl := &c.plans[k]
	for _, i := range pl.holders {
		hd := &c.holders[i]
		if hd.loads > 0 {
			return 0, refuse(op, c.handleOf(i).String(), ErrLoading)
		}
		if hd.lost > 0 {
			return 0, refuse(op, c.handleOf(i).String(), fmt.Errorf("%w: %w", ErrLost, hd.cause))
		}
	}
	for _, a := range pl.extra {
		b := c.at(a)
		if c.missed(b, a.Range) {
			return 0, c.blockError(op, b, a.Tenancy.Generation, fmt.Errorf("%w: %w", ErrLost, c.causeOf(b)))
		}
		for q := c.blocks[b].pieces; q >= 0; q = c.pieces[q].nextInBlock {
			pc := &c.pieces[q]
			tk := &c.tickets[pc.ticket]
			if !pc.bytes.Overlaps(a.Range) {
				continue
			}
			if tk.kind == Load {
				return 0, c.blockError(op, b, a.Tenancy.Generation, ErrLoading)
			}
			// A store that waits for this very plan does not stand in its way.
			if a.Write && !(tk.state == Held && tk.number > pl.number) {
				return 0, c.blockError(op, b, a.Tenancy.Generation, ErrSending)
			}
		}
	}
	return k, nil
}

func (c *Core) handleOf(i int32) Holder { return Holder(handle(i, c.holders[i].gen)) }

// Begin returns what the step has to wait for on the device: the zeroing of its
// own blocks, and work on them by others. Zeroing that has no fence yet is
// returned by its launches: they go before the step, and it waits for their
// marks. From here on whatever is asked for comes after this step, so the
// caller launches it, or gives it up, at once. The
// slices are valid until the next call.
func (c *Core) Begin(p Plan) (waits []kv.Point, launches []LaunchID, err error) {
	k, err := c.checkPlan("launch", p)
	if err != nil {
		return nil, nil, err
	}
	pl := &c.plans[k]
	for _, i := range pl.holders {
		if hd := &c.holders[i]; hd.dirty > 0 {
			return nil, nil, refuse("launch", c.handleOf(i).String(), ErrUnready)
		}
	}
	for _, a := range pl.extra {
		b := c.at(a)
		if bl := &c.blocks[b]; bl.dirty {
			return nil, nil, c.blockError("launch", b, a.Tenancy.Generation, ErrUnready)
		}
	}
	c.before = c.before[:0]
	var s set
	for _, i := range pl.holders {
		hd := &c.holders[i]
		hd.begun++
		left := hd.pending
		for n := hd.nodes; n >= 0 && left > 0; n = c.nodes[n].nextInHolder {
			if b := c.nodes[n].block; c.blocks[b].launch >= 0 {
				left--
				c.goesBefore(b)
			}
		}
		if hd.ready == 0 {
			continue
		}
		if c.fired(hd.ready) {
			hd.ready = 0
			continue
		}
		s = c.union(s, hd.ready)
	}
	for _, a := range pl.extra {
		s = c.union(s, c.uses(c.at(a)))
		c.goesBefore(c.at(a))
	}
	pl.state = planBegun
	return c.points(s), c.before, nil
}

func (c *Core) goesBefore(b int32) {
	k := LaunchID(c.blocks[b].launch)
	if k >= 0 && !slices.Contains(c.before, k) {
		c.before = append(c.before, k)
	}
}

// points copies the unfired points of a set to where the caller may read them.
func (c *Core) points(s set) []kv.Point {
	c.waits = c.waits[:0]
	var one [1]kv.Point
	for _, p := range c.pointsOf(s, &one) {
		if !c.pointFired(p) {
			c.waits = append(c.waits, p)
		}
	}
	return c.waits
}

// Submitted closes a plan whose work is in the streams, covered by the given
// marks. It costs O(holders).
func (c *Core) Submitted(p Plan, marks ...kv.Point) error {
	k, err := c.plan("submitted", p, planBegun)
	if err != nil {
		return err
	}
	for _, m := range marks {
		if err := c.checkMark("submitted", m); err != nil {
			return err
		}
	}
	c.close(k, c.setOf(marks))
	return nil
}

// GiveUp closes a plan whose work was not launched and never will be.
func (c *Core) GiveUp(p Plan) error {
	k, err := c.plan("give up", p, planOpen, planBegun)
	if err != nil {
		return err
	}
	c.close(k, 0)
	return nil
}

// begunSingly reports whether a step that has begun names a block by itself.
func (c *Core) begunSingly(b int32) bool {
	if c.blocks[b].plans == 0 {
		return false
	}
	for k := range c.plans {
		if c.plans[k].state != planBegun {
			continue
		}
		for _, a := range c.plans[k].extra {
			if c.at(a) == b {
				return true
			}
		}
	}
	return false
}

func (c *Core) close(k int32, marks set) {
	pl := &c.plans[k]
	for _, i := range pl.holders {
		hd := &c.holders[i]
		if marks != 0 {
			hd.last = c.union(hd.last, marks)
			hd.steps++
		}
		hd.plans--
		if pl.state == planBegun {
			hd.begun--
		}
		if hd.dropped && hd.plans == 0 {
			c.dropHolder(i)
		}
	}
	for _, a := range pl.extra {
		b := c.at(a)
		bl := &c.blocks[b]
		bl.plans--
		bl.stamp = c.union(bl.stamp, marks)
		c.settleBlock(b)
	}
	pl.state = planFree
	waiters := pl.waiters
	pl.waiters = list{}
	c.freePlans = append(c.freePlans, k)
	c.wakeAll(waiters)
}

// planBefore returns a plan that a transfer on the block has to wait for: one
// that has begun, or, for a store, one that was opened before it. -1 is none.
func (c *Core) planBefore(b int32, kind Kind, number uint64) int32 {
	bl := &c.blocks[b]
	busy := bl.plans > 0
	for n := bl.nodes; n >= 0 && !busy; n = c.nodes[n].nextInBlock {
		hd := &c.holders[c.nodes[n].holder]
		busy = hd.begun > 0 || kind == Store && hd.plans > 0
	}
	if !busy {
		return -1
	}
	for k := range c.plans {
		pl := &c.plans[k]
		if pl.state == planFree || pl.number > number || kind == Load && pl.state != planBegun {
			continue
		}
		for _, a := range pl.extra {
			if c.at(a) == b {
				return int32(k)
			}
		}
		for _, i := range pl.holders {
			if c.find(b, i) >= 0 {
				return int32(k)
			}
		}
	}
	return -1
}
