package exchange

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// The protocol of the library's listener (src/core/nixl_p2p_metadata_backend.cpp):
// frames of a length in eight bytes and a command with what belongs to it.
const (
	commandMark  = "NIXLCOMM:"
	loadCommand  = "LOAD" // this is my metadata
	sendCommand  = "SEND" // send me yours
	leaveCommand = "INVL" // forget the agent of this name
)

// DefaultPort is where agents of the library listen unless told otherwise.
const DefaultPort = 8888

func writeFrame(w io.Writer, command string, data []byte) error {
	b := binary.NativeEndian.AppendUint64(make([]byte, 0, 8+len(commandMark)+len(command)+len(data)), uint64(len(commandMark)+len(command)+len(data)))
	b = append(append(append(b, commandMark...), command...), data...)
	_, err := w.Write(b)
	return err
}

// readFrame reads a frame. An [io.EOF] says that there is none; other errors are
// about the frame or the connection, which is then out of step.
func readFrame(r io.Reader) (command string, data []byte, err error) {
	var head [8]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return "", nil, err
	}
	const least = len(commandMark) + len(loadCommand)
	n := binary.NativeEndian.Uint64(head[:])
	if n > maxMetadata {
		return "", nil, fmt.Errorf("a frame of %d bytes: %w", n, errTooLong)
	}
	if n < uint64(least) {
		return "", nil, fmt.Errorf("a frame of %d bytes", n)
	}
	var b bytes.Buffer // grows with what comes, not with what is announced
	if _, err := io.CopyN(&b, r, int64(n)); err != nil {
		return "", nil, fmt.Errorf("a frame of %d bytes ends after %d: %w", n, b.Len(), errors.Join(io.ErrUnexpectedEOF, err))
	}
	rest, ok := bytes.CutPrefix(b.Bytes(), []byte(commandMark))
	if !ok {
		return "", nil, fmt.Errorf("a frame of another protocol")
	}
	const word = len(loadCommand)
	return string(rest[:word]), rest[word:], nil
}

// Socket is a way to the listener of one agent. It connects when it is first used,
// and keeps its connection: the library's listener never lets go of one.
type Socket struct {
	clk clock.Clock
	to  netip.AddrPort

	mu     sync.Mutex
	idle   net.Conn // nil: none, or in use
	closed bool
}

// NewSocket returns a way to the listener at that address.
func NewSocket(clk clock.Clock, to netip.AddrPort) *Socket { return &Socket{clk: clk, to: to} }

// Publish makes the agent's metadata, as it is now, known to the agent whose
// listener is there. An agent of the library listens in the same way.
//
// Without an answer within five seconds it fails, as when nobody is there, with
// [nixl.ErrUnavailable]; ctx ends it earlier. When it returns the listener has
// read what was sent, but does not say whether it took it.
func (s *Socket) Publish(ctx context.Context, a nixl.Agent) error {
	metadata, err := a.Metadata()
	if err != nil {
		return err
	}
	return s.tell(ctx, "publish", loadCommand, metadata)
}

// Withdraw has the agent whose listener is there forget the one of that name.
// Errors are as for Publish.
func (s *Socket) Withdraw(ctx context.Context, name string) error {
	return s.tell(ctx, "withdraw", leaveCommand, []byte(name))
}

// Fetch asks the listener for its agent's metadata, and makes it known as a peer
// of a; it has to be of that name. It asks until somebody answers, ctx is done or
// the deadline has come. Errors are as for [Etcd.Fetch].
func (s *Socket) Fetch(ctx context.Context, a nixl.Agent, name string, deadline time.Duration) (nixl.Peer, error) {
	return fetch(ctx, s.clk, a, name, deadline, func(ctx context.Context, op string) (nixl.Peer, error) {
		return s.ask(ctx, a, op, name)
	})
}

// Close ends the connection, if there is one.
func (s *Socket) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	if s.idle != nil {
		_ = s.idle.Close()
		s.idle = nil
	}
}

func (s *Socket) take() (conn net.Conn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("the socket was %w", nixl.ErrClosed)
	}
	conn, s.idle = s.idle, nil
	return conn, nil
}

func (s *Socket) give(conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.idle != nil {
		_ = conn.Close()
		return
	}
	s.idle = conn
}

// converse lets fn write commands to the listener and read as many answers. A
// connection that was kept may have ended meanwhile: fn then runs again, on a
// new one.
func (s *Socket) converse(ctx context.Context, fn func(io.ReadWriter) error) error {
	conn, err := s.take()
	if err != nil {
		return err
	}
	for ; ; conn = nil {
		kept := conn != nil
		if !kept {
			if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", s.to.String()); err != nil {
				return err
			}
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		err = fn(conn)
		if stop() && err == nil {
			s.give(conn)
			return nil
		}
		_ = conn.Close()
		if err == nil { // just before the end of ctx
			return nil
		}
		if !kept || !ended(err) || ctx.Err() != nil {
			return err
		}
	}
}

// ended reports whether an error is of a connection, not of what came over it.
func ended(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, new(*net.OpError))
}

func (s *Socket) tell(ctx context.Context, op, command string, data []byte) error {
	return once(ctx, s.clk, op, func(ctx context.Context) error {
		err := s.converse(ctx, func(conn io.ReadWriter) error {
			if err := writeFrame(conn, command, data); err != nil {
				return err
			}
			// Its answer to another command says that it has read this one.
			_, _, err := askFor(conn)
			return err
		})
		if err != nil {
			err = fmt.Errorf("listener at %s: %w", s.to, err)
		}
		return err
	})
}

// askFor asks for the metadata of the listener's agent.
func askFor(conn io.ReadWriter) (command string, metadata []byte, err error) {
	if err := writeFrame(conn, sendCommand, nil); err != nil {
		return "", nil, err
	}
	return readFrame(conn)
}

func (s *Socket) ask(ctx context.Context, a nixl.Agent, op, name string) (nixl.Peer, error) {
	place := "listener at " + s.to.String()
	var command string
	var metadata []byte
	err := s.converse(ctx, func(conn io.ReadWriter) (err error) {
		command, metadata, err = askFor(conn)
		return err
	})
	switch {
	case err != nil && (ended(err) || ctx.Err() != nil):
		return nixl.Peer{}, notYet{fmt.Errorf("%s: %w", place, err)}
	case err != nil:
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "%s: %v", place, err)
	case command != loadCommand:
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "%s: it answers %q", place, command)
	}
	return take(ctx, a, op, name, place, metadata)
}
