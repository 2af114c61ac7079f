package libnixl

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// until waits for what another process brings about, which has its share of a
// machine under load only.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	clk := clock.Wall()
	for !done() {
		require.Less(t, clk.Now(), 3*patience, what)
		require.NoError(t, clk.Sleep(context.Background(), lookAgain))
	}
}

// meetPython publishes and fetches, both ways, between an agent here and
// NVIDIA's, lets each read the other's memory, and has both leave again. The
// addresses are of the other's listener; zero ones mean etcd.
func meetPython(t *testing.T, a *Agent, py *python, toPython, toGo netip.AddrPort, port string) {
	const n = 1 << 16
	ctx, buf := context.Background(), pages(t, n)
	_, err := a.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	py.ask("start python %d %s", n, port)
	var addr uint64
	_, err = fmt.Sscan(py.ask("address")[0], &addr)
	require.NoError(t, err)
	py.ask("fill 7")
	where := ""
	if toGo.IsValid() {
		where = fmt.Sprintf("%s %d", toGo.Addr(), toGo.Port())
	}
	known := func(want string) func() bool { return func() bool { return py.ask("known go")[0] == want } }

	py.ask("publish %s", where)
	p, err := a.FetchPeer(ctx, "python", toPython, a.Clock().Now()+patience)
	require.NoError(t, err)
	x, err := a.NewTransfer(nixl.Spec{Peer: p, Local: all(buf), Remote: []nixl.Descriptor{{Addr: addr, Len: n}}})
	require.NoError(t, err)
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, a, x))
	require.Equal(t, byte(7), buf.Data[n-1])

	if toPython.IsValid() { // told first, since what it asks for may come late
		require.NoError(t, a.Publish(ctx, toPython))
		until(t, "python is told of go", known("1"))
		require.NoError(t, a.Withdraw(ctx, toPython))
		until(t, "python is told that go leaves", known("0"))
	} else {
		require.NoError(t, a.Publish(ctx, toPython))
	}
	// It looks once, and gives up by itself when its own clock says so.
	clk, next := clock.Wall(), time.Duration(0)
	until(t, "python knows go", func() bool {
		if clk.Now() >= next {
			py.ask("fetch go %s", where)
			next = clk.Now() + patience/2
		}
		return known("1")()
	})
	buf.Data[5] = 55
	py.ask("transfer READ go %d 4096 %x", buf.Addr, "python has read")
	require.Equal(t, []string{"55"}, py.ask("bytes 5"))

	require.NoError(t, a.Withdraw(ctx, toPython))
	until(t, "python forgets go", known("0"))
	py.ask("withdraw %s", where)
	until(t, "go forgets python", func() bool { _, err := a.Peer("python"); return err != nil })
	quiet(t, x.Post(), nixl.ErrNoPeer)
	py.ask("end")
}

func TestInteroperatesThroughEtcd(t *testing.T) {
	server := etcd(t)
	py := newPython(t, EtcdVariable+"="+server)
	meetPython(t, agent(t, "go", Config{Etcd: server}), py, netip.AddrPort{}, netip.AddrPort{}, "")
}

func TestInteroperatesThroughListeners(t *testing.T) {
	py := newPython(t)
	mine, its := freePort(t), freePort(t)
	a := agent(t, "go", Config{Listen: true, ListenPort: mine.Port(), Refused: func(from netip.AddrPort, err error) {
		t.Errorf("%s: %v", from, err)
	}})
	meetPython(t, a, py, its, mine, fmt.Sprint(its.Port()))
}

