package softnic_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// pair is two connected agents: d posts, p is its peer.
type pair struct {
	t      testing.TB
	w      *vtime.World
	f      *softnic.Fabric
	d, p   nixl.Agent
	dm, pm *softnic.HostMemory
	dr, pr nixl.Registration
	peer   nixl.Peer // p as d knows it
	back   nixl.Peer // d as p knows it
	dmBase uint64    // of d's memory
}

const size = 1 << 20

func newPair(t testing.TB, w *vtime.World, o softnic.Options) *pair {
	t.Helper()
	f := softnic.New(w, o)
	t.Cleanup(func() {
		require.NoError(t, f.Close())
		require.NoError(t, w.Close())
	})
	x := &pair{t: t, w: w, f: f, dm: softnic.NewHostMemory(size), pm: softnic.NewHostMemory(size)}
	x.dmBase = x.dm.Addr()
	x.d, x.dr = x.agent("d", x.dm)
	x.p, x.pr = x.agent("p", x.pm)
	x.connect()
	for i := range x.pm.Bytes() {
		x.pm.Bytes()[i] = byte(i>>8) ^ byte(i) | 1
	}
	return x
}

func (x *pair) agent(name string, m *softnic.HostMemory) (nixl.Agent, nixl.Registration) {
	x.t.Helper()
	a, err := x.f.NewAgent(name, m)
	require.NoError(x.t, err)
	return a, x.register(a, m)
}

func (x *pair) register(a nixl.Agent, m *softnic.HostMemory) nixl.Registration {
	x.t.Helper()
	r, err := a.Register(nixl.DRAM, []nixl.Descriptor{{Addr: m.Addr(), Len: m.Len()}})
	require.NoError(x.t, err)
	return r
}

func (x *pair) connect() {
	x.t.Helper()
	x.peer, x.back = x.add(x.d, x.p), x.add(x.p, x.d)
}

func (x *pair) add(a, b nixl.Agent) nixl.Peer {
	x.t.Helper()
	blob, err := b.Metadata()
	require.NoError(x.t, err)
	p, err := a.AddPeer(blob)
	require.NoError(x.t, err)
	return p
}

// spec is n entries of len bytes each, back to back on both sides from off.
func (x *pair) spec(op nixl.Op, off uint64, n int, len uint64) nixl.Spec {
	s := nixl.Spec{Op: op, Peer: x.peer}
	for i := range n {
		at := off + uint64(i)*len
		s.Local = append(s.Local, nixl.Descriptor{Addr: x.dmBase + at, Len: len})
		s.Remote = append(s.Remote, nixl.Descriptor{Addr: x.pm.Addr() + at, Len: len})
	}
	return s
}

func (x *pair) transfer(s nixl.Spec) nixl.Transfer {
	x.t.Helper()
	tr, err := x.d.NewTransfer(s)
	require.NoError(x.t, err)
	return tr
}

func (x *pair) wait(tr nixl.Transfer) error {
	return nixl.Wait(context.Background(), x.w, x.d, tr, clock.Never)
}

// pacers runs fn on virtual and on real time.
func pacers(t *testing.T, fn func(t *testing.T, w *vtime.World)) {
	t.Run("virtual", func(t *testing.T) { fn(t, vtime.NewVirtual(vtime.Options{})) })
	t.Run("real", func(t *testing.T) { fn(t, vtime.NewReal(vtime.Options{}, 1)) })
}

func TestReadMovesBytes(t *testing.T) {
	pacers(t, func(t *testing.T, w *vtime.World) {
		x := newPair(t, w, softnic.Options{})
		s := x.spec(nixl.Read, 4096, 16, 8192)
		s.Notification = []byte("pulled")
		tr := x.transfer(s)
		st, err := tr.Status()
		require.NoError(t, err)
		require.Equal(t, nixl.Idle, st)
		require.NoError(t, tr.Post())
		require.NoError(t, x.wait(tr))
		from, to := uint64(4096), uint64(4096+16*8192)
		require.True(t, bytes.Equal(x.dm.Bytes()[from:to], x.pm.Bytes()[from:to]))
		require.Zero(t, x.dm.Bytes()[from-1])
		require.Zero(t, x.dm.Bytes()[to])
		in := nixl.NewInbox(x.p, w, 1)
		n, err := in.Wait(context.Background(), func(nixl.Notification) bool { return true }, w.Now()+time.Second)
		require.NoError(t, err)
		require.Equal(t, nixl.Notification{From: "d", Message: []byte("pulled")}, n)
		require.NoError(t, tr.Close())
		require.NoError(t, tr.Close())
	})
}
