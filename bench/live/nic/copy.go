package nic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/nixl"
)

// run is bytes to be copied.
type run struct{ From, To, Len uint64 }

// runs returns what a read moves; entries that follow each other on both sides
// are one.
func runs(s *nixl.Spec) (out []run) {
	for i, l := range s.Local {
		from := s.Remote[i].Addr
		if n := len(out); n > 0 && out[n-1].To+out[n-1].Len == l.Addr && out[n-1].From+out[n-1].Len == from {
			out[n-1].Len += l.Len
			continue
		}
		out = append(out, run{from, l.Addr, l.Len})
	}
	return out
}

// engine copies on a stream of its own.
type engine struct {
	dev    cuda.Device
	stream cuda.Stream

	mu     sync.Mutex
	batch  cuda.Batch
	events []cuda.Event // all
	free   []cuda.Event
}

func newEngine(dev cuda.Device) (*engine, error) {
	s, err := dev.NewStream(cuda.StreamOptions{Name: "copy engine"})
	if err != nil {
		return nil, err
	}
	return &engine{dev: dev, stream: s}, nil
}

func (e *engine) start(rs []run) (*copying, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.free) == 0 {
		ev, err := e.dev.NewEvent()
		if err != nil {
			return nil, err
		}
		e.events, e.free = append(e.events, ev), append(e.free, ev)
	}
	ev := e.free[len(e.free)-1]
	e.batch.Reset()
	for _, r := range rs {
		e.batch.Copy(e.stream, cuda.DevicePtr(r.To), cuda.DevicePtr(r.From), r.Len)
	}
	e.batch.Record(e.stream, ev)
	if err := e.dev.Submit(&e.batch); err != nil {
		return nil, err
	}
	e.free = e.free[:len(e.free)-1]
	return &copying{e: e, mark: [1]cuda.Mark{{Event: ev}}}, nil
}

func (e *engine) post(s *nixl.Spec) (flight, error) {
	c, err := e.start(runs(s))
	if err != nil {
		return nil, &nixl.Error{Op: "post", Peer: s.Peer.Name, Err: nixl.ErrBackend, Detail: err.Error()}
	}
	return c, nil
}

// lookEvery is how often whoever waits for copies looks whether they are over:
// nobody tells.
const lookEvery = 20 * time.Microsecond

func (e *engine) activity() uint64 { return uint64(e.dev.Clock().Now() / lookEvery) }

func (e *engine) gone() bool { return false }

// close waits for the copies.
func (e *engine) close() error {
	errs := []error{e.dev.SyncStream(context.Background(), e.stream)}
	for _, ev := range e.events {
		errs = append(errs, e.dev.DestroyEvent(ev))
	}
	return errors.Join(append(errs, e.dev.DestroyStream(e.stream))...)
}

// copying is copies under way.
type copying struct {
	e    *engine
	mark [1]cuda.Mark
}

func (c *copying) poll() (bool, error) {
	if err := c.e.dev.Poll(c.mark[:]); err != nil {
		return true, fmt.Errorf("copy engine: %w", err)
	}
	if c.mark[0].State != cuda.MarkFired {
		return false, nil
	}
	c.e.mu.Lock()
	c.e.free = append(c.e.free, c.mark[0].Event)
	c.e.mu.Unlock()
	return true, nil
}

// openCopy is a copy engine of this process. The prompts are in pinned memory.
func (n *NIC) openCopy() error {
	s, err := newOnDevice(n.o.Device, n.o.Prompts, true)
	if err != nil {
		return err
	}
	n.onClose(s.close)
	e, err := newEngine(n.o.Device)
	if err != nil {
		return err
	}
	n.onClose(e.close)
	n.What = "a copy engine of this process, on a stream that the gate does not know"
	n.prepare = func(_ context.Context, slot int, request uint32) error { return s.prepare(slot, request) }
	return n.copyBy(e, s.addr())
}

// copyBy makes the agent whose transfers a carrier carries, from slots at addr.
func (n *NIC) copyBy(c carrier, addr uint64) error {
	a := &agent{carrier: c}
	n.Agent, n.peer, n.addr = a, prefill, addr
	n.local, n.remote = nixl.VRAM, nixl.DRAM
	n.onClose(a.Close)
	_, err := a.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(n.o.Base), Len: n.o.Size}})
	return err
}
