//go:build linux

package libnixl

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

func TestBackends(t *testing.T) {
	a := agent(t, "decode", Config{Backends: []BackendConfig{}})
	_, err := a.Metadata()
	require.Error(t, err, "no backend, nobody can reach it")
	_, err = a.Register(nixl.DRAM, all(pages(t, 4096)))
	quiet(t, err, nixl.ErrInvalid)
	require.ErrorContains(t, err, "no backend")
	a = agent(t, "prefill", Config{Backends: []BackendConfig{{"UCX", map[string]string{"num_workers": "2"}}}})
	b := a.allBackends()[0]
	require.Equal(t, "2", b.info.params["num_workers"])
	require.Contains(t, b.info.memories, nixl.VRAM)
	_, err = library(t).NewAgent(context.Background(), "twice", Config{Backends: []BackendConfig{{Plugin: "UCX"}, {Plugin: "UCX"}}})
	quiet(t, err, nixl.ErrInvalid)
	_, err = library(t).NewAgent(context.Background(), "none", Config{Backends: []BackendConfig{{Plugin: "NO_SUCH_PLUGIN"}}})
	quiet(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "NO_SUCH_PLUGIN")
}

func TestConfig(t *testing.T) {
	l := library(t)
	for name, c := range map[string]struct {
		agent string
		c     Config
	}{
		"no name":       {"", Config{}},
		"zero byte":     {"a\x00b", Config{}},
		"sync":          {"a", Config{Sync: 9}},
		"wait":          {"a", Config{ProgressWait: -1}},
		"spin and wait": {"a", Config{Spin: true, ProgressWait: 1}},
		"spin alone":    {"a", Config{Spin: true, NoProgressThread: true}},
		"parameter":     {"a", Config{Backends: []BackendConfig{{"UCX", map[string]string{"": "x"}}}}},
		"no plugin":     {"a", Config{Backends: []BackendConfig{{}}}},
		"zero in value": {"a", Config{Backends: []BackendConfig{{"UCX", map[string]string{"x": "\x00"}}}}},
	} {
		_, err := l.NewAgent(context.Background(), c.agent, c.c)
		require.Error(t, err, name)
		quiet(t, err, nixl.ErrInvalid)
	}
	for _, s := range []ThreadSync{SyncReadWrite, SyncStrict, SyncNone} {
		a := agent(t, "decode", Config{Sync: s, NoProgressThread: s == SyncNone, Spin: s == SyncStrict})
		_, err := a.Metadata()
		require.NoError(t, err)
	}
}

func TestPreparedLists(t *testing.T) {
	p := newPair(t, 1<<20, Config{})
	const page, n = 4096, 256
	var l, r []nixl.Descriptor
	for i := range uint64(n) {
		l, r = append(l, region(p.bufA, i*page, page)), append(r, region(p.bufB, i*page, page))
	}
	local, err := p.a.PrepareLocal(nixl.DRAM, l)
	require.NoError(t, err)
	remote, err := p.a.PrepareRemote(p.peer, nixl.DRAM, r)
	require.NoError(t, err)
	require.Equal(t, n, local.Len())
	pattern(p.bufB.Data, 5)
	li, ri := []int32{0, 7, 9, 10, 255}, []int32{1, 8, 9, 10, 0}
	for range 3 {
		clear(p.bufA.Data)
		x, err := p.a.NewIndexed(nixl.Read, local, li, remote, ri, []byte("picked"))
		require.NoError(t, err)
		require.Equal(t, r[8], x.Spec().Remote[1])
		require.NoError(t, x.Post())
		require.NoError(t, wait(t, p.a, x))
		for i := range li {
			require.Equal(t, p.bufB.Data[ri[i]*page:][:page], p.bufA.Data[li[i]*page:][:page])
		}
		require.Equal(t, "picked", string(awaitMessage(t, func() []nixl.Notification { m, err := p.b.Notifications(nil); require.NoError(t, err); return m })))
		require.NoError(t, x.Close())
	}
	for _, bad := range [][]int32{{-1}, {n}, {}} {
		_, err := p.a.NewIndexed(nixl.Read, local, bad, remote, bad, nil)
		quiet(t, err, nixl.ErrInvalid)
	}
	_, err = p.a.NewIndexed(nixl.Read, remote, li, local, ri, nil)
	quiet(t, err, nixl.ErrInvalid)
	_, err = p.a.NewIndexed(nixl.Read, local, li, remote, ri[1:], nil)
	quiet(t, err, nixl.ErrInvalid)
	_, err = p.a.PrepareLocal(nixl.DRAM, []nixl.Descriptor{{Addr: 4096, Len: 64}})
	quiet(t, err, nixl.ErrNotRegistered)
	_, err = p.a.PrepareRemote(nixl.Peer{Name: "nobody", Generation: 1}, nixl.DRAM, r)
	quiet(t, err, nixl.ErrNoPeer)
	_, err = p.a.PrepareRemote(nixl.Peer{}, nixl.DRAM, r)
	quiet(t, err, nixl.ErrNoPeer)

	// A request outlives the closed lists; lists do not outlive their peer.
	x, err := p.a.NewIndexed(nixl.Read, local, li, remote, ri, nil)
	require.NoError(t, err)
	require.NoError(t, local.Close())
	require.NoError(t, local.Close())
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x))
	_, err = p.a.NewIndexed(nixl.Read, local, li, remote, ri, nil)
	quiet(t, err, nixl.ErrClosed)
	require.NoError(t, p.a.RemovePeer(p.peer))
	require.NoError(t, remote.Close())
}

