package softnic_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

func TestDisconnectInMidTransfer(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{Seed: 3}), slowLink())
	x.f.Inject(func(i softnic.TransferInfo) softnic.Fault {
		if i.ID == 2 {
			return softnic.Fault{Kind: softnic.Disconnect, At: 0.5}
		}
		return softnic.Fault{}
	})
	s := x.spec(nixl.Read, size/2, 8, size/16)
	bystander, tr := x.transfer(s), x.half()
	require.NoError(t, bystander.Post())
	require.NoError(t, tr.Post())
	x.unquiet(x.wait(tr), nixl.ErrDisconnected)
	at := present(x.dm.Bytes()[size/2:])
	// The bystander is reported without a look at it, and lands on.
	x.unquiet(x.wait(bystander), nixl.ErrDisconnected)
	require.NoError(t, bystander.Close())
	require.Empty(t, x.messages())
	late := present(x.dm.Bytes()[size/2:])
	require.Greater(t, late, at, "bytes landed after the status error and the close")
	// Both directions are cut; each side hears of it by its own first call.
	x.unquiet(x.p.Notify(x.back, nil), nixl.ErrDisconnected)
	require.ErrorIs(t, x.p.Notify(x.back, nil), nixl.ErrNoPeer)
}

// The first cause is the one that is told.
func TestFirstCauseStays(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr := x.transfer(x.spec(nixl.Write, 0, 1, size))
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	require.NoError(t, x.f.Disconnect("p"))
	require.NoError(t, x.pr.Close())
	x.sleep(time.Millisecond)
	x.unquiet(x.wait(tr), nixl.ErrDisconnected)

	x = newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr = x.transfer(x.spec(nixl.Write, 0, 1, size))
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	require.NoError(t, x.pr.Close())
	x.sleep(time.Millisecond)
	require.NoError(t, x.f.Disconnect("p"))
	x.unquiet(x.wait(tr), nixl.ErrBackend)
}

// A peer can not be added anew over the head of transfers that have still to
// hear of the disconnect.
func TestAddPeerBeforeTheNewsIsHeard(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr := x.half()
	require.NoError(t, tr.Post())
	require.NoError(t, x.f.Disconnect("p"))
	blob, err := x.p.Metadata()
	require.NoError(t, err)
	_, err = x.d.AddPeer(blob)
	require.ErrorIs(t, err, nixl.ErrBusy)
	x.unquiet(x.wait(tr), nixl.ErrDisconnected)
	p, err := x.d.AddPeer(blob)
	require.NoError(t, err)
	require.Equal(t, x.peer.Generation+1, p.Generation)
}

func TestMessageToAnEndedLife(t *testing.T) {
	arrived := 0
	o := slowLink()
	o.Listener.Notified = func(softnic.NotifiedInfo) { arrived++ }
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
	require.NoError(t, x.d.Notify(x.peer, nil))
	x.sleep(time.Millisecond)
	require.Equal(t, 1, arrived)
	require.NoError(t, x.d.Notify(x.peer, nil))
	next, err := x.f.Restart("p")
	require.NoError(t, err)
	x.sleep(time.Millisecond)
	require.Equal(t, 1, arrived)
	got, err := next.Notifications(nil)
	require.NoError(t, err)
	require.Empty(t, got)
}

// A transfer whose bytes all landed before the disconnect is done, unless
// another one's news comes before its poll.
func TestDoneBeforeTheDisconnect(t *testing.T) {
	for _, first := range []bool{true, false} {
		x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
		quick, long := x.transfer(x.spec(nixl.Read, 0, 1, 64)), x.transfer(x.spec(nixl.Read, 0, 1, size))
		require.NoError(t, quick.Post())
		require.NoError(t, long.Post())
		x.sleep(time.Millisecond)
		require.NoError(t, x.f.Disconnect("p"))
		if first {
			require.NoError(t, x.wait(quick))
			x.unquiet(x.wait(long), nixl.ErrDisconnected)
		} else {
			x.unquiet(x.wait(long), nixl.ErrDisconnected)
			x.unquiet(x.wait(quick), nixl.ErrDisconnected)
		}
	}
}

func TestPostOnABrokenConnection(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	require.NoError(t, x.f.Disconnect("d"))
	tr, other := x.half(), x.half()
	x.unquiet(tr.Post(), nixl.ErrDisconnected)
	s, err := tr.Status()
	require.Equal(t, nixl.Failed, s)
	x.unquiet(err, nixl.ErrDisconnected)
	// Another request knows that it was never handed over.
	err = other.Post()
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	require.True(t, nixl.Quiet(err))
	require.NoError(t, tr.Close())
	require.NoError(t, x.d.Close())
	require.ErrorIs(t, x.f.Disconnect("d"), nixl.ErrNoPeer)
}

// A peer that takes its memory back breaks what is under way to it.
func TestRemoteDeregisters(t *testing.T) {
	for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
		x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
		tr := x.transfer(x.spec(op, 0, 1, size))
		require.NoError(t, tr.Post())
		x.sleep(2 * time.Millisecond)
		require.NoError(t, x.pr.Close())
		before := bytes.Clone(x.pm.Bytes())
		err := x.wait(tr)
		x.unquiet(err, nixl.ErrBackend)
		require.ErrorContains(t, err, "agent p no longer has DRAM")
		require.Equal(t, before, x.pm.Bytes())
	}
}

func TestPeerAgentCloses(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr := x.transfer(x.spec(nixl.Write, 0, 1, size))
	require.NoError(t, tr.Post())
	x.sleep(2 * time.Millisecond)
	require.NoError(t, x.p.Close())
	before := bytes.Clone(x.pm.Bytes())
	x.unquiet(x.wait(tr), nixl.ErrDisconnected)
	x.sleep(50 * time.Millisecond)
	require.Equal(t, before, x.pm.Bytes(), "never a changed byte after the close")
	_, err := x.f.NewAgent("p", x.pm)
	require.NoError(t, err, "the name is free again")
}

func TestRestartOfTheInitiator(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{Seed: 5}), slowLink())
	tr := x.transfer(x.spec(nixl.Write, 0, 1, size))
	clear(x.pm.Bytes())
	for i := range x.dm.Bytes() {
		x.dm.Bytes()[i] = 1
	}
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	before := present(x.pm.Bytes())
	next, err := x.f.Restart("d")
	require.NoError(t, err)
	// The dead one's writes go on for a while: the late writer.
	x.sleep(softnic.DefaultLinger + time.Millisecond)
	after := present(x.pm.Bytes())
	require.Greater(t, after, before)
	require.Less(t, after, size)
	x.sleep(50 * time.Millisecond)
	require.Equal(t, after, present(x.pm.Bytes()), "but not for ever")
	s, err := tr.Status()
	require.Equal(t, nixl.Failed, s)
	x.unquiet(err, nixl.ErrClosed)
	require.NoError(t, tr.Close())
	require.NoError(t, x.d.Close())
	// The next life starts with nothing registered and no peers.
	x.d = next
	_, err = next.NewTransfer(x.spec(nixl.Write, 0, 1, size))
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, x.p.Notify(x.back, nil), nixl.ErrDisconnected)
	x.dr = x.register(next, x.dm)
	x.connect()
	require.Equal(t, uint32(2), x.back.Generation)
	tr = x.transfer(x.spec(nixl.Write, 0, 1, size))
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.Equal(t, size, present(x.pm.Bytes()))
	_, err = x.f.Restart("nobody")
	require.ErrorIs(t, err, nixl.ErrNoPeer)
}
