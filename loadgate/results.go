package loadgate

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

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
			g.must(g.core.PostFailed(r.t.id, r.err, nixl.Quiet(r.err)))
			g.ifOver(r.t)
			g.peerLost(r.t, r.err)
		default:
			g.must(g.core.Posted(r.t.id))
			g.flying = append(g.flying, r.t)
			g.inFlight.Store(int64(len(g.flying)))
			g.seen.Store(^g.agent.Activity()) // it may have ended before it was listed
			if g.listener.Posted != nil {
				g.note(notice{kind: noticePosted, transfer: g.info(r.t, nil)})
			}
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
		if status != nixl.Done && status != nixl.Failed {
			g.flying[n] = t
			n++
			continue
		}
		done++
		g.arrived = append(g.arrived, arrival{t: t, done: status == nixl.Done, err: err})
	}
	clear(g.flying[n:])
	g.flying = g.flying[:n]
	g.inFlight.Store(int64(n))
	g.flushArrived(g.arrived)
	for i, a := range g.arrived {
		g.arrived[i] = arrival{}
		switch {
		case a.unseen != nil:
			g.must(g.core.Finished(a.t.id, a.unseen, true))
		case a.done:
			g.must(g.core.Finished(a.t.id, nil, true))
		default:
			g.must(g.core.Finished(a.t.id, a.err, nixl.Quiet(a.err)))
		}
		g.ifOver(a.t)
		g.act()
		if a.err != nil {
			g.lost = append(g.lost, posting{a.t, a.err})
		}
	}
	g.arrived = g.arrived[:0]
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
func (g *Gate) ifOver(t *ticket) {
	if g.core.TransferState(t.id) == core.Over {
		g.ended = append(g.ended, t)
		if !g.core.Pending() {
			g.retire()
		}
	}
}

// peerLost fails, at the first sign, all that depends on a peer that is gone.
// A generation of a peer that an agent does not know any more never comes back.
func (g *Gate) peerLost(t *ticket, err error) {
	if !errors.Is(err, nixl.ErrDisconnected) && !errors.Is(err, nixl.ErrStalePeer) && !errors.Is(err, nixl.ErrNoPeer) {
		return
	}
	cause := fmt.Errorf("%v: %w", t.peer, err)
	for _, q := range g.bySlot {
		if q != nil && q.peer == t.peer {
			g.takeBack(q, fmt.Errorf("loadgate: %w: %w", core.ErrPeerLost, cause))
		}
	}
	g.must(g.core.PeerLost(g.peer(t.peer), cause))
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
			g.takeBack(t, deadError(cause))
		}
	}
	for _, id := range g.launches {
		g.must(g.core.LaunchFailed(id, kv.Point{}, cause))
	}
	g.launches = g.launches[:0]
	g.unmarks = nil
	g.act()
}
