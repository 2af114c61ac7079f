//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/exchange"
)

func TestReachesByTCP(t *testing.T) {
	sample := func(host, namespace byte, ib bool, ips ...byte) *ucxAddress {
		s := &ucxSample{marks: map[string]int{}}
		s.add(ucxUUID<<4, 1, 2, 3, 4, 5, 6, 7, 8)
		s.device(0)
		s.iface("self", true, 1, 1, 1, 1, 1, 1, 1, 1)
		for _, ip := range ips {
			s.device(1, 0, 2, 192, 0, 2, ip)
			s.iface("tcp", true, 0x12, 0x34)
		}
		if namespace != 0 {
			s.device(1, 1, 2, 9, 9, 9, 9, 9, 9, 9, 9, namespace, 0, 0, 0)
			s.iface("tcp", true, 0x56, 0x78)
		}
		if ib {
			s.device(5, 1, 2, 3)
			s.iface("rc_mlx5", true, 4)
		}
		s.device(3, host, 9, 9, 9, 9, 9, 9, 0x19)
		s.iface("posix", true, 0xa6, 0x6b, 0, 0x40, 5, 0, 0, 0xc0)
		s.add(ucxEmptyDevice|7, ucxLast)
		a, err := parseUCXAddress(s.b)
		require.NoError(t, err)
		return a
	}
	own := sample(1, 3, true, 1)
	for _, c := range []struct {
		why  string
		peer *ucxAddress
		want string
	}{
		{"another host", sample(2, 0, false, 7, 8), "[192.0.2.7:4660 192.0.2.8:4660]"},
		{"and its loopback", sample(2, 4, false, 7), "[192.0.2.7:4660]"},
		{"shared memory", sample(1, 3, false, 7), "[192.0.2.7:4660]"},
		{"only a loopback", sample(2, 3, false), "[]"},
		{"InfiniBand on both sides", sample(2, 0, true, 7), "[]"},
		{"no TCP", sample(2, 0, false), "[]"},
	} {
		require.Equal(t, c.want, fmt.Sprint(own.reachesByTCP(c.peer)), c.why)
	}
	require.Empty(t, sample(1, 3, true).reachesByTCP(sample(2, 3, false, 7)), "TCP over the loopback only")
	require.Len(t, sample(1, 0, false, 1).reachesByTCP(sample(2, 0, true, 7)), 1, "InfiniBand on one side")
}

func TestBoundConnects(t *testing.T) {
	require.Equal(t, "TCP_SYN_CNT=2", boundConnects(""))
	require.Equal(t, "MAX_RMA_RAILS=1,TCP_SYN_CNT=2", boundConnects("MAX_RMA_RAILS=1"))
	require.Equal(t, "TCP_SYN_CNT=6,X=y", boundConnects("TCP_SYN_CNT=6,X=y"))
}

// hostAddress returns an address of this machine that is not of its loopback.
func hostAddress(t testing.TB) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	require.NoError(t, err)
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.Addr().IsLoopback() {
			return p.Addr()
		}
	}
	t.Skip("this machine has a loopback only, and UCX connects to itself there without asking")
	return netip.Addr{}
}

// silentPort returns an address that answers nothing: what listens there has all
// connections waiting that it takes, so that the kernel drops whatever else comes.
func silentPort(t testing.TB, ip netip.Addr) netip.AddrPort {
	t.Helper()
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Close(fd)) })
	require.NoError(t, unix.Bind(fd, &unix.SockaddrInet4{Addr: ip.As4()}))
	require.NoError(t, unix.Listen(fd, 0))
	name, err := unix.Getsockname(fd)
	require.NoError(t, err)
	to := netip.AddrPortFrom(ip, uint16(name.(*unix.SockaddrInet4).Port))
	for range 8 {
		conn, err := net.DialTimeout("tcp", to.String(), 100*time.Millisecond)
		if err != nil {
			return to
		}
		t.Cleanup(func() { require.NoError(t, conn.Close()) })
	}
	t.Fatal("nothing that listens here is ever silent")
	return to
}

// stranger makes metadata of another agent out of b's, with another port for TCP
// outside of the loopback.
func stranger(t testing.TB, b *Agent, name string, port uint16) []byte {
	t.Helper()
	blob, _, err := b.d.metadata(b.h)
	require.NoError(t, err)
	m, err := ParseMetadata(blob)
	require.NoError(t, err)
	for _, c := range m.Connections {
		ucx, err := parseUCXAddress(c.Info)
		require.NoError(t, err)
		changed := bytes.Clone(c.Info)
		for _, d := range ucx.domains {
			if d.transport.name != "tcp" || d.device[0] != 0 {
				continue
			}
			at := bytes.Index(changed, append([]byte{byte(len(d.iface)) | ucxLast}, d.iface...))
			require.Positive(t, at)
			binary.BigEndian.PutUint16(changed[at+1:], port)
		}
		require.NotEqual(t, c.Info, changed)
		blob = bytes.Replace(blob, c.Info, changed, 1)
	}
	return seal(renamed(blob, name))
}

// overEthernet makes agents without a loopback.
func overEthernet(t testing.TB, transports string, c Config) (*pair, netip.Addr) {
	t.Helper()
	library(t)
	ip := hostAddress(t)
	t.Setenv("UCX_TLS", transports)
	device := ""
	all, err := net.Interfaces()
	require.NoError(t, err)
	for _, i := range all {
		addrs, err := i.Addrs()
		require.NoError(t, err)
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr() == ip {
				device = i.Name
			}
		}
	}
	t.Setenv("UCX_NET_DEVICES", device)
	return newPair(t, 1<<20, c), ip
}

