package softnic_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/nixltest"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// pulls makes n reads of one page each, behind each other in the buffers.
func pulls(t *testing.T, p nixltest.Pair, n uint64) ([]nixl.Transfer, nixl.Registration) {
	whole := func(b nixltest.Buffer) []nixl.Descriptor {
		return []nixl.Descriptor{{Addr: b.Addr, Len: uint64(len(b.Data))}}
	}
	reg, err := p.A.Register(nixl.DRAM, whole(p.BufferA))
	require.NoError(t, err)
	_, err = p.B.Register(nixl.DRAM, whole(p.BufferB))
	require.NoError(t, err)
	blob, err := p.B.Metadata()
	require.NoError(t, err)
	peer, err := p.A.AddPeer(blob)
	require.NoError(t, err)
	var all []nixl.Transfer
	for i := range n {
		x, err := p.A.NewTransfer(nixl.Spec{
			Peer:   peer,
			Local:  []nixl.Descriptor{{Addr: p.BufferA.Addr + i*64, Len: 64}},
			Remote: []nixl.Descriptor{{Addr: p.BufferB.Addr + i*64, Len: 64}},
		})
		require.NoError(t, err)
		all = append(all, x)
	}
	return all, reg
}

func TestPollerTakesThousandsToTheirEnd(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{Seed: 7})
	p := openPair(t, w, softnic.Options{Reorder: true})
	const n = 2000
	all, reg := pulls(t, p, n)
	poller := nixl.NewPoller(p.A, w)
	ended := 0 // on the poller's goroutine; read when there is none
	for i, x := range all {
		require.NoError(t, x.Post())
		if i%2 == 0 {
			poller.Watch(x, func(err error) {
				if err == nil {
					ended++
				}
			})
		} else {
			poller.Retire(x, nil, func(err error) {
				if err == nil {
					ended++
				}
			})
		}
	}
	require.NoError(t, poller.Wait(context.Background()))
	require.Equal(t, n, ended)
	require.Zero(t, poller.Len())
	require.ErrorIs(t, all[1].Post(), nixl.ErrClosed)
	require.NoError(t, all[0].Post(), "a watched one is the caller's again")
	poller.Retire(all[0], []nixl.Registration{reg}, nil)
	require.NoError(t, poller.Wait(context.Background()))
	_, err := p.A.NewTransfer(*all[0].Spec())
	require.ErrorIs(t, err, nixl.ErrNotRegistered, "retired with its registration")
}

func TestPollerTellsFailures(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	p, f := openFaulty(t, w, softnic.Options{})
	all, reg := pulls(t, p, 2)
	poller := nixl.NewPoller(p.A, w)
	require.NoError(t, all[0].Post())
	require.NoError(t, f.Disconnect("prefill"))
	var got, idle error
	poller.Retire(all[0], []nixl.Registration{reg}, func(err error) { got = err })
	poller.Watch(all[1], func(err error) { idle = err })
	require.NoError(t, poller.Wait(context.Background()))
	require.ErrorIs(t, got, nixl.ErrDisconnected)
	require.ErrorIs(t, idle, nixl.ErrNotPosted)
	require.ErrorIs(t, reg.Close(), nixl.ErrPoisoned, "the memory stays registered")
	require.NoError(t, p.A.Close())
}
