package loadgate

import (
	"cmp"
	"fmt"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

// Progress lets the gate move: it asks the device which work has run, launches
// what is due, hands transfers that may leave to the posters, and polls those
// that are under way. It handles at most budget results of transfers (0: all)
// and returns how many. It never waits.
//
// The error is the device's: once it is dead, Progress returns the first cause,
// and goes on polling what is under way.
func (g *Gate) Progress(budget int) (int, error) {
	g.mu.Lock()
	defer g.unlock()
	n, err, launch := g.progress(budget)
	return n, cmp.Or(err, launch)
}

// progress returns the device's error apart from that of launches, which is of
// no concern to somebody who waits for something else.
func (g *Gate) progress(budget int) (n int, err, launch error) {
	err = g.catchUp()
	n = g.drainPosters()
	n += g.pollFlying(budget)
	if err == nil {
		launch = g.flush()
		if len(g.unmarks) > 0 {
			g.remark()
		}
	}
	g.act()
	return n, err, launch
}

// ready refuses work for a gate that is closed, and brings it up to date.
func (g *Gate) ready(op string) error {
	if g.closed {
		return fmt.Errorf("loadgate: %s: %w", op, ErrClosed)
	}
	return g.catchUp()
}

// catchUp tells the core how far the device has got, and what time it is.
func (g *Gate) catchUp() error {
	if g.fault != nil {
		return g.fault
	}
	if err := g.core.Dead(); err != nil {
		return deadError(err)
	}
	if g.reg.Moved() {
		if _, err := g.reg.Poll(); err != nil {
			if dead := g.reg.Err(); dead != nil {
				g.die(dead)
				return deadError(dead)
			}
			return err
		}
	} else if err := g.reg.Err(); err != nil {
		g.die(err)
		return deadError(err)
	}
	if g.feed.News() {
		g.points = g.feed.Next(g.points[:0])
		for _, p := range g.points {
			if err := g.core.Fired(p.Timeline, p.Seq); err != nil {
				return err
			}
		}
	}
	if g.limit > 0 {
		g.must(g.core.Tick(kv.Instant(g.clk.Now()))) // the clock never runs backwards
	}
	if g.core.Pending() {
		g.act()
	}
	return nil
}

func deadError(cause error) error { return fmt.Errorf("loadgate: %w: %w", core.ErrDead, cause) }

// must takes what the core says to a result that it can not but accept. If it
// does refuse, gate and core have lost each other: the first such error is
// kept, and returned by every call that hands the gate work.
func (g *Gate) must(err error) {
	if err != nil && g.fault == nil {
		g.fault = fmt.Errorf("loadgate: internal: %w", err)
	}
}

// act carries out what the core asks for. Launches are only collected.
func (g *Gate) act() {
	for g.core.Pending() {
		g.actions = g.core.Actions(g.actions[:0])
		for i := range g.actions {
			a := &g.actions[i]
			switch a.Kind {
			case core.DoLaunch:
				g.launches = append(g.launches, a.Launch)
			case core.DoPost:
				t := g.bySlot[a.Transfer.Slot()]
				t.queued = true
				t.stage.Store(stageQueued)
				if g.listener.Left != nil {
					g.note(notice{kind: noticeLeft, transfer: g.info(t, nil)})
				}
				g.leaving = append(g.leaving, t)
			case core.TellDone:
				g.tellDone(g.bySlot[a.Transfer.Slot()], a.Err)
			case core.TellFailed:
				t := g.bySlot[a.Transfer.Slot()]
				if g.listener.Failed != nil {
					g.note(notice{kind: noticeFailed, holder: a.Holder, transfer: g.info(t, a.Err)})
				}
				if a.Holder != t.holder {
					g.endedNews(Ended{Transfer: Transfer{g, t.id}, Kind: t.kind, Holder: a.Holder, Shared: true, Err: a.Err})
				}
			case core.TellOverdue:
				if g.listener.Overdue != nil {
					g.note(notice{kind: noticeOverdue, transfer: g.info(g.bySlot[a.Transfer.Slot()], a.Err)})
				}
			}
		}
		if len(g.leaving) > 0 {
			g.posters.put(g.leaving)
			clear(g.leaving)
			g.leaving = g.leaving[:0]
			g.clk.Notify()
		}
		g.retire()
	}
}

func (g *Gate) tellDone(t *ticket, err error) {
	t.err = err
	t.over.Store(true)
	g.loadOver(t.id, err)
	g.woke = true
	if g.listener.Done != nil {
		g.note(notice{kind: noticeDone, transfer: g.info(t, err)})
	}
	if !t.told {
		g.endedNews(Ended{Transfer: Transfer{g, t.id}, Kind: t.kind, Holder: t.holder, Err: err})
	}
	if g.core.TransferState(t.id) == core.Over {
		g.ended = append(g.ended, t)
	}
}

// retire closes transfers that the core is done with.
func (g *Gate) retire() {
	for i, t := range g.ended {
		g.ended[i] = nil
		if !t.quiet {
			t.quiet = true
			delete(g.handed, t.transfer)
			if err := t.transfer.Close(); err != nil {
				g.unclosed = append(g.unclosed, t.transfer)
			}
			g.recycle(t)
		}
	}
	g.ended = g.ended[:0]
}
