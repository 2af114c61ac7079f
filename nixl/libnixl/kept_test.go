//go:build linux

package libnixl

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// A registration that failed leaves nothing that a later one could be counted on.
func TestAFailedRegistrationIsUndone(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	nowhere := nixl.Descriptor{Addr: 0, Len: 4096}
	for range 2 {
		unregistrable(t, p.a)
		s := p.spec(nixl.Read, 0, 64)
		s.Local[0] = nixl.Descriptor{Addr: 0, Len: 64}
		_, err := p.a.NewTransfer(s)
		quiet(t, err, nixl.ErrNotRegistered)
	}
	// Nor what was new beside it.
	more := pages(t, 4096)
	_, err := p.a.Register(nixl.DRAM, append(all(more), nowhere))
	quiet(t, err, nixl.ErrBackend)
	p.a.mu.Lock()
	require.Equal(t, 1, p.a.registry.Len())
	p.a.mu.Unlock()
	before := p.s.count("register")
	_, err = p.a.Register(nixl.DRAM, all(more))
	require.NoError(t, err)
	require.Equal(t, 1, p.s.count("register")-before)
}

// A list points at its memory: it is dead when that goes, also once the same
// bytes are registered again.
func TestListsGoBeforeTheirMemory(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	local, err := p.a.PrepareLocal(nixl.DRAM, all(p.bufA))
	require.NoError(t, err)
	remote, err := p.a.PrepareRemote(p.peer, nixl.DRAM, all(p.bufB))
	require.NoError(t, err)
	require.NoError(t, p.regA.Close())
	p.regA, err = p.a.Register(nixl.DRAM, all(p.bufA))
	require.NoError(t, err)
	_, err = p.a.NewIndexed(nixl.Read, local, []int32{0}, remote, []int32{0}, nil)
	quiet(t, err, nixl.ErrClosed)
	require.NoError(t, local.Close())
	local, err = p.a.PrepareLocal(nixl.DRAM, all(p.bufA))
	require.NoError(t, err)
	x, err := p.a.NewIndexed(nixl.Read, local, []int32{0}, remote, []int32{0}, nil)
	require.NoError(t, err, "the remote one lives")
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x))
}

// The agent is not made anew under a request that is just being made.
func TestRecoverWaitsForRequestsThatAreMade(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	recovered := make(chan error, 1)
	var meanwhile int
	p.s.onCreate = func() {
		go func() { recovered <- p.a.Recover(p.peer) }()
		_ = clock.Wall().Sleep(context.Background(), 100*time.Millisecond)
		meanwhile = p.s.count("destroy agent")
	}
	x, err := p.a.NewTransfer(p.spec(nixl.Read, 0, 64))
	require.NoError(t, err)
	require.Zero(t, meanwhile)
	require.NoError(t, <-recovered)
	p.s.onCreate = nil
	require.Error(t, x.Post(), "of an earlier generation")
	p.meet(t)
	p.moves(t)
}