// Whatever comes to the listener, the process lives, is told, and goes on.
func TestGarbageToAListener(t *testing.T) {
	port := freePort(t)
	var mu sync.Mutex
	var told []string
	a := agent(t, "decode", Config{Listen: true, ListenPort: port.Port(), Refused: func(_ netip.AddrPort, err error) {
		mu.Lock()
		defer mu.Unlock()
		told = append(told, err.Error())
	}})
	b := agent(t, "prefill", Config{})
	buf := pages(t, 4096)
	_, err := b.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	plain, _, err := b.d.metadata(b.h)
	require.NoError(t, err)
	damaged := bytes.Clone(plain)
	m, err := ParseMetadata(damaged)
	require.NoError(t, err)
	m.Regions[0].Key[8] = 0xee

	frame := func(command string, data []byte) []byte {
		var w bytes.Buffer
		require.NoError(t, writeFrame(&w, command, data))
		return w.Bytes()
	}
	length := func(n uint64) []byte { return binary.NativeEndian.AppendUint64(nil, n) }
	for want, sent := range map[string][]byte{
		"unexpected EOF":                     {1, 2, 3},
		"a frame of 5 bytes":                 length(5),
		"a frame of 18446744073709551615":    length(1<<64 - 1),
		"bytes ends after 2":                 append(length(1<<20), 1, 2),
		"a frame of another protocol":        append(length(20), make([]byte, 20)...),
		`command "WHAT"`:                     frame("WHAT", nil),
		`no "nixlSerDes|" where it has`:      frame(loadCommand, []byte("garbage")),
		"UCX key, byte":                      frame(loadCommand, damaged),
		"nobody: unknown peer":               frame(leaveCommand, []byte("nobody")),
		"more than there are":                frame(loadCommand, plain[:len(plain)-1]),
		"the metadata is the agent's own":    frame(loadCommand, renamed(plain, "decode")),
		"field \"Agent\" has 72057594037927": frame(loadCommand, append([]byte("nixlSerDes|Agent"), 0, 0, 0, 0, 0, 0, 0, 1)),
	} {
		mu.Lock()
		told = nil
		mu.Unlock()
		conn, err := net.Dial("tcp", port.String())
		require.NoError(t, err)
		_, err = conn.Write(sent)
		require.NoError(t, err)
		require.NoError(t, conn.(*net.TCPConn).CloseWrite())
		until(t, want, func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(told) > 0
		})
		require.NoError(t, conn.Close())
		mu.Lock()
		require.Len(t, told, 1)
		require.Contains(t, told[0], want)
		mu.Unlock()
	}
	// Several connections stay open, one in the middle of a frame; the good still
	// come through, and the agent closes.
	stalled, err := net.Dial("tcp", port.String())
	require.NoError(t, err)
	defer stalled.Close()
	_, err = stalled.Write(length(1 << 20))
	require.NoError(t, err)
	require.NoError(t, b.Publish(context.Background(), port))
	p, err := a.Peer("prefill")
	require.NoError(t, err)
	require.NoError(t, a.Connect(p))
	_, err = b.FetchPeer(context.Background(), "decode", port, b.Clock().Now()+patience)
	require.NoError(t, err)
	_, err = library(t).NewAgent(context.Background(), "second", Config{Listen: true, ListenPort: port.Port()})
	quiet(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "in use")
}

// What answers in place of a listener.
func TestGarbageFromAListener(t *testing.T) {
	a := agent(t, "decode", Config{})
	ctx := context.Background()
	for want, answer := range map[string][]byte{
		"a frame of 2 bytes":               {2, 0, 0, 0, 0, 0, 0, 0},
		"a frame of another protocol":      append([]byte{13, 0, 0, 0, 0, 0, 0, 0}, make([]byte, 13)...),
		`it answers "SEND"`:                append([]byte{13, 0, 0, 0, 0, 0, 0, 0}, "NIXLCOMM:SEND"...),
		"it is empty":                      append([]byte{13, 0, 0, 0, 0, 0, 0, 0}, "NIXLCOMM:LOAD"...),
		`no "nixlSerDes|" where it has to`: append([]byte{16, 0, 0, 0, 0, 0, 0, 0}, "NIXLCOMM:LOAD..."...),
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		a.Clock().Go("fake listener", func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write(answer)
			_, _ = conn.Read(make([]byte, 1<<10))
			_ = conn.Close()
		})
		from := netip.MustParseAddrPort(l.Addr().String())
		_, err = a.FetchPeer(ctx, "prefill", from, a.Clock().Now()+patience)
		quiet(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "fetch peer prefill: listener at "+from.String()+": ")
		require.ErrorContains(t, err, want)
		require.NoError(t, l.Close())
	}
	nobody := freePort(t)
	for _, err := range []error{a.Publish(ctx, nobody), a.Withdraw(ctx, nobody)} {
		quiet(t, err, nixl.ErrUnavailable)
		require.ErrorContains(t, err, "listener at "+nobody.String())
	}
}

