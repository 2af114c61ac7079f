package core

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// Filling says what a launch of the gate writes into its blocks.
type Filling uint8

const (
	// Zeroing writes zero.
	Zeroing Filling = iota
	// Resetting writes the template of a state row, or zero.
	Resetting
)

func (f Filling) String() string {
	switch f {
	case Zeroing:
		return "zero"
	case Resetting:
		return "reset"
	}
	return fmt.Sprintf("filling %d", uint8(f))
}

// Where says which stream a launch goes to.
type Where uint8

const (
	OnCompute Where = iota // the step's stream, in program order
	OnIdle                 // the gate's stream for what waits for nothing
	OnBusy                 // the gate's stream for what waits for earlier uses
)

func (w Where) String() string {
	switch w {
	case OnCompute:
		return "compute"
	case OnIdle:
		return "idle"
	case OnBusy:
		return "busy"
	}
	return fmt.Sprintf("where %d", uint8(w))
}

// LaunchID names a launch that has left the core and has no fence yet.
type LaunchID int32

// Launch is what the runtime has to launch: one kernel over blocks of one group,
// on one stream, after waits on the device. No block is in it twice.
type Launch struct {
	Filling Filling
	Pool    kv.PoolID
	Group   kv.Group
	Where   Where
	Blocks  []kv.Block
	Waits   []kv.Point
}

type launch struct {
	Launch
	used    bool
	waits   set
	at      []int32 // Blocks as places in Core.blocks
	waiters list
}

// launchList collects blocks of a call into at most one launch for each group
// and stream.
type launchList struct{ ids []int32 }

// Zero asks for blocks to be filled: the launches are among the next actions.
// Negative ids are skipped and duplicates count once. A block that a load
// covers wholly may say so; the mode decides whether it is filled then.
//
// It refuses blocks that a transfer may touch ([ErrTransfer]) and blocks of a
// step that is being launched ([ErrInUse]).
func (c *Core) Zero(r ZeroRequest) error {
	if err := c.alive("zero"); err != nil {
		return err
	}
	if int(r.Pool) >= len(c.pools) || r.Filling > Resetting {
		return refuse("zero", fmt.Sprintf("pool %d with %v", r.Pool, r.Filling), ErrInvalid)
	}
	c.visit++
	for _, t := range r.Tenancies {
		if t.Block < 0 {
			continue
		}
		b, err := c.live("zero", r.Pool, t)
		if err != nil {
			return err
		}
		bl := &c.blocks[b]
		switch {
		case bl.pieces >= 0:
			return c.blockError("zero", b, t.Generation, ErrTransfer)
		case c.begunSingly(b):
			return c.blockError("zero", b, t.Generation, ErrInUse)
		}
		for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
			if c.holders[c.nodes[n].holder].begun > 0 {
				return c.blockError("zero", b, t.Generation, ErrInUse)
			}
		}
	}
	if r.Covered && c.opts.Mode.Coverage == ZeroUncovered {
		// Owed until a load has overwritten the block wholly, or a step or a load
		// of a part needs it.
		for _, t := range r.Tenancies {
			if t.Block < 0 {
				continue
			}
			b := c.pools[r.Pool].base + int32(t.Block)
			if c.blocks[b].launch >= 0 {
				c.unlaunch(b)
			}
			c.setDirty(b, true)
			c.blocks[b].owed = r.Filling
		}
		return nil
	}
	l := launchList{c.launching[:0]}
	for _, t := range r.Tenancies {
		if t.Block < 0 {
			continue
		}
		b := c.pools[r.Pool].base + int32(t.Block)
		if c.blocks[b].visit != c.visit {
			c.blocks[b].visit = c.visit
			c.unlose(b) // whoever asks for zeros wants no load any more
			if k := c.blocks[b].launch; k >= 0 {
				if c.launchs[k].Filling == r.Filling {
					continue // it is asked for, and nothing has come in between
				}
				c.unlaunch(b)
			}
			c.addLaunch(&l, b, r.Filling)
		}
	}
	c.launchAll(&l)
	return nil
}

// ZeroRequest is the argument of [Core.Zero].
type ZeroRequest struct {
	Filling   Filling
	Pool      kv.PoolID
	Tenancies []kv.Tenancy
	Covered   bool
}