// A peer whose host does not answer is refused in bounded time; meanwhile
// transfers with others go on, and nothing of it is left.
func TestSilentPeer(t *testing.T) {
	for _, transports := range []string{"tcp,self", "all"} {
		t.Run(transports, func(t *testing.T) { testSilentPeer(t, transports) })
	}
}

func testSilentPeer(t *testing.T, transports string) {
	p, ip := overEthernet(t, transports, Config{ConnectTimeout: time.Millisecond})
	to := silentPort(t, ip)
	blob := stranger(t, p.b, "stranger", to.Port())
	loads := p.s.count("load")
	x, err := p.a.NewTransfer(p.spec(nixl.Read, 0, 4096))
	require.NoError(t, err)
	clk := clock.Wall()
	refused := make(chan error, 1)
	clk.Go("add", func() {
		_, err := p.a.AddPeer(blob)
		refused <- err
	})
	moved := 0
	for ; len(refused) == 0; moved++ {
		require.NoError(t, x.Post())
		require.NoError(t, wait(t, p.a, x))
	}
	require.Less(t, clk.Now(), patience)
	err = <-refused
	quiet(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "add peer stranger: no answer over TCP from ["+to.String()+"]")
	require.Greater(t, moved, 10)
	t.Logf("%d transfers in %v", moved, clk.Now())
	require.Equal(t, loads, p.s.count("load"))
	_, err = current(p.a, "stranger")
	require.ErrorIs(t, err, nixl.ErrNoPeer)

	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(io.ErrClosedPipe)
	_, err = p.a.AddPeerContext(ctx, blob)
	quiet(t, err, nixl.ErrUnavailable)
	require.ErrorIs(t, err, io.ErrClosedPipe)

	// Its listener answers, the agent does not.
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := exchange.Listen(clk, told{p.b, blob}, at, nil)
	w := exchange.NewSocket(clk, at.Addr().(*net.TCPAddr).AddrPort())
	_, err = w.Fetch(context.Background(), p.a, "stranger", clk.Now()+100*time.Millisecond)
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, to.String())
	w.Close()
	l.Close()

	// One that refuses to connect is UCX's to tell, and quick.
	before := clk.Now()
	_, err = p.a.AddPeer(stranger(t, p.b, "nobody", testutil.FreePort(t).Port()))
	t.Logf("refused in %v: %v", clk.Now()-before, err)
	require.Less(t, clk.Now()-before, 400*time.Millisecond)
	require.NoError(t, x.Close())
	require.NoError(t, p.a.Close())
}

// An agent ends while its listener waits for a silent host.
func TestCloseWhileAPeerIsSilent(t *testing.T) {
	p, ip := overEthernet(t, "tcp,self", Config{ConnectTimeout: 10 * patience})
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var refused []error
	l := exchange.Listen(p.a.Clock(), p.a, at, func(_ netip.AddrPort, err error) { refused = append(refused, err) })
	s := exchange.NewSocket(p.a.Clock(), netip.MustParseAddrPort(at.Addr().String()))
	defer s.Close()
	blob := stranger(t, p.b, "stranger", silentPort(t, ip).Port())
	sent := make(chan error, 1)
	p.a.Clock().Go("publish", func() { sent <- s.Publish(context.Background(), told{p.b, blob}) })
	clk := clock.Wall()
	require.NoError(t, clk.Sleep(context.Background(), 50*time.Millisecond))
	l.Close()
	require.NoError(t, p.a.Close())
	require.Less(t, clk.Now(), patience)
	<-sent // an error, since nobody has answered
	require.Empty(t, refused)
}

// told is an agent that tells of other metadata than its own.
type told struct {
	nixl.Agent
	metadata []byte
}

func (t told) Metadata() ([]byte, error) { return t.metadata, nil }

// What the library is left to find out by itself takes seconds, not minutes.
func TestUCXGivesUpSoon(t *testing.T) {
	p, ip := overEthernet(t, "tcp,self", Config{})
	blob := stranger(t, p.b, "stranger", silentPort(t, ip).Port())
	clk := clock.Wall()
	_, s, err := p.a.d.load(p.a.h, blob)
	require.NoError(t, err)
	t.Logf("status %v after %v", s, clk.Now())
	require.Less(t, clk.Now(), 20*time.Second)
}

// Being asked whether it answers costs an agent nothing.
func TestProbesAreHarmless(t *testing.T) {
	p, _ := overEthernet(t, "tcp,self", Config{})
	blob, err := p.b.Metadata()
	require.NoError(t, err)
	m, err := ParseMetadata(blob)
	require.NoError(t, err)
	ucx, err := parseUCXAddress(m.Connections[0].Info)
	require.NoError(t, err)
	to := p.a.address.ucx.reachesByTCP(ucx)
	require.Len(t, to, 1)
	descriptors := func() int {
		all, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(all)
	}
	before := descriptors()
	for range 300 {
		require.NoError(t, p.a.answers(context.Background(), "probe", "prefill", to))
	}
	until(t, "end of all connections", func() bool { return descriptors() <= before })
	x, err := p.b.NewTransfer(nixl.Spec{Peer: mustPeer(t, p.b, "decode"), Local: all(p.bufB), Remote: all(p.bufA)})
	require.NoError(t, err)
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.b, x))
	require.NoError(t, x.Close())
}

func mustPeer(t testing.TB, a *Agent, name string) nixl.Peer {
	t.Helper()
	p, err := current(a, name)
	require.NoError(t, err)
	return p
}