func TestPartialMetadata(t *testing.T) {
	a, b := agent(t, "decode", Config{}), agent(t, "prefill", Config{})
	bufA, bufB := pages(t, 1<<16), pages(t, 1<<16)
	_, err := a.Register(nixl.DRAM, all(bufA))
	require.NoError(t, err)
	halves := []nixl.Descriptor{region(bufB, 0, 1<<15), region(bufB, 1<<15, 1<<15)}
	_, err = b.Register(nixl.DRAM, halves)
	require.NoError(t, err)
	second, err := b.PartialMetadata(nixl.DRAM, halves[1:])
	require.NoError(t, err)
	_, err = a.AddPeer(second)
	quiet(t, err, nixl.ErrNoPeer)
	_, err = b.PartialMetadata(nixl.DRAM, []nixl.Descriptor{region(bufB, 0, 10)})
	quiet(t, err, nixl.ErrNotRegistered)
	connections, err := b.PartialMetadata(nixl.DRAM, nil)
	require.NoError(t, err)
	p, err := a.AddPeer(connections)
	require.NoError(t, err)
	require.NoError(t, a.Connect(p))
	read := func(d nixl.Descriptor) error {
		x, err := a.NewTransfer(nixl.Spec{Peer: p, Local: []nixl.Descriptor{region(bufA, 0, 64)}, Remote: []nixl.Descriptor{{Addr: d.Addr, Len: 64}}})
		if err != nil {
			return err
		}
		require.NoError(t, x.Post())
		return wait(t, a, x)
	}
	quiet(t, read(halves[1]), nixl.ErrNotRegistered)
	q, err := a.AddPeer(second)
	require.NoError(t, err)
	require.Equal(t, p, q)
	require.NoError(t, read(halves[1]))
	quiet(t, read(halves[0]), nixl.ErrNotRegistered)
	quiet(t, a.Connect(nixl.Peer{Name: "nobody", Generation: 1}), nixl.ErrNoPeer)
	require.True(t, known(t, a, p))
}

// An agent that hangs while it is made does not hang its maker, and does not
// stay once it is made.
func TestNewAgentGivesUp(t *testing.T) {
	l := library(t)
	hang := make(chan struct{})
	s := &spy{driver: l.d, calls: map[string]int{}}
	s.onCreateAgent = func() (status, bool) { <-hang; return 0, false }
	ctx, cancel := context.WithCancelCause(context.Background())
	clk := clock.Wall()
	clk.Go("cancel", func() {
		_ = clk.Sleep(context.Background(), 10*time.Millisecond)
		cancel(errImpatient)
	})
	_, err := (&Library{d: s, path: l.path}).NewAgent(ctx, "decode", Config{})
	require.ErrorIs(t, err, errImpatient)
	require.Zero(t, s.count("destroy agent"))
	close(hang)
	for s.count("destroy agent") == 0 {
		require.Less(t, clk.Now(), patience)
		require.NoError(t, clk.Sleep(context.Background(), time.Millisecond))
	}
	alive, stop := context.WithCancel(context.Background())
	defer stop()
	a, err := l.NewAgent(alive, "decode", Config{})
	require.NoError(t, err)
	require.NoError(t, a.Close())
}

var errImpatient = errors.New("impatient")
