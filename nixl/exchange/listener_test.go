package exchange

import (
	"bytes"
	"context"
	"encoding/binary"
	"io"
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
)

func listen(t *testing.T, a nixl.Agent, refused func(netip.AddrPort, error)) (*Listener, netip.AddrPort) {
	t.Helper()
	s, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := Listen(wall, a, s, refused)
	t.Cleanup(l.Close)
	return l, netip.MustParseAddrPort(s.Addr().String())
}

func TestListener(t *testing.T) {
	a, b := newFake("decode"), newFake("prefill")
	l, port := listen(t, b, func(from netip.AddrPort, err error) { t.Errorf("%s: %v", from, err) })
	s := NewSocket(wall, port)
	defer s.Close()
	p, err := s.Fetch(bg, a, "prefill", soon())
	require.NoError(t, err)
	require.Equal(t, nixl.Peer{Name: "prefill", Generation: 1}, p)
	// Another one answers there.
	_, err = s.Fetch(bg, a, "nobody", soon())
	require.ErrorIs(t, err, nixl.ErrInvalid)
	require.ErrorContains(t, err, "listener at "+port.String()+": it is of agent \"prefill\"")
	// The other way: told, not asked for; and taken back.
	_, met := l.Met("decode")
	require.False(t, met)
	require.NoError(t, s.Publish(bg, a))
	q, met := l.Met("decode")
	require.True(t, met)
	require.Equal(t, "decode", q.Name)
	require.True(t, b.knows("decode"))
	require.NoError(t, s.Withdraw(bg, "decode"))
	_, met = l.Met("decode")
	require.False(t, met)
	require.False(t, b.knows("decode"))
}

func TestNobodyListens(t *testing.T) {
	nobody := testutil.FreePort(t)
	s := NewSocket(wall, nobody)
	defer s.Close()
	for _, err := range []error{s.Publish(bg, newFake("a")), s.Withdraw(bg, "a")} {
		require.ErrorIs(t, err, nixl.ErrUnavailable)
		require.ErrorContains(t, err, "listener at "+nobody.String())
	}
	_, err := s.Fetch(bg, newFake("a"), "b", wall.Now())
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	s.Close()
	require.ErrorIs(t, s.Publish(bg, newFake("a")), nixl.ErrClosed)
}

// Whatever comes to the listener is told of, and the listener goes on.
func TestGarbageToAListener(t *testing.T) {
	told := make(chan error, 10)
	a := newFake("decode")
	_, port := listen(t, a, func(_ netip.AddrPort, err error) { told <- err })
	frame := func(command string, data []byte) []byte {
		var w bytes.Buffer
		require.NoError(t, writeFrame(&w, command, data))
		return w.Bytes()
	}
	length := func(n uint64) []byte { return binary.NativeEndian.AppendUint64(nil, n) }
	for want, sent := range map[string][]byte{
		"unexpected EOF":                  {1, 2, 3},
		"a frame of 5 bytes":              length(5),
		"a frame of 18446744073709551615": length(1<<64 - 1),
		"bytes ends after 2":              append(length(1<<20), 1, 2),
		"a frame of another protocol":     append(length(20), make([]byte, 20)...),
		`command "WHAT"`:                  frame("WHAT", nil),
		`no metadata: "garbage"`:          frame(loadCommand, []byte("garbage")),
		"nobody: unknown peer":            frame(leaveCommand, []byte("nobody")),
	} {
		conn, err := net.Dial("tcp", port.String())
		require.NoError(t, err)
		_, err = conn.Write(sent)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		require.ErrorContains(t, <-told, want)
		require.NoError(t, conn.Close())
	}
	// One connection is in the middle of a frame; the good still come through, and
	// the listener closes.
	stalled, err := net.Dial("tcp", port.String())
	require.NoError(t, err)
	defer stalled.Close()
	_, err = stalled.Write(length(1 << 20))
	require.NoError(t, err)
	s := NewSocket(wall, port)
	defer s.Close()
	require.NoError(t, s.Publish(bg, newFake("prefill")))
	require.True(t, a.knows("prefill"))
	require.Empty(t, told)
}

