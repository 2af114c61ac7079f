//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/exchange"
)

// node is one of several processes that know nothing of each other but where
// etcd is.
type node struct {
	*peer
	view []byte
}

func (n *node) fetch(t *testing.T, name string) nixl.Peer {
	t.Helper()
	r, err := n.ask(&request{Op: "fetch", Name: name})
	require.NoError(t, err, "%s fetches %s", n.name, name)
	return r.Peer
}

func (n *node) publish(t *testing.T) {
	t.Helper()
	_, err := n.ask(&request{Op: "publish"})
	require.NoError(t, err)
}

const page = 4096

// read reads the first page of a peer into page k.
func (n *node) read(t *testing.T, p nixl.Peer, k uint64) nixl.Transfer {
	t.Helper()
	x, err := n.NewTransfer(nixl.Spec{
		Peer:   p,
		Local:  []nixl.Descriptor{{Addr: childMemory + k*page, Len: page}},
		Remote: []nixl.Descriptor{{Addr: childMemory, Len: page}},
	})
	require.NoError(t, err)
	require.NoError(t, x.Post())
	require.NoError(t, n.done(x))
	return x
}

func (n *node) done(x nixl.Transfer) error {
	return nixl.Wait(context.Background(), n.clk, n, x, n.clk.Now()+patience)
}

// Three processes find each other through etcd; one leaves and comes back.
func TestThreeProcessesMeetInEtcd(t *testing.T) {
	library(t)
	t.Setenv(exchange.EtcdVariable, testutil.Etcd(t))
	var nodes []*node
	for i := range 3 {
		file, view := memory(t, 4*page)
		n := &node{peer: newPeer(t, fmt.Sprintf("node%d", i), file), view: view}
		_, err := n.Register(nixl.DRAM, []nixl.Descriptor{{Addr: childMemory, Len: 4 * page}})
		require.NoError(t, err)
		pattern(view[:page], uint64(i))
		n.publish(t)
		nodes = append(nodes, n)
	}
	peers := map[[2]int]nixl.Peer{}
	last := map[[2]int]nixl.Transfer{}
	for i, n := range nodes {
		for k, m := range nodes {
			if i == k {
				continue
			}
			p := n.fetch(t, m.name)
			require.Equal(t, uint32(1), p.Generation)
			peers[[2]int{i, k}] = p
			last[[2]int{i, k}] = n.read(t, p, uint64(k)+1)
			require.True(t, bytes.Equal(m.view[:page], n.view[(k+1)*page:][:page]), "%d reads of %d", i, k)
		}
	}
	// Leaves: nobody finds it any more, and the others remove it.
	gone := nodes[2]
	_, err := gone.ask(&request{Op: "withdraw"})
	require.NoError(t, err)
	for i := range 2 {
		require.NoError(t, nodes[i].RemovePeer(peers[[2]int{i, 2}]))
		quiet(t, last[[2]int{i, 2}].Post(), nixl.ErrNoPeer)
	}
	gone.kill()
	// Comes back, with other content.
	gone.again()
	pattern(gone.view[:page], 99)
	gone.publish(t)
	for i := range 2 {
		p := nodes[i].fetch(t, gone.name)
		require.Greater(t, p.Generation, peers[[2]int{i, 2}].Generation)
		require.ErrorIs(t, last[[2]int{i, 2}].Post(), nixl.ErrStalePeer)
		nodes[i].read(t, p, 3)
		require.True(t, bytes.Equal(gone.view[:page], nodes[i].view[3*page:][:page]))
		// The two that stayed are as before.
		x := last[[2]int{i, 1 - i}]
		require.NoError(t, x.Post())
		require.NoError(t, nodes[i].done(x))
		back := gone.fetch(t, nodes[i].name)
		gone.read(t, back, uint64(i)+1)
		require.True(t, bytes.Equal(nodes[i].view[:page], gone.view[(i+1)*page:][:page]))
	}
	// Crashes, without a word to etcd: the others notice when they use it, and
	// fetch what it publishes next.
	before := nodes[0].fetch(t, gone.name)
	x, err := nodes[0].NewTransfer(nixl.Spec{
		Peer:   before,
		Local:  []nixl.Descriptor{{Addr: childMemory, Len: page}},
		Remote: []nixl.Descriptor{{Addr: childMemory, Len: page}},
	})
	require.NoError(t, err)
	gone.kill()
	err = x.Post()
	if err == nil {
		err = nodes[0].done(x)
	}
	require.Error(t, err)
	require.False(t, nixl.Quiet(err))
	if !errors.Is(err, nixl.ErrDisconnected) {
		// Over shared memory nobody sees a connection fail: reading the memory
		// of a process that is gone does. The peer is to be removed then.
		require.ErrorIs(t, err, nixl.ErrBackend)
		require.NoError(t, nodes[0].RemovePeer(before))
	}
	gone.again()
	gone.publish(t)
	// What etcd has may be of the life before until the new one has arrived.
	for clk := clock.Wall(); ; {
		p := nodes[0].fetch(t, gone.name)
		require.Greater(t, p.Generation, before.Generation)
		x, err := nodes[0].NewTransfer(nixl.Spec{
			Peer:   p,
			Local:  []nixl.Descriptor{{Addr: childMemory + page, Len: page}},
			Remote: []nixl.Descriptor{{Addr: childMemory, Len: page}},
		})
		if err == nil {
			err = x.Post()
		}
		if err == nil {
			err = nodes[0].done(x)
		}
		if err == nil {
			break
		}
		require.Less(t, clk.Now(), patience, err)
		_ = nodes[0].RemovePeer(p)
	}
}
