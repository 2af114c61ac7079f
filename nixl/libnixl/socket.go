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

// dial connects to a listener. The connection ends with ctx.
func dial(ctx context.Context, to netip.AddrPort) (net.Conn, func(), error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", to.String())
	if err != nil {
		return nil, nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	return conn, func() {
		stop()
		_ = conn.Close()
	}, nil
}

// tell sends a command to a listener.
func (a *Agent) tell(ctx context.Context, op string, to netip.AddrPort, command string, data []byte) error {
	if err := a.enter(op); err != nil {
		return err
	}
	a.leave()
	err := a.bounded(ctx, op, a.clk.Now()+exchangeTimeout, func(ctx context.Context) error {
		conn, end, err := dial(ctx, to)
		if err != nil {
			return err
		}
		defer end()
		if err := writeFrame(conn, command, data); err != nil {
			return err
		}
		// Its answer to another command says that it has read this one.
		if err := writeFrame(conn, sendCommand, nil); err != nil {
			return err
		}
		_, _, err = readFrame(conn)
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("listener at %s: %w", to, err)
	}
	return unavailable(op, "", err)
}

// fetchFrom asks a listener for its agent's metadata.
func (a *Agent) fetchFrom(ctx context.Context, op, name string, from netip.AddrPort) (nixl.Peer, error) {
	place := "listener at " + from.String()
	conn, end, err := dial(ctx, from)
	if err != nil {
		return nixl.Peer{}, notYet{err}
	}
	defer end()
	if err := writeFrame(conn, sendCommand, nil); err != nil {
		return nixl.Peer{}, notYet{fmt.Errorf("%s: %w", place, err)}
	}
	command, blob, err := readFrame(conn)
	switch {
	case errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) || errors.As(err, new(*net.OpError)):
		return nixl.Peer{}, notYet{fmt.Errorf("%s: %w", place, err)}
	case err != nil:
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "%s: %v", place, err)
	case command != loadCommand:
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "%s: it answers %q", place, command)
	}
	return a.take(op, name, place, blob)
}
