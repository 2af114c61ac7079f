package nixl

import (
	"context"
	"sync"

	"github.com/kvgate/kvgate/clock"
)

// Poller polls posted transfers of one agent to their end: one goroutine for
// any number of them, which runs while there are any. A transfer given to it is
// its own until the end; nobody else may call its methods but Cancel, after
// which it ends as any other. Methods are safe for use by several goroutines.
type Poller struct {
	agent Agent
	clk   clock.Clock

	mu      sync.Mutex // never held across a call of the agent or a callback
	fresh   []watched  // not polled yet
	n       int
	running bool
}

type watched struct {
	t     Transfer
	done  func(error)
	close []Registration
	owned bool // closed at the end
}

// NewPoller returns a poller of transfers of a.
func NewPoller(a Agent, clk clock.Clock) *Poller { return &Poller{agent: a, clk: clk} }

// Watch polls a posted transfer and calls done with nil, or with its error,
// when it has ended: on the poller's goroutine, which done must not block. done
// may be nil. A transfer that was not posted ends with [ErrNotPosted].
func (p *Poller) Watch(t Transfer, done func(error)) { p.add(watched{t: t, done: done}) }

// Retire is a close that waits: where a plain Close would be refused since the
// transfer is in flight, Retire polls it to its end and then closes it, and the
// registrations behind it. The memory must stay until done is called, with the
// transfer's error or, if it has none, the first of the closes: a transfer whose
// failure is not [Quiet] leaves its registrations in place, as [ErrPoisoned] says.
func (p *Poller) Retire(t Transfer, registrations []Registration, done func(error)) {
	p.add(watched{t: t, done: done, close: registrations, owned: true})
}

// Len returns how many transfers have not ended.
func (p *Poller) Len() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.n
}

// Wait blocks until no transfer is left, or returns ctx's cause.
func (p *Poller) Wait(ctx context.Context) error {
	idle := clock.Func("transfers of agent "+p.agent.Name(), func() bool { return p.Len() == 0 })
	return p.clk.WaitUntil(ctx, idle, clock.Never)
}

func (p *Poller) add(w watched) {
	p.mu.Lock()
	p.fresh = append(p.fresh, w)
	p.n++
	start := !p.running
	p.running = true
	p.mu.Unlock()
	if start {
		p.clk.Go("transfer poller of "+p.agent.Name(), p.run)
	} else {
		p.clk.Notify()
	}
}

func (p *Poller) run() {
	var all []watched
	w := newcomer{activity{agent: p.agent, what: "transfers"}, p}
	for {
		p.mu.Lock()
		all = append(all, p.fresh...)
		clear(p.fresh)
		p.fresh = p.fresh[:0]
		if len(all) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		p.mu.Unlock()
		// Read before the poll, so that what ends behind it is not missed.
		w.seen = p.agent.Activity()
		left := all[:0]
		for _, x := range all {
			s, err := x.t.Status()
			switch s {
			case InProgress:
				left = append(left, x)
				continue
			case Idle:
				err = Refuse("watch", x.t.Spec().Peer.Name, ErrNotPosted, "")
			}
			p.end(x, err)
		}
		clear(all[len(left):])
		all = left
		if len(all) > 0 {
			// Never ends otherwise.
			_ = p.clk.WaitUntil(context.Background(), &w, clock.Never)
		}
	}
}

func (p *Poller) end(x watched, err error) {
	if x.owned {
		if e := x.t.Close(); err == nil {
			err = e
		}
		for _, r := range x.close {
			if e := r.Close(); err == nil {
				err = e
			}
		}
	}
	if x.done != nil {
		x.done(err)
	}
	p.mu.Lock()
	p.n--
	p.mu.Unlock()
	p.clk.Notify()
}

// newcomer is done when the agent may have something new or there is a
// transfer that was not polled yet.
type newcomer struct {
	activity
	p *Poller
}

func (w *newcomer) Done() bool {
	if w.activity.Done() {
		return true
	}
	w.p.mu.Lock()
	defer w.p.mu.Unlock()
	return len(w.p.fresh) > 0
}
