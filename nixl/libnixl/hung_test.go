//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

func paint(b []byte, color byte) {
	for i := range b {
		b[i] = color
	}
}

// A peer that stands still in mid transfer, connection and all, holds nothing
// up for ever: Recover ends what is in flight with it. When the peer goes on,
// not a byte of the memory changes that was given back, nor is one read.
func TestHungPeer(t *testing.T) {
	library(t)
	const size = 32 << 20
	const local, remote, after = 0x11, 0x22, 0xee
	for _, transport := range []string{"tcp,self", "all"} {
		for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
			if transport == "all" && op == nixl.Write {
				continue // a write to shared memory needs nothing of its peer
			}
			t.Run(op.String()+" over "+transport, func(t *testing.T) {
				t.Setenv("UCX_TLS", transport)
				c := newCouple(t, size)
				paint(c.bufA.Data, local)
				paint(c.bufB.Data, remote)
				x, err := c.a.NewTransfer(nixl.Spec{Op: op, Peer: c.peer, Local: all(c.bufA), Remote: all(c.bufB), Notification: []byte("never")})
				require.NoError(t, err)
				c.b.halt()
				require.NoError(t, x.Post())
				// Kernel buffers, and memory that is shared, fill meanwhile.
				require.NoError(t, clock.Wall().Sleep(context.Background(), 10*time.Millisecond))
				st, err := x.Status()
				require.NoError(t, err)
				if transport == "all" && st == nixl.Done {
					t.Skip("UCX reads shared memory without its peer on this machine: nothing hangs")
				}
				require.Equal(t, nixl.InProgress, st)
				require.ErrorIs(t, c.a.Close(), nixl.ErrBusy)

				// Whoever polls goes on polling all the while.
				ended := make(chan error, 1)
				clock.Wall().Go("poll", func() { ended <- nixl.Wait(context.Background(), clock.Wall(), c.a, x, clock.Never) })
				if op == nixl.Write {
					x.Cancel()
				}
				clk := clock.Wall()
				require.NoError(t, c.a.Recover(c.peer))
				t.Log("recovered in", clk.Now())
				err = <-ended
				require.NoError(t, x.Close())
				require.NoError(t, c.regA.Close())
				want := nixl.ErrDisconnected
				if op == nixl.Write {
					want = nixl.ErrCanceled
				}
				require.ErrorIs(t, err, want)
				require.True(t, nixl.Quiet(err))
				require.Empty(t, c.a.Poisoned())
				require.Zero(t, inFlight(c.a))
				_, err = c.a.NewTransfer(*x.Spec())
				quiet(t, err, nixl.ErrNoPeer)

				paint(c.bufA.Data, after)
				c.b.goOn()
				require.NoError(t, clock.Wall().Sleep(context.Background(), 200*time.Millisecond))
				require.Equal(t, size, bytes.Count(c.bufA.Data, []byte{after}), "bytes landed in memory that was given back")
				require.Zero(t, bytes.Count(c.bufB.Data, []byte{after}), "memory that was given back was read")

				// The way back. UCX has aborted the peer where it was answering.
				if _, err := c.b.Metadata(); err != nil {
					require.Equal(t, "tcp,self", transport)
					require.Equal(t, nixl.Read, op)
					c.b.kill()
					c.b.again()
				}
				c.regA, err = c.a.Register(nixl.DRAM, all(c.bufA))
				require.NoError(t, err)
				c.meet(t)
				paint(c.bufB.Data, remote)
				y, err := c.a.NewTransfer(nixl.Spec{Peer: c.peer, Local: all(c.bufA), Remote: all(c.bufB)})
				require.NoError(t, err)
				require.NoError(t, y.Post())
				require.NoError(t, wait(t, c.a, y))
				require.True(t, bytes.Equal(c.bufA.Data, c.bufB.Data))
				require.NoError(t, c.regA.Close())
			})
		}
	}
}

// Two peers hang. Each would hold up the recovery from the other, were it not
// that what is canceled holds up nothing. One that is well and in flight does.
func TestTwoHungPeers(t *testing.T) {
	t.Setenv("UCX_TLS", "tcp,self")
	const size = 32 << 20
	c := newCouple(t, size)
	file, _ := memory(t, size)
	other := newPeer(t, "another", file)
	_, err := other.Register(nixl.DRAM, all(c.bufB))
	require.NoError(t, err)
	peers := []nixl.Peer{c.peer, introduce(t, c.a, other)}
	var hung []nixl.Transfer
	for i, p := range []*peer{c.b, other} {
		p.halt()
		for k := range uint64(2) {
			x, err := c.a.NewTransfer(nixl.Spec{
				Peer: peers[i], Local: []nixl.Descriptor{region(c.bufA, uint64(i)*size/2+k*size/4, size/4)},
				Remote: []nixl.Descriptor{region(c.bufB, 0, size/4)},
			})
			require.NoError(t, err)
			require.NoError(t, x.Post())
			hung = append(hung, x)
		}
	}
	for _, p := range peers {
		err := c.a.Recover(p)
		require.ErrorIs(t, err, nixl.ErrBusy)
		require.ErrorContains(t, err, "2 transfers")
	}
	hung[2].Cancel()
	require.ErrorIs(t, c.a.Recover(peers[0]), nixl.ErrBusy)
	hung[3].Cancel()
	require.NoError(t, c.a.Recover(peers[0]))
	for i, x := range hung {
		st, err := x.Status()
		require.Equal(t, nixl.Failed, st)
		require.True(t, nixl.Quiet(err))
		if i < 2 {
			require.ErrorIs(t, err, nixl.ErrDisconnected)
		} else {
			require.ErrorIs(t, err, nixl.ErrCanceled)
		}
		require.NoError(t, x.Close())
	}
	require.NoError(t, c.regA.Close())
	require.NoError(t, c.a.Close())
}
