package libnixl

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

// listener takes metadata from agents that send it, of this binding or any
// other of the library, and gives out the agent's own.
type listener struct {
	a *Agent
	l net.Listener

	ctx context.Context // of what waits for others; ends with the listener
	end context.CancelCauseFunc

	mu      sync.Mutex
	conns   map[net.Conn]struct{}
	running int
	closed  bool
	limit   int // of conns
}

// maxConnections is how many agents may be connected at a time; they stay so.
const maxConnections = 4096

func listen(a *Agent, port uint16) (*listener, error) {
	if port == 0 {
		port = defaultPort
	}
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		return nil, err
	}
	s := &listener{a: a, l: l, conns: map[net.Conn]struct{}{}, running: 1, limit: maxConnections}
	s.ctx, s.end = context.WithCancelCause(context.Background())
	a.clk.Go("listener of "+a.name, s.accept)
	return s, nil
}

func (s *listener) accept() {
	defer s.done(nil)
	for {
		conn, err := s.l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			if s.a.clk.Sleep(context.Background(), lookAgain) != nil {
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
		s.a.clk.Go("connection of "+s.a.name, func() {
			defer s.done(conn)
			if err := s.serve(conn); err != nil {
				s.refused(conn, err)
			}
		})
	}
}

// done ends a goroutine, of a connection unless that is nil.
func (s *listener) done(conn net.Conn) {
	if conn != nil {
		_ = conn.Close()
	}
	s.mu.Lock()
	delete(s.conns, conn)
	s.running--
	s.mu.Unlock()
	s.a.clk.Notify()
}

// serve answers one connection until it ends, or says what can not be read: what
// follows then has no beginning.
func (s *listener) serve(conn net.Conn) error {
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
			if _, err := s.a.AddPeerContext(s.ctx, data); err != nil {
				s.refused(conn, err)
			}
		case sendCommand:
			blob, err := s.a.Metadata()
			if err != nil {
				return err
			}
			if err := writeFrame(conn, loadCommand, blob); err != nil {
				return err
			}
		case leaveCommand:
			if p, err := s.a.Peer(string(data)); err != nil {
				s.refused(conn, err)
			} else if p != s.a.self {
				s.a.lost(p)
			}
		default:
			return fmt.Errorf("command %q", command)
		}
	}
}

func (s *listener) refused(conn net.Conn, err error) {
	if s.a.cfg.Refused == nil || errors.Is(err, nixl.ErrClosed) {
		return
	}
	from, _ := netip.ParseAddrPort(conn.RemoteAddr().String()) // as the net package writes it
	// It may close the agent, which waits for all that is counted.
	s.count(-1)
	s.a.cfg.Refused(from, err)
	s.count(1)
}

func (s *listener) count(n int) {
	s.mu.Lock()
	s.running += n
	s.mu.Unlock()
	s.a.clk.Notify()
}

// close ends the listener and its connections, and waits for their goroutines but
// for those that are telling what was refused.
func (s *listener) close() {
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
	_ = s.a.clk.WaitUntil(context.Background(), over, never)
}
