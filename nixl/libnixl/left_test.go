package libnixl

import (
	"context"
	"net/netip"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

var etcdItself netip.AddrPort // as the address to publish at, or to fetch from

// Of two names of which one goes on behind a slash, each leaves alone.
func TestWithdrawalLeavesOthersAlone(t *testing.T) {
	server := etcd(t)
	names := []string{"host", "host/0", "host/", "host/0/metadata"}
	ctx, looks := context.Background(), agent(t, "looks", Config{Etcd: server})
	agents := map[string]*Agent{}
	for _, n := range names {
		a := agent(t, n, Config{Etcd: server})
		buf := pages(t, 1<<16)
		_, err := a.Register(nixl.DRAM, all(buf))
		require.NoError(t, err)
		require.NoError(t, a.Publish(ctx, etcdItself))
		for _, label := range []string{"0", "zz"} { // "host/0" is the bare name of another one
			require.NoError(t, a.PublishPartial(ctx, label, nixl.DRAM, all(buf), etcdItself))
		}
		agents[n] = a
	}
	c := looks.exchange.etcd
	kept := func(name, label string) bool {
		kv, _, err := c.get(ctx, c.key(name, label), true)
		require.NoError(t, err)
		return kv != nil
	}
	for i, n := range names {
		require.NoError(t, agents[n].Withdraw(ctx, etcdItself))
		for k, other := range names {
			for _, label := range []string{"", wholeLabel, "0", "zz"} {
				require.Equal(t, k > i, kept(other, label), "%s left: %q of %s", n, label, other)
			}
		}
	}
}

// An agent with more labels than etcd takes in one transaction leaves with all.
func TestWithdrawalOfManyLabels(t *testing.T) {
	server := etcd(t)
	a := agent(t, "many", Config{Etcd: server})
	ctx, c := context.Background(), a.exchange.etcd
	for i := range maxTxnOps + 20 {
		require.NoError(t, c.put(ctx, a.name, string(rune('a'+i)), []byte("x")))
	}
	require.NoError(t, a.Withdraw(ctx, etcdItself))
	for i := range maxTxnOps + 20 {
		kv, _, err := c.get(ctx, c.key(a.name, string(rune('a'+i))), true)
		require.NoError(t, err)
		require.Nil(t, kv, i)
	}
}

func TestLabelOfTheWhole(t *testing.T) {
	a := agent(t, "decode", Config{Etcd: "http://127.0.0.1:1"})
	quiet(t, a.PublishPartial(context.Background(), wholeLabel, nixl.DRAM, nil, etcdItself), nixl.ErrInvalid)
}

// What a killed agent left in etcd does not end a fetch: the next one's is what
// it waits for, or the deadline, with the reason.
func TestFetchWaitsOutWhatAKilledAgentLeft(t *testing.T) {
	server := etcd(t)
	a, s := spied(t, "decode", Config{Etcd: server})
	b := agent(t, "prefill", Config{Etcd: server})
	ctx, clk := context.Background(), a.Clock()
	require.NoError(t, b.Publish(ctx, etcdItself))
	require.NoError(t, b.Close())
	var gone atomic.Bool
	gone.Store(true)
	s.onLoad = func(h handle, blob []byte) (string, status, error) {
		if gone.Load() {
			return "", statusBackend, nil // as where nobody listens any more
		}
		return s.driver.load(h, blob)
	}
	_, err := a.FetchPeer(ctx, "prefill", etcdItself, clk.Now()+200*time.Millisecond)
	quiet(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "/prefill/metadata")
	loads := s.count("load")
	require.LessOrEqual(t, loads, 1, "it is tried once")

	type found struct {
		p   nixl.Peer
		err error
	}
	got := make(chan found, 1)
	clk.Go("fetch", func() {
		p, err := a.FetchPeer(ctx, "prefill", etcdItself, clk.Now()+patience)
		got <- found{p, err}
	})
	until(t, "the leftover is tried", func() bool { return s.count("load") > loads })
	select {
	case f := <-got:
		t.Fatalf("it did not wait: %v", f.err)
	default:
	}
	b = agent(t, "prefill", Config{Etcd: server})
	gone.Store(false)
	require.NoError(t, b.Publish(ctx, etcdItself))
	f := <-got
	require.NoError(t, f.err)
	known, err := a.Known(f.p)
	require.NoError(t, err)
	require.True(t, known)
}
