package nic

import (
	"context"
	"fmt"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/nixl"
)

// openIPC has another process write into the memory, which it opens by CUDA IPC.
func (n *NIC) openIPC(ctx context.Context) error {
	ipc, ok := n.o.Device.(cuda.IPC)
	if !ok {
		return fmt.Errorf("the device shares no memory: %w", cuda.ErrNotSupported)
	}
	handle, err := ipc.ExportMemory(n.o.Base)
	if err != nil {
		return err
	}
	p, a, err := startProcess(ctx, n.o.Device.Clock(), hello{Kind: IPC, Prompts: n.o.Prompts, Slow: n.o.Slow, Handle: handle, Size: n.o.Size})
	if err != nil {
		return err
	}
	n.process, n.prepare = p, p.prepare
	n.What = "another process, which writes through CUDA IPC " + a.What
	err = n.copyBy(writer{p, uint64(n.o.Base)}, a.Addr)
	n.onClose(p.close) // before the agent, whose transfers end with it
	return err
}

// writer carries transfers by having the process copy.
type writer struct {
	p    *process
	base uint64 // of the target
}

func (w writer) activity() uint64 { return w.p.news.Load() }

func (w writer) gone() bool { return w.p.err() != nil }

func (w writer) post(s *nixl.Spec) (flight, error) {
	rs := runs(s)
	for i := range rs {
		rs[i].To -= w.base
	}
	o, err := w.p.order(order{Runs: rs})
	if err != nil {
		return nil, lost("post", s.Peer, err)
	}
	return writing{o, s.Peer}, nil
}

type writing struct {
	*sent
	peer nixl.Peer
}

func (w writing) poll() (bool, error) {
	select {
	case <-w.done:
	default:
		return false, nil
	}
	if w.err != nil {
		return true, lost("status", w.peer, w.err)
	}
	return true, nil
}

// lost is the error of a transfer whose other end has gone or failed: nobody
// knows what it has written.
func lost(op string, p nixl.Peer, cause error) error {
	return &nixl.Error{Op: op, Peer: p.Name, Err: nixl.ErrDisconnected, Detail: cause.Error()}
}

// serveIPC opens the memory to write to, with an engine to do so.
func (s *server) serveIPC() (a answer, err error) {
	if err := s.openDevice(); err != nil {
		return a, err
	}
	ipc, ok := s.dev.(cuda.IPC)
	if !ok {
		return a, fmt.Errorf("its device opens no memory: %w", cuda.ErrNotSupported)
	}
	if s.target, err = ipc.OpenMemory(s.Handle); err != nil {
		return a, err
	}
	s.onClose(func() error { return ipc.CloseMemory(s.target) })
	if err := s.keep(true); err != nil {
		return a, err
	}
	if s.engine, err = newEngine(s.dev); err != nil {
		return a, err
	}
	s.onClose(s.engine.close)
	a.What = "with a stream and a copy engine of its own"
	return a, nil
}

// beginCopies starts copies; what it returns waits for them.
func (s *server) beginCopies(rs []run) (wait func() error, err error) {
	if s.engine == nil {
		return nil, fmt.Errorf("copies asked of %s", s.Kind)
	}
	for i := range rs {
		r := &rs[i]
		if r.To > s.Size || r.Len > s.Size-r.To {
			return nil, fmt.Errorf("copy of %d bytes to %d of %d", r.Len, r.To, s.Size)
		}
		r.To += uint64(s.target)
	}
	c, err := s.engine.start(rs)
	if err != nil {
		return nil, err
	}
	return func() error {
		var failed error
		over := clock.Func("copies", func() bool {
			var ended bool
			ended, failed = c.poll()
			return ended || failed != nil
		})
		if err := s.clk.WaitUntil(context.Background(), over, clock.Never); err != nil {
			return err
		}
		return failed
	}, nil
}
