package softnic

import (
	"fmt"
	"io"
	"slices"
	"sync/atomic"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
)

// Fabric connects the agents of one world. Its methods are safe for use by
// several goroutines (on virtual time: actors).
type Fabric struct {
	world *vtime.World
	o     Options
	bad   error // what makes no sense in the options that were given

	// All below is guarded by the machine's lock.
	agents  []*agent // living ones, in the order in which they came
	lives   map[uint64]*agent
	posts   uint64
	flights []*flight // not yet settled, in the order of their posts
	spare   []*chunk
	choose  func(TransferInfo) Fault
	closed  bool
	forget  func()
}

// lifeCount numbers the lives of all agents of the process, so that a blob of
// one fabric means nothing to another.
var lifeCount atomic.Uint64

// New returns a fabric without agents on the clock of w, which must not be nil. The
// clock of a simulated device is such a world: dev.Clock().(*vtime.World).
// Options that make no sense are an error of [Fabric.NewAgent].
func New(w *vtime.World, o Options) *Fabric {
	o, bad := o.complete(w.Slow())
	f := &Fabric{
		world:  w,
		o:      o,
		bad:    bad,
		lives:  map[uint64]*agent{},
		choose: func(TransferInfo) Fault { return Fault{} },
	}
	f.forget = w.Explain("softnic", f.explain)
	return f
}

// NewAgent adds an agent whose memory is that of mems; each answers for its
// own addresses. The name must not be in use. Options of [New] that make no
// sense are refused here, by name.
func (f *Fabric) NewAgent(name string, mems ...Memory) (nixl.Agent, error) {
	f.world.Enter(0)
	defer f.world.Exit()
	return f.newAgent("new agent", name, mems)
}

func (f *Fabric) newAgent(op, name string, mems []Memory) (nixl.Agent, error) {
	switch {
	case f.closed:
		return nil, nixl.Refuse(op, name, nixl.ErrClosed, "fabric")
	case f.bad != nil:
		return nil, nixl.Refuse(op, name, nixl.ErrInvalid, "%v", f.bad)
	case name == "" || len(name) > maxName:
		return nil, nixl.Refuse(op, name, nixl.ErrInvalid, "a name has 1 to %d bytes", maxName)
	case f.agent(name) != nil:
		return nil, nixl.Refuse(op, name, nixl.ErrInvalid, "the name is in use")
	}
	for i, m := range mems {
		if m == nil {
			return nil, nixl.Refuse(op, name, nixl.ErrInvalid, "memory %d is nil", i)
		}
	}
	a := &agent{
		f: f, name: name, life: lifeCount.Add(1), mems: slices.Clone(mems),
		in:    vtime.NewShared(f.world, name+" in", f.o.Bandwidth),
		out:   vtime.NewShared(f.world, name+" out", f.o.Bandwidth),
		conns: map[nixl.Peer]*conn{},
	}
	f.agents = append(f.agents, a)
	f.lives[a.life] = a
	return a, nil
}

// Disconnect cuts the connections of an agent with all others, in both
// directions. Each side learns of it as with the real library: the first
// transfer that looks fails with [nixl.ErrDisconnected] and makes the peer
// unknown; every other one with that peer is then reported so, too, without a
// look at it and without having stopped. Chunks go on landing for up to Options.Linger. AddPeer
// connects anew.
func (f *Fabric) Disconnect(name string) error {
	defer f.world.Notify()
	f.world.Enter(0)
	defer f.world.Exit()
	a := f.agent(name)
	if a == nil {
		return nixl.Refuse("disconnect", name, nixl.ErrNoPeer, "no such agent on the fabric")
	}
	f.cutAll(a, linger)
	return nil
}

// Restart ends an agent as kill -9 would and returns its next life, with the
// memories given or else those of the life before. Handles of the old life
// report [nixl.ErrClosed]; others lose the connection as with
// [Fabric.Disconnect], and have to add the new life's metadata.
func (f *Fabric) Restart(name string, mems ...Memory) (nixl.Agent, error) {
	defer f.world.Notify()
	f.world.Enter(0)
	defer f.world.Exit()
	const op = "restart"
	old := f.agent(name)
	if old == nil {
		return nil, nixl.Refuse(op, name, nixl.ErrNoPeer, "no such agent on the fabric")
	}
	if len(mems) == 0 {
		mems = old.mems
	}
	f.end(old, linger)
	return f.newAgent(op, name, mems)
}

// Close ends the fabric and all its agents, whatever is in flight. Nothing
// moves any more when it returns. A second Close does nothing.
func (f *Fabric) Close() error {
	f.world.Enter(0)
	if f.closed {
		f.world.Exit()
		return nil
	}
	f.closed = true
	for len(f.agents) > 0 {
		f.end(f.agents[0], silence)
	}
	f.world.Exit()
	f.forget()
	f.world.Notify()
	return nil
}

// end takes an agent off the fabric.
func (f *Fabric) end(a *agent, how cut) {
	f.cutAll(a, how)
	a.closed = true
	a.bump()
	f.agents = slices.DeleteFunc(f.agents, func(x *agent) bool { return x == a })
	if how == silence {
		a.registry.Clear()
		a.version++
	}
}

// cut says what becomes of the flights of a connection that breaks.
type cut uint8

const (
	linger  cut = iota // they land chunks for a while
	silence            // they stop at once: one end's hardware is gone
)

// cutAll breaks all connections from and to a.
func (f *Fabric) cutAll(a *agent, how cut) {
	f.breakConns(func(from, to *agent) bool { return from == a || to == a }, how)
}

// breakConns breaks the connections that match, and what flies over them.
func (f *Fabric) breakConns(match func(from, to *agent) bool, how cut) {
	for _, a := range f.agents {
		for _, c := range a.conns {
			if match(a, c.remote) {
				c.broken = true
			}
		}
	}
	for _, fl := range slices.Clone(f.flights) {
		if match(fl.agent, fl.remote) {
			fl.disconnect(how)
		}
	}
}

func (f *Fabric) agent(name string) *agent {
	for _, a := range f.agents {
		if a.name == name {
			return a
		}
	}
	return nil
}

// notify lets a message arrive after the latency.
func (f *Fabric) notify(id uint64, from, to *agent, message []byte) {
	f.world.After(f.o.Latency, "nic message", func() {
		if to.closed {
			return
		}
		to.inbox = append(to.inbox, nixl.Notification{From: from.name, Message: message})
		to.bump()
		f.o.Listener.Notified(NotifiedInfo{f.world.Time(), id, from.name, to.name, message})
	})
}

// explain writes what is in flight, for deadlock reports.
func (f *Fabric) explain(w io.Writer) {
	if len(f.flights) == 0 {
		fmt.Fprintf(w, "  nothing in flight\n")
	}
	for _, fl := range f.flights {
		fmt.Fprintf(w, "  %s\n", fl)
	}
}