// What answers in place of a listener.
func TestGarbageFromAListener(t *testing.T) {
	for want, answer := range map[string][]byte{
		"a frame of 2 bytes":          {2, 0, 0, 0, 0, 0, 0, 0},
		"a frame of another protocol": append([]byte{13, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 13)...),
		`it answers "SEND"`:           append([]byte{13, 0, 0, 0, 0, 0, 0, 0}, "NIXLCOMM:SEND"...),
		"it is empty":                 append([]byte{13, 0, 0, 0, 0, 0, 0, 0}, "NIXLCOMM:LOAD"...),
		"no metadata":                 append([]byte{16, 0, 0, 0, 0, 0, 0, 0}, "NIXLCOMM:LOAD..."...),
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		wall.Go("fake listener", func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(answer)
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		})
		s := NewSocket(wall, netip.MustParseAddrPort(l.Addr().String()))
		_, err = s.Fetch(bg, newFake("decode"), "prefill", soon())
		require.ErrorIs(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "fetch peer prefill: listener at "+l.Addr().String()+": ")
		require.ErrorContains(t, err, want)
		s.Close()
		require.NoError(t, l.Close())
	}
}

// One connection serves all that a socket has to say to a listener, and another
// one follows where its agent has begun anew.
func TestTheConnectionIsKept(t *testing.T) {
	port := testutil.FreePort(t)
	a := newFake("prefill")
	s := NewSocket(wall, port)
	defer s.Close()
	for range 2 {
		b := newFake("decode")
		at, err := net.Listen("tcp", port.String())
		require.NoError(t, err)
		l := Listen(wall, b, at, nil)
		for range 2 {
			require.NoError(t, s.Publish(bg, a))
			require.True(t, b.knows("prefill"))
			_, err = s.Fetch(bg, a, "decode", soon())
			require.NoError(t, err)
			require.NoError(t, s.Withdraw(bg, "prefill"))
			require.False(t, b.knows("prefill"))
		}
		l.mu.Lock()
		require.Len(t, l.conns, 1)
		l.mu.Unlock()
		l.Close()
	}
}

func TestTooManyConnections(t *testing.T) {
	refused := make(chan error, 1)
	l, port := listen(t, newFake("decode"), func(_ netip.AddrPort, err error) { refused <- err })
	l.mu.Lock()
	require.Equal(t, maxConnections, l.limit)
	l.limit = 2
	l.mu.Unlock()
	dial := func() net.Conn {
		c, err := net.Dial("tcp", port.String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	answers := func(c net.Conn) {
		command, metadata, err := askFor(c)
		require.NoError(t, err)
		require.Equal(t, loadCommand, command)
		require.Equal(t, "of decode", string(metadata))
	}
	one, two := dial(), dial()
	answers(one)
	answers(two)
	three := dial()
	require.ErrorContains(t, <-refused, "more than 2 connections")
	_, err := io.ReadAll(three)
	require.NoError(t, err, "closed")
	answers(one)
	require.NoError(t, two.Close())
	until(t, "one connection is left", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return len(l.conns) < 2
	})
	answers(dial())
}

// The one who is told of a refusal may end the listener.
func TestCloseWhileToldOfARefusal(t *testing.T) {
	ready, closed := make(chan *Listener, 1), make(chan bool)
	l, port := listen(t, newFake("decode"), func(netip.AddrPort, error) {
		(<-ready).Close()
		close(closed)
	})
	ready <- l
	s := NewSocket(wall, port)
	defer s.Close()
	_ = s.tell(bg, "publish", loadCommand, []byte("garbage")) // answered, or cut off
	<-closed
	l.Close()
}