// A peer that leaves while transfers with it are in flight is unknown at once,
// and the library keeps it until it is met anew.
func TestLeavesInFlight(t *testing.T) {
	a, b := agent(t, "decode", Config{}), agent(t, "prefill", Config{})
	blob, err := b.Metadata()
	require.NoError(t, err)
	p, err := a.AddPeer(blob)
	require.NoError(t, err)
	native := func() bool {
		s, err := a.d.check(a.h, p.Name, nixl.DRAM, nil)
		require.NoError(t, err)
		return s == statusOK
	}
	count := func(fn func(nixl.Peer)) {
		a.mu.Lock()
		defer a.mu.Unlock()
		fn(p)
	}
	count(a.peers.Begin)
	a.lost(p)
	_, err = a.Peer(p.Name)
	quiet(t, err, nixl.ErrNoPeer)
	require.True(t, native())
	_, err = a.AddPeer(blob)
	quiet(t, err, nixl.ErrBusy)
	count(a.peers.End)
	q, err := a.AddPeer(blob)
	require.NoError(t, err)
	require.Equal(t, p.Generation+1, q.Generation)
	a.lost(p) // of the generation before
	_, err = a.Peer(p.Name)
	require.NoError(t, err)
	a.lost(q)
	require.False(t, native())
}

// Regions that are registered later follow under a label of their own, or over a
// socket.
func TestPublishPartial(t *testing.T) {
	server, port := etcd(t), freePort(t)
	a := agent(t, "decode", Config{Etcd: server, Listen: true, ListenPort: port.Port()})
	b := agent(t, "prefill", Config{Etcd: server})
	buf := pages(t, 1<<14)
	ctx, zero := context.Background(), netip.AddrPort{}
	fetch := func(label string) (nixl.Peer, error) {
		return a.FetchPartial(ctx, "prefill", label, zero, a.Clock().Now()+patience)
	}
	part := func(k uint64) []nixl.Descriptor { return []nixl.Descriptor{region(buf, k*4096, 4096)} }
	reaches := func(p nixl.Peer, k uint64) error {
		x, err := a.NewTransfer(nixl.Spec{Peer: p, Local: part(3), Remote: part(k)})
		if err != nil {
			return err
		}
		require.NoError(t, x.Post())
		require.NoError(t, wait(t, a, x))
		return x.Close()
	}
	_, err := a.Register(nixl.DRAM, part(3))
	require.NoError(t, err)
	_, err = b.Register(nixl.DRAM, part(0))
	require.NoError(t, err)
	require.NoError(t, b.Publish(ctx, zero))
	p, err := a.FetchPeer(ctx, "prefill", zero, a.Clock().Now()+patience)
	require.NoError(t, err)
	for k := range uint64(2) {
		_, err = b.Register(nixl.DRAM, part(k+1))
		require.NoError(t, err)
		quiet(t, reaches(p, k+1), nixl.ErrNotRegistered)
	}
	require.NoError(t, b.PublishPartial(ctx, "more", nixl.DRAM, part(1), zero))
	q, err := fetch("more")
	require.NoError(t, err)
	require.Equal(t, p, q)
	require.NoError(t, b.PublishPartial(ctx, "", nixl.DRAM, part(2), port))
	for k := range uint64(3) {
		require.NoError(t, reaches(p, k))
	}
	for _, label := range []string{"", "a/b"} {
		quiet(t, b.PublishPartial(ctx, label, nixl.DRAM, part(1), zero), nixl.ErrInvalid)
		_, err := fetch(label)
		quiet(t, err, nixl.ErrInvalid)
	}
	quiet(t, b.PublishPartial(ctx, "more", nixl.DRAM, part(3), zero), nixl.ErrNotRegistered)
	require.NoError(t, a.RemovePeer(p))
	_, err = fetch("more")
	quiet(t, err, nixl.ErrNoPeer)
	require.ErrorContains(t, err, "etcd key /nixl/agents//prefill/more: the metadata is partial")

	over, cancel := context.WithCancelCause(ctx)
	cancel(context.Canceled)
	_, err = a.FetchPeer(over, "nobody", zero, never)
	quiet(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.Canceled)
}

// One connection serves all that an agent has to say to a listener, and another
// one follows where its agent has begun anew.
func TestConnectionsAreKept(t *testing.T) {
	port := freePort(t)
	a := agent(t, "prefill", Config{})
	ctx := context.Background()
	for range 2 {
		b, err := library(t).NewAgent(ctx, "decode", Config{Listen: true, ListenPort: port.Port()})
		require.NoError(t, err)
		for range 2 {
			require.NoError(t, a.Publish(ctx, port))
			_, err = b.Peer("prefill")
			require.NoError(t, err)
			_, err = a.FetchPeer(ctx, "decode", port, a.Clock().Now()+patience)
			require.NoError(t, err)
			require.NoError(t, a.Withdraw(ctx, port))
			_, err = b.Peer("prefill")
			quiet(t, err, nixl.ErrNoPeer)
		}
		l := b.exchange.listen
		l.mu.Lock()
		require.Len(t, l.conns, 1)
		l.mu.Unlock()
		require.NoError(t, b.Close())
	}
}
