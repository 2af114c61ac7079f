package loadgate

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/clock"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// ErrClosed says that the gate has been closed.
var ErrClosed = errors.New("the gate is closed")

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
	return g.progress(budget)
}

func (g *Gate) progress(budget int) (int, error) {
	err := g.catchUp()
	n := g.drainPosters()
	n += g.pollFlying(budget)
	if err == nil {
		err = g.flush()
		if len(g.unmarks) > 0 {
			g.remark()
		}
	}
	g.act()
	return n, err
}

// catchUp tells the core how far the device has got, and what time it is.
func (g *Gate) catchUp() error {
	if err := g.core.Dead(); err != nil {
		return fmt.Errorf("loadgate: %w: %w", core.ErrDead, err)
	}
	if g.reg.Moved() {
		if _, err := g.reg.Poll(); err != nil {
			if dead := g.reg.Err(); dead != nil {
				g.die(dead)
				return fmt.Errorf("loadgate: %w: %w", core.ErrDead, dead)
			}
			return err
		}
	} else if err := g.reg.Err(); err != nil {
		g.die(err)
		return fmt.Errorf("loadgate: %w: %w", core.ErrDead, err)
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
		_ = g.core.Tick(kv.Instant(g.clk.Now())) // the clock never runs backwards
	}
	if g.core.Pending() {
		g.act()
	}
	return nil
}

// act carries out what the core asks for. Launches are only collected.
func (g *Gate) act() {
	for g.core.Pending() {
		g.actions = g.core.Actions(g.actions[:0])
		queued := false
		for i := range g.actions {
			a := &g.actions[i]
			switch a.Kind {
			case core.DoLaunch:
				g.launches = append(g.launches, a.Launch)
			case core.DoPost:
				t := g.bySlot[a.Transfer.Slot()]
				t.queued = true
				t.stage.Store(stageQueued)
				g.note(notice{kind: noticeLeft, transfer: TransferInfo{Ticket: t, Kind: t.kind}})
				g.posters.put(t)
				queued = true
			case core.TellDone:
				g.tellDone(g.bySlot[a.Transfer.Slot()], a.Err)
			case core.TellFailed:
				g.note(notice{kind: noticeFailed, holder: a.Holder,
					transfer: TransferInfo{Ticket: g.bySlot[a.Transfer.Slot()], Err: a.Err}})
			case core.TellOverdue:
				t := g.bySlot[a.Transfer.Slot()]
				g.note(notice{kind: noticeOverdue, transfer: TransferInfo{Ticket: t, Kind: t.kind, Err: a.Err}})
			}
		}
		if queued {
			g.clk.Notify()
		}
		g.retire()
	}
}

func (g *Gate) tellDone(t *Ticket, err error) {
	t.err = err
	t.over.Store(true)
	g.woke = true
	g.note(notice{kind: noticeDone, transfer: TransferInfo{Ticket: t, Kind: t.kind, Err: err}})
	if g.core.TransferState(t.id) == core.Over {
		g.ended = append(g.ended, t)
	}
}

// retire lets go of tickets that the core is done with. Their places in the
// table are free once the actions that name them have been carried out.
func (g *Gate) retire() {
	for i, t := range g.ended {
		g.ended[i] = nil
		if !t.quiet {
			t.quiet = true
			if g.bySlot[t.id.Slot()] == t {
				g.bySlot[t.id.Slot()] = nil
			}
			if err := t.transfer.Close(); err != nil {
				g.unclosed = append(g.unclosed, t.transfer)
			}
			g.recycle(t)
		}
	}
	g.ended = g.ended[:0]
}

// drainPosters tells the core what became of postings.
func (g *Gate) drainPosters() int {
	if g.posters == nil || !g.posters.news.Load() {
		return 0
	}
	g.results = g.posters.take(g.results[:0])
	for i, r := range g.results {
		g.results[i] = posting{}
		r.t.queued = false
		switch {
		case errors.Is(r.err, errTakenBack):
			g.recycle(r.t)
		case r.err != nil:
			_ = g.core.PostFailed(r.t.id, r.err, nixl.Quiet(r.err))
			g.ifOver(r.t)
			g.peerLost(r.t, r.err)
		default:
			_ = g.core.Posted(r.t.id)
			g.flying = append(g.flying, r.t)
			g.inFlight.Store(int64(len(g.flying)))
			g.seen.Store(^g.agent.Activity()) // it may have ended before it was listed
			g.note(notice{kind: noticePosted, transfer: TransferInfo{Ticket: r.t, Kind: r.t.kind}})
		}
		g.act()
	}
	g.noteHandled(len(g.results))
	return len(g.results)
}

