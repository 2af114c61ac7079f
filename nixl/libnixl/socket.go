package libnixl

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

	"github.com/kvgate/kvgate/nixl"
)

// The protocol of the library's listener (src/core/nixl_p2p_metadata_backend.cpp):
// frames of a length in eight bytes and a command with what belongs to it.
const (
	commandMark  = "NIXLCOMM:"
	loadCommand  = "LOAD" // this is my metadata
	sendCommand  = "SEND" // send me yours
	leaveCommand = "INVL" // forget the agent of this name

	defaultPort = 8888
)

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

// sockets are connections to listeners that wait for the next command. They are
// kept, as the library keeps its own: its listener never lets go of one.
type sockets struct {
	mu   sync.Mutex
	idle map[netip.AddrPort]net.Conn
}

func (s *sockets) take(to netip.AddrPort) net.Conn {
	s.mu.Lock()
	defer s.mu.Unlock()
	conn := s.idle[to]
	delete(s.idle, to)
	return conn
}

func (s *sockets) give(to netip.AddrPort, conn net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.idle == nil {
		s.idle = map[netip.AddrPort]net.Conn{}
	}
	if s.idle[to] != nil {
		_ = conn.Close()
		return
	}
	s.idle[to] = conn
}

func (s *sockets) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for to, conn := range s.idle {
		_ = conn.Close()
		delete(s.idle, to)
	}
}

// converse lets fn write commands to a listener and read as many answers. A
// connection that was kept may have ended meanwhile: fn then runs again, on a
// new one.
func (s *sockets) converse(ctx context.Context, to netip.AddrPort, fn func(io.ReadWriter) error) error {
	for conn := s.take(to); ; conn = nil {
		kept := conn != nil
		if !kept {
			var err error
			if conn, err = (&net.Dialer{}).DialContext(ctx, "tcp", to.String()); err != nil {
				return err
			}
		}
		stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
		err := fn(conn)
		if stop() && err == nil {
			s.give(to, conn)
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

// tell sends a command to a listener.
func (a *Agent) tell(ctx context.Context, op string, to netip.AddrPort, command string, data []byte) error {
	if err := a.enter(op); err != nil {
		return err
	}
	a.leave()
	err := a.bounded(ctx, op, a.clk.Now()+exchangeTimeout, func(ctx context.Context) error {
		return a.exchange.sockets.converse(ctx, to, func(conn io.ReadWriter) error {
			if err := writeFrame(conn, command, data); err != nil {
				return err
			}
			// Its answer to another command says that it has read this one.
			_, _, err := askFor(conn)
			return err
		})
	})
	if err != nil {
		err = fmt.Errorf("listener at %s: %w", to, err)
	}
	return unavailable(op, "", err)
}

// askFor asks for the metadata of the listener's agent.
func askFor(conn io.ReadWriter) (command string, blob []byte, err error) {
	if err := writeFrame(conn, sendCommand, nil); err != nil {
		return "", nil, err
	}
	return readFrame(conn)
}

// fetchFrom asks a listener for its agent's metadata.
func (a *Agent) fetchFrom(ctx context.Context, op, name string, from netip.AddrPort) (nixl.Peer, error) {
	place := "listener at " + from.String()
	var command string
	var blob []byte
	err := a.exchange.sockets.converse(ctx, from, func(conn io.ReadWriter) (err error) {
		command, blob, err = askFor(conn)
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
	return a.take(ctx, op, name, place, blob)
}
