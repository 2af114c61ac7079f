package loadgate

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/fifo"
	"github.com/kvgate/kvgate/nixl"
)

// posters hand transfers to the transport, off the engine's thread: oldest
// first for each peer, and the peers in turn.
type posters struct {
	clk     clock.Clock
	perPeer int

	ready   atomic.Int64 // queued tickets
	news    atomic.Bool  // results are there
	closing atomic.Bool
	running atomic.Int64

	mu      sync.Mutex // never held across a call of the transport or a wait
	peers   []*peerQueue
	turn    int
	results []posting
}

type peerQueue struct {
	peer  nixl.Peer
	queue fifo.Queue[*ticket]
	busy  int // posters that are in a call for this peer
}

// posting is what became of handing a ticket over.
type posting struct {
	t   *ticket
	err error
}

// errTakenBack says that a ticket was withdrawn before a poster entered the
// transport with it.
var errTakenBack = errors.New("taken back")

func newPosters(clk clock.Clock, n, perPeer int) *posters {
	p := &posters{clk: clk, perPeer: perPeer}
	p.running.Store(int64(n))
	for i := range n {
		clk.Go(fmt.Sprintf("loadgate poster %d", i), p.run)
	}
	return p
}

// put queues tickets.
func (p *posters) put(ts []*ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var q *peerQueue
	for _, t := range ts {
		if q == nil || q.peer != t.peer {
			q = p.queueOf(t.peer)
		}
		q.queue.Push(t)
	}
	p.ready.Add(int64(len(ts)))
}

func (p *posters) queueOf(peer nixl.Peer) *peerQueue {
	for _, q := range p.peers {
		if q.peer == peer {
			return q
		}
	}
	q := &peerQueue{peer: peer}
	p.peers = append(p.peers, q)
	return q
}

// next takes the oldest ticket of the next peer that has room.
func (p *posters) next() (*peerQueue, *ticket) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.peers {
		q := p.peers[(p.turn+i)%len(p.peers)]
		if q.queue.Len() == 0 || q.busy >= p.perPeer {
			continue
		}
		t := *q.queue.At(0)
		q.queue.Pop(1)
		p.ready.Add(-1)
		q.busy++
		p.turn = (p.turn + i + 1) % len(p.peers)
		return q, t
	}
	return nil, nil
}

func (p *posters) run() {
	defer func() {
		p.running.Add(-1)
		p.clk.Notify()
	}()
	w := &posterWait{p: p}
	for {
		w.q, w.t = nil, nil
		if p.clk.WaitUntil(context.Background(), w, clock.Never) != nil || w.t == nil {
			return
		}
		err := errTakenBack
		if w.t.stage.CompareAndSwap(stageQueued, stageEntered) {
			err = w.t.transfer.Post()
		}
		p.mu.Lock()
		w.q.busy--
		p.results = append(p.results, posting{w.t, err})
		p.news.Store(true)
		p.mu.Unlock()
		p.clk.Notify()
	}
}

// posterWait takes a ticket as its effect, or ends without one on close.
type posterWait struct {
	p *posters
	q *peerQueue
	t *ticket
}

func (w *posterWait) Done() bool {
	if w.p.ready.Load() > 0 {
		w.q, w.t = w.p.next()
	}
	return w.t != nil || w.p.closing.Load()
}

func (w *posterWait) String() string { return "a transfer to post" }

// take moves the results to dst.
func (p *posters) take(dst []posting) []posting {
	if !p.news.Load() {
		return dst
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.news.Store(false)
	dst = append(dst, p.results...)
	clear(p.results)
	p.results = p.results[:0]
	return dst
}

// close ends the posters when they are through with what they are in. Nothing
// is queued any more.
func (p *posters) close(ctx context.Context) error {
	p.closing.Store(true)
	p.clk.Notify()
	return p.clk.WaitUntil(ctx, clock.Func("the posters to end", func() bool { return p.running.Load() == 0 }), clock.Never)
}
