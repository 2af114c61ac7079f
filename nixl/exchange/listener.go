package exchange

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// Listener takes metadata from agents that send it to a socket, of this module or
// any other binding of the library, and gives out its agent's own. Whoever can
// connect can introduce peers, and have those forgotten that were introduced so.
type Listener struct {
	clk    clock.Clock
	a      nixl.Agent
	l      net.Listener
	refuse func(from netip.AddrPort, err error) // or nil

	ctx context.Context // of what waits for others; ends with the listener
	end context.CancelCauseFunc

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	met     map[string]nixl.Peer // who was introduced here
	running int
	closed  bool
	limit   int // of conns
}

// maxConnections is how many agents may be connected at a time; they stay so.
const maxConnections = 4096

// Listen serves those who connect to l, which it closes in the end; the library
// listens at [DefaultPort] on all addresses of the machine. refused, if not nil, is
// told of what came and was refused. It is called by the goroutine of the
// connection, and may close listener and agent: Close does not wait for a call that
// is under way. Close the listener before its agent.
func Listen(clk clock.Clock, a nixl.Agent, l net.Listener, refused func(from netip.AddrPort, err error)) *Listener {
	s := &Listener{clk: clk, a: a, l: l, refuse: refused, conns: map[net.Conn]struct{}{}, met: map[string]nixl.Peer{},
		running: 1, limit: maxConnections}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	clk.Go("listener of "+a.Name(), s.accept)
	return s
}

// Met returns the peer of that name as it introduced itself last, and whether one
// did and has not taken its leave since.
func (s *Listener) Met(name string) (nixl.Peer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.met[name]
	return p, ok
}

func (s *Listener) accept() {
	defer s.done(nil)
	for {
		conn, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			if s.clk.Sleep(context.Background(), lookAgain) != nil {
				return
			}
			continue
		}
		s.mu.Lock()
		limit := s.limit
		full := s.closed || len(s.conns) >= limit
		if !full {
			s.conns[conn] = struct{}{}
			s.running++
		}
		s.mu.Unlock()
		if full {
			s.refused(conn, fmt.Errorf("more than %d connections", limit))
			_ = conn.Close()
			continue
		}
		s.clk.Go("connection of "+s.a.Name(), func() {
			defer s.done(conn)
			if err := s.serve(conn); err != nil {
				s.refused(conn, err)
			}
		})
	}
}

// done ends a goroutine, of a connection unless that is nil.
func (s *Listener) done(conn net.Conn) {
	if conn != nil {
		_ = conn.Close()
	}
	s.mu.Lock()
	delete(s.conns, conn)
	s.running--
	s.mu.Unlock()
	s.clk.Notify()
}

// serve answers one connection until it ends, or says what can not be read: what
// follows then has no beginning.
func (s *Listener) serve(conn net.Conn) error {
	for {
		command, data, err := readFrame(conn)
		if errors.Is(err, net.ErrClosed) || err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		switch command {
		case loadCommand:
			p, err := addPeer(s.ctx, s.a, data)
			if err != nil {
				s.refused(conn, err)
				break
			}
			s.mu.Lock()
			s.met[p.Name] = p
			s.mu.Unlock()
		case sendCommand:
			blob, err := s.a.Metadata()
			if err != nil {
				return err
			}
			if err := writeFrame(conn, loadCommand, blob); err != nil {
				return err
			}
		case leaveCommand:
			if err := s.leave(string(data)); err != nil {
				s.refused(conn, err)
			}
		default:
			return fmt.Errorf("command %q", command)
		}
	}
}

// leave has the agent forget a peer that was introduced here.
func (s *Listener) leave(name string) error {
	p, ok := s.Met(name)
	if !ok {
		return nixl.Refuse("leave", name, nixl.ErrNoPeer, "")
	}
	if err := s.a.RemovePeer(p); err != nil && errors.Is(err, nixl.ErrBusy) {
		return err
	}
	s.mu.Lock()
	if s.met[name] == p {
		delete(s.met, name)
	}
	s.mu.Unlock()
	return nil
}

func (s *Listener) refused(conn net.Conn, err error) {
	if s.refuse == nil || errors.Is(err, nixl.ErrClosed) {
		return
	}
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // as the net package writes it
	// It may close the listener, which waits for all that is counted.
	s.count(-1)
	s.refuse(from, err)
	s.count(1)
}

func (s *Listener) count(n int) {
	s.mu.Lock()
	s.running += n
	s.mu.Unlock()
	s.clk.Notify()
}

// Close ends the listener and its connections, and waits for their goroutines but
// for those that are telling what was refused. It does not close the agent.
func (s *Listener) Close() {
	_ = s.l.Close()
	s.end(nixl.ErrClosed)
	s.mu.Lock()
	s.closed = true
	for c := range s.conns {
		_ = c.Close()
	}
	s.mu.Unlock()
	over := clock.Func("the end of the listener", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return s.running == 0
	})
	_ = s.clk.WaitUntil(context.Background(), over, clock.Never)
}