// pollFlying asks after posted transfers, each to its end, those of canceled
// tickets too.
func (g *Gate) pollFlying(budget int) (done int) {
	if len(g.flying) == 0 {
		return 0
	}
	at := g.agent.Activity()
	if g.seen.Swap(at) == at {
		return 0
	}
	n := 0
	for i, t := range g.flying {
		if budget > 0 && done == budget {
			n += copy(g.flying[n:], g.flying[i:])
			g.seen.Store(^at) // ask again, whatever the agent says
			break
		}
		status, err := t.transfer.Status()
		switch {
		case status == nixl.Done:
			_ = g.core.Finished(t.id, nil, true)
		case status == nixl.Failed:
			_ = g.core.Finished(t.id, err, nixl.Quiet(err))
		default:
			g.flying[n] = t
			n++
			continue
		}
		done++
		g.ifOver(t)
		g.act()
		if err != nil {
			g.lost = append(g.lost, posting{t, err})
		}
	}
	clear(g.flying[n:])
	g.flying = g.flying[:n]
	g.inFlight.Store(int64(n))
	for i, l := range g.lost {
		g.lost[i] = posting{}
		g.peerLost(l.t, l.err)
	}
	g.lost = g.lost[:0]
	g.noteHandled(done)
	return done
}

// noteHandled makes [Gate.Close] look at what is still in flight: another
// goroutine may have handled the last of it.
func (g *Gate) noteHandled(n int) {
	if n > 0 {
		g.handled.Add(1)
		g.woke = true
	}
}

// ifOver lets go of a ticket whose end nobody is told of any more.
func (g *Gate) ifOver(t *Ticket) {
	if g.core.TransferState(t.id) == core.Over {
		g.ended = append(g.ended, t)
		if !g.core.Pending() {
			g.retire()
		}
	}
}

// peerLost fails, at the first sign, all that depends on a peer that is gone.
// A generation of a peer that an agent does not know any more never comes back.
func (g *Gate) peerLost(t *Ticket, err error) {
	if !errors.Is(err, nixl.ErrDisconnected) && !errors.Is(err, nixl.ErrStalePeer) && !errors.Is(err, nixl.ErrNoPeer) {
		return
	}
	cause := fmt.Errorf("%v: %w", t.peer, err)
	for _, q := range g.bySlot {
		if q != nil && q.peer == t.peer {
			g.takeBack(q, fmt.Errorf("loadgate: %w: %w", core.ErrPeerLost, cause))
		}
	}
	_ = g.core.PeerLost(g.peer(t.peer), cause)
	g.act()
}

// die fails everything that depends on the device.
func (g *Gate) die(cause error) {
	if g.core.Dead() != nil {
		return
	}
	g.core.Die(cause)
	g.act()
	for _, t := range g.bySlot {
		if t != nil {
			g.takeBack(t, fmt.Errorf("loadgate: %w: %w", core.ErrDead, cause))
		}
	}
	for _, id := range g.launches {
		_ = g.core.LaunchFailed(id, kv.Point{}, cause)
	}
	g.launches = g.launches[:0]
	g.unmarks = nil
	g.act()
}

// WaitFence blocks until f has fired, and lets the gate move meanwhile. An
// engine that waits for a step's output waits here, so that held loads leave
// when they can. It returns ctx's cause when ctx is done, and the device's
// error when that died.
func (g *Gate) WaitFence(ctx context.Context, f event.Fence) error {
	return g.wait(ctx, &gateWait{g: g, f: f})
}

// WaitTicket blocks until t is over and returns its error, and lets the gate
// move meanwhile. When ctx is done it returns ctx's cause, and the ticket goes
// on.
func (g *Gate) WaitTicket(ctx context.Context, t *Ticket) error {
	if err := g.mine("wait", t); err != nil {
		return err
	}
	g.mu.Lock()
	if !t.over.Load() {
		_ = g.core.Hurry(t.id)
		g.act()
	}
	g.unlock()
	if err := g.wait(ctx, &gateWait{g: g, t: t}); err != nil {
		return err
	}
	return t.err
}

