//go:build linux

package libnixl

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/exchange"
)

// until waits for what another process brings about, which has its share of a
// machine under load only.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	clk := clock.Wall()
	for !done() {
		require.Less(t, clk.Now(), 3*patience, what)
		require.NoError(t, clk.Sleep(context.Background(), 5*time.Millisecond))
	}
}

// way is how an agent here exchanges metadata with the one in Python.
type way interface {
	Publish(ctx context.Context, a nixl.Agent) error
	Withdraw(ctx context.Context, name string) error
	Fetch(ctx context.Context, a nixl.Agent, name string, deadline time.Duration) (nixl.Peer, error)
	Close()
}

// meetPython publishes and fetches, both ways, between an agent here and
// NVIDIA's, lets each read the other's memory, and has both leave again. The
// addresses are of the two listeners; zero ones mean etcd.
func meetPython(t *testing.T, a *Agent, py *python, w way, toGo netip.AddrPort, port string) nixl.Transfer {
	const n = 1 << 16
	ctx, buf := context.Background(), pages(t, n)
	t.Cleanup(w.Close)
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
	p, err := w.Fetch(ctx, a, "python", a.Clock().Now()+patience)
	require.NoError(t, err)
	x, err := a.NewTransfer(nixl.Spec{Peer: p, Local: all(buf), Remote: []nixl.Descriptor{{Addr: addr, Len: n}}})
	require.NoError(t, err)
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, a, x))
	require.Equal(t, byte(7), buf.Data[n-1])

	require.NoError(t, w.Publish(ctx, a))
	if port != "" { // told first, since what it asks for may come late
		until(t, "python is told of go", known("1"))
		require.NoError(t, w.Withdraw(ctx, "go"))
		until(t, "python is told that go leaves", known("0"))
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

	require.NoError(t, w.Withdraw(ctx, "go"))
	until(t, "python forgets go", known("0"))
	py.ask("withdraw %s", where)
	return x
}

func TestInteroperatesThroughEtcd(t *testing.T) {
	server := testutil.Etcd(t)
	py := newPython(t, exchange.EtcdVariable+"="+server)
	a := agent(t, "go", Config{})
	w, err := exchange.NewEtcd(a.Clock(), server, "")
	require.NoError(t, err)
	meetPython(t, a, py, w, netip.AddrPort{}, "")
	_, err = w.Fetch(context.Background(), a, "python", a.Clock().Now())
	quiet(t, err, nixl.ErrNoPeer)
	py.ask("end")
}

func TestInteroperatesThroughListeners(t *testing.T) {
	py := newPython(t)
	its := testutil.FreePort(t)
	a := agent(t, "go", Config{})
	at, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	l := exchange.Listen(a.Clock(), a, at, func(from netip.AddrPort, err error) { t.Errorf("%s: %v", from, err) })
	t.Cleanup(l.Close)
	mine := netip.MustParseAddrPort(at.Addr().String())
	x := meetPython(t, a, py, exchange.NewSocket(a.Clock(), its), mine, fmt.Sprint(its.Port()))
	until(t, "go forgets python", func() bool { _, err := current(a, "python"); return err != nil })
	quiet(t, x.Post(), nixl.ErrNoPeer)
	py.ask("end")
}