// addLaunch puts a block into the launch of its group, stream and filling.
func (c *Core) addLaunch(l *launchList, b int32, f Filling) {
	p, id := c.poolOf(b)
	g := c.blocks[b].group
	waits := c.uses(b)
	where := OnCompute
	switch {
	case c.opts.Mode.Place == IdleBusy && !c.fired(waits):
		where = OnBusy
	case c.opts.Mode.Place != InLine:
		where = OnIdle
	}
	k := int32(-1)
	for _, have := range l.ids {
		if ln := &c.launchs[have]; ln.Group == g && ln.Where == where && ln.Filling == f {
			k = have
		}
	}
	if k < 0 {
		k = take(&c.launchs, &c.freeLaunchs)
		ln := &c.launchs[k]
		ln.used, ln.waits, ln.waiters = true, 0, list{}
		ln.Launch = Launch{Filling: f, Pool: p, Group: g, Where: where, Blocks: ln.Blocks[:0], Waits: ln.Waits[:0]}
		ln.at = ln.at[:0]
		l.ids = append(l.ids, k)
	}
	ln := &c.launchs[k]
	ln.Blocks = append(ln.Blocks, id)
	ln.at = append(ln.at, b)
	ln.waits = c.union(ln.waits, waits)
	c.setDirty(b, false)
	c.blocks[b].launch, c.blocks[b].owed = k, f
	for n := c.blocks[b].nodes; n >= 0; n = c.nodes[n].nextInBlock {
		c.holders[c.nodes[n].holder].pending++
	}
}

// unlaunch takes a block out of a launch that has not been carried out.
func (c *Core) unlaunch(b int32) {
	ln := &c.launchs[c.blocks[b].launch]
	i := slices.Index(ln.at, b)
	ln.at = slices.Delete(ln.at, i, i+1)
	ln.Blocks = slices.Delete(ln.Blocks, i, i+1)
	c.blocks[b].launch = -1
	for n := c.blocks[b].nodes; n >= 0; n = c.nodes[n].nextInBlock {
		c.holders[c.nodes[n].holder].pending--
	}
	c.setDirty(b, true)
	c.counts.ZeroedBlocks--
}

func (c *Core) launchAll(l *launchList) {
	c.launching = l.ids
	for _, k := range l.ids {
		ln := &c.launchs[k]
		var one [1]kv.Point
		for _, p := range c.pointsOf(ln.waits, &one) {
			if !c.pointFired(p) {
				ln.Waits = append(ln.Waits, p)
			}
		}
		ln.waits = 0
		c.counts.Launches++
		c.counts.ZeroedBlocks += uint64(len(ln.at))
		c.emit(Action{Kind: DoLaunch, Launch: LaunchID(k)})
	}
}

// Launch returns what a launch consists of. It is valid until its result is
// told.
func (c *Core) Launch(id LaunchID) (*Launch, error) {
	if id < 0 || int(id) >= len(c.launchs) || !c.launchs[id].used {
		return nil, fmt.Errorf("loadgate: launch %d: %w", id, ErrStale)
	}
	return &c.launchs[id].Launch, nil
}

// Launched tells that a launch is in its stream and which mark covers it. The
// mark may be one that is yet to be recorded: it then fires with the next good
// mark of its timeline.
func (c *Core) Launched(id LaunchID, mark kv.Point) error {
	if _, err := c.Launch(id); err != nil {
		return err
	}
	if err := c.checkMark("launched", mark); err != nil {
		return err
	}
	s := c.single(mark)
	if c.opts.Mode.Wait == StepOrder {
		c.steps.current.fences = c.union(c.steps.current.fences, s)
	}
	c.endLaunch(int32(id), s)
	return nil
}

// LaunchFailed tells that a launch did not reach its stream, or not as a whole.
// Its blocks are dirty again, and held transfers that touch them fail with the
// cause, whatever they wait for at the moment. If a part of it is in the
// stream, mark covers that part; otherwise it is the zero Point.
func (c *Core) LaunchFailed(id LaunchID, mark kv.Point, cause error) error {
	if _, err := c.Launch(id); err != nil {
		return err
	}
	if cause == nil {
		return fmt.Errorf("loadgate: launch %d failed without a cause: %w", id, ErrInvalid)
	}
	if mark != (kv.Point{}) {
		if err := c.checkMark("launch failed", mark); err != nil {
			return err
		}
	}
	var doomed list
	for _, b := range c.launchs[id].at {
		c.setDirty(b, true) // what was asked for is owed still
		for q := c.blocks[b].pieces; q >= 0; q = c.pieces[q].nextInBlock {
			c.doom(&doomed, c.pieces[q].ticket)
		}
	}
	c.endLaunch(int32(id), c.single(mark))
	c.endDoomed(doomed, cause)
	return nil
}

func (c *Core) endLaunch(k int32, s set) {
	for _, b := range c.launchs[k].at {
		bl := &c.blocks[b]
		bl.launch = -1
		bl.zeroed = c.union(bl.zeroed, s)
		for n := bl.nodes; n >= 0; n = c.nodes[n].nextInBlock {
			hd := &c.holders[c.nodes[n].holder]
			hd.pending--
			hd.ready = c.union(hd.ready, s)
		}
		c.settleBlock(b)
	}
	ln := &c.launchs[k]
	ln.used = false
	waiters := ln.waiters
	ln.waiters = list{}
	c.freeLaunchs = append(c.freeLaunchs, k)
	c.wakeAll(waiters)
}