func (g *Gate) wait(ctx context.Context, w *gateWait) error {
	for {
		_, err := g.Progress(0)
		if w.over() {
			return nil
		}
		if err != nil && (w.t == nil || !errors.Is(err, core.ErrDead)) {
			return err
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		if err != nil {
			// The device is dead and answers no more; the transfers go on.
			w.deaf = true
			err = g.clk.WaitUntil(ctx, w, clock.Never)
		} else {
			err = g.reg.WaitUntil(ctx, w, g.deadline())
		}
		if err != nil && ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) && g.reg.Err() == nil {
			return err
		}
	}
}

func (g *Gate) deadline() time.Duration {
	if g.limit == 0 {
		return clock.Never
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Duration(g.core.Deadline())
}

// gateWait ends a wait when what it is for has come, or when the gate has
// something to do.
type gateWait struct {
	g *Gate
	f event.Fence
	t *Ticket

	deaf bool // to the device: it is dead, or does not matter

	draining bool // ends when more than handled results have been handled
	handled  uint64
}

func (w *gateWait) over() bool {
	if w.t != nil {
		return w.t.over.Load()
	}
	return w.f.Done()
}

func (w *gateWait) Done() bool {
	g := w.g
	return w.over() || !w.deaf && g.feed.News() || g.posters != nil && g.posters.news.Load() ||
		w.draining && g.handled.Load() != w.handled ||
		g.inFlight.Load() > 0 && g.agent.Activity() != g.seen.Load()
}

func (w *gateWait) String() string {
	if w.t != nil {
		return w.t.String()
	}
	return w.f.String()
}

// Close ends the gate. Held transfers are withdrawn; Close then waits for those
// under way to be quiet. When ctx is done first it returns ctx's cause and may
// be called again. Blocks that are poisoned by then are reported in the error,
// which wraps [core.ErrPoisoned]; the gate is closed all the same. A second
// Close does nothing.
//
// Work that is still on the device is waited for: the gate frees memory of its
// own there, which waits as cuMemFree does.
func (g *Gate) Close(ctx context.Context) error {
	g.mu.Lock()
	if g.released {
		g.mu.Unlock()
		return nil
	}
	g.closed = true
	for _, t := range g.bySlot {
		if t != nil && !t.over.Load() {
			if withdrawn, err := g.core.Cancel(t.id); err == nil && !withdrawn {
				g.takeBack(t, core.ErrCanceled)
			}
			g.act()
		}
	}
	g.unlock()
	for {
		handled := g.handled.Load()
		_, _ = g.Progress(0)
		if g.Counters().InFlight == 0 {
			break
		}
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		w := &gateWait{g: g, t: &Ticket{}, deaf: true, draining: true, handled: handled}
		if err := g.clk.WaitUntil(ctx, w, clock.Never); err != nil {
			return err
		}
	}
	if g.posters != nil {
		if err := g.posters.close(ctx); err != nil {
			return err
		}
	}
	g.mu.Lock()
	defer g.unlock()
	return errors.Join(g.release(), g.poisonError())
}

func (g *Gate) poisonError() error {
	if g.core.Counters().Poisoned == 0 {
		return nil
	}
	for i := range g.pools {
		if ts := g.core.Poisoned(kv.PoolID(i), nil); len(ts) > 0 {
			return fmt.Errorf("loadgate: close: %d transfers not proven quiet; pool %d: %v: %w",
				g.core.Counters().Poisoned, i, ts, core.ErrPoisoned)
		}
	}
	return nil
}

// release frees what the gate made on the device.
func (g *Gate) release() error {
	if g.released {
		return nil
	}
	g.released = true
	var errs []error
	if g.feed != nil {
		g.feed.Close()
	}
	dead := g.reg.Err() != nil
	for _, s := range []*stream.Stream{g.dry, g.wet} {
		if s == nil {
			continue
		}
		if !dead {
			errs = append(errs, s.Sync(context.Background()))
		}
		errs = append(errs, s.Close())
	}
	for _, p := range g.pools {
		if p.table != nil {
			errs = append(errs, p.table.Close())
		}
	}
	if dead {
		return nil
	}
	return errors.Join(errs...)
}
