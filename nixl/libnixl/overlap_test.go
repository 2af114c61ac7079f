//go:build linux

package libnixl

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// The library has the outer region only, until both are closed, in any order of
// the two; and again after it was made anew.
func TestContainedRegionStaysWithTheOuterOne(t *testing.T) {
	const n = 1 << 20
	for _, outerFirst := range []bool{true, false} {
		p := newPair(t, n, Config{})
		first, err := p.a.Register(nixl.DRAM, []nixl.Descriptor{region(p.bufA, 0, n/2)})
		require.NoError(t, err)
		second, err := p.a.Register(nixl.DRAM, []nixl.Descriptor{region(p.bufA, 0, n/2)})
		require.NoError(t, err)
		require.Equal(t, 1, p.s.count("register"))

		flying := p.transfer(t, p.spec(nixl.Read, 0, n/2))
		require.NoError(t, flying.Post())
		require.ErrorIs(t, p.regA.Close(), nixl.ErrBusy)
		require.NoError(t, wait(t, p.a, flying))
		require.NoError(t, flying.Close())
		require.NoError(t, first.Close())

		order := []nixl.Registration{p.regA, second}
		if !outerFirst {
			order[0], order[1] = order[1], order[0]
		}
		idle := p.transfer(t, p.spec(nixl.Read, 0, 64))
		require.NoError(t, order[0].Close())
		require.Zero(t, p.s.count("deregister"))
		if outerFirst {
			quiet(t, idle.Post(), nixl.ErrNotRegistered)
		} else {
			require.NoError(t, idle.Post())
			require.NoError(t, wait(t, p.a, idle))
		}
		require.NoError(t, p.a.Recover(p.peer))
		require.Equal(t, 2, p.s.count("register"), "the outer one, once more")
		p.meet(t)
		x := p.transfer(t, p.spec(nixl.Read, n/4, 4096))
		require.NoError(t, x.Post())
		require.NoError(t, wait(t, p.a, x))
		require.True(t, bytes.Equal(p.bufA.Data[n/4:n/4+4096], p.bufB.Data[n/4:n/4+4096]))
		require.NoError(t, order[1].Close())
		require.Equal(t, 1, p.s.count("deregister"))
	}
}

func TestOverlapNeverReachesTheLibrary(t *testing.T) {
	a, s := spied(t, "decode", Config{})
	buf := pages(t, 1<<16)
	r, err := a.Register(nixl.DRAM, []nixl.Descriptor{region(buf, 8192, 8192)})
	require.NoError(t, err)
	_, err = a.Register(nixl.DRAM, []nixl.Descriptor{region(buf, 0, 4096), region(buf, 4096, 8192)})
	quiet(t, err, nixl.ErrOverlap)
	require.Equal(t, 1, s.count("register"))
	require.NoError(t, r.Close())
	_, err = a.Register(nixl.DRAM, []nixl.Descriptor{region(buf, 0, 4096), region(buf, 4096, 8192)})
	require.NoError(t, err)
}

// What a partial blob says of a region inside another one is the outer one, once.
func TestPartialMetadataOfContainedRegions(t *testing.T) {
	a, b := agent(t, "decode", Config{}), agent(t, "prefill", Config{})
	buf, own := pages(t, 1<<16), pages(t, 1<<16)
	p := introduce(t, a, b)
	inner := []nixl.Descriptor{region(buf, 0, 4096), region(buf, 8192, 4096)}
	_, err := b.Register(nixl.DRAM, append(inner, all(buf)...))
	require.NoError(t, err)
	blob, err := b.PartialMetadata(nixl.DRAM, inner)
	require.NoError(t, err)
	m, err := ParseMetadata(blob)
	require.NoError(t, err)
	require.Len(t, m.Regions, 1)
	require.Equal(t, all(buf)[0], m.Regions[0].Descriptor)
	_, err = a.AddPeer(blob)
	require.NoError(t, err)
	_, err = a.Register(nixl.DRAM, all(own))
	require.NoError(t, err)
	x, err := a.NewTransfer(nixl.Spec{Op: nixl.Write, Peer: p, Local: []nixl.Descriptor{region(own, 0, 64)}, Remote: []nixl.Descriptor{region(buf, 8192, 64)}})
	require.NoError(t, err)
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, a, x))
}
