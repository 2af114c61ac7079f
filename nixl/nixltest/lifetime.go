package nixltest

import (
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

func testRegistrationCounted(r *rig) {
	r.connect()
	again := r.register(r.A, r.BufferA)
	twice, err := r.A.Register(r.Memory, append(r.BufferA.all(), r.BufferA.all()...))
	require.NoError(r, err)
	require.NoError(r, r.regA.Close())
	require.NoError(r, r.regA.Close()) // counts once
	r.run(r.spec(nixl.Read, 0, 64))
	require.NoError(r, twice.Close())
	r.run(r.spec(nixl.Read, 64, 64))
	require.NoError(r, again.Close())
	_, err = r.A.NewTransfer(r.spec(nixl.Read, 128, 64))
	r.refused(err, nixl.ErrNotRegistered)
	r.onlyCopied(0, 128)
}

func testTransferClose(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, Size))
	require.NoError(r, t.Post())
	r.unproven(t.Close(), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, Size)
	require.NoError(r, t.Close())
	require.NoError(r, t.Close())
	r.refused(t.Post(), nixl.ErrClosed)
	s, err := t.Status()
	require.Equal(r, nixl.Failed, s)
	require.ErrorIs(r, err, nixl.ErrClosed)
	// One that was never posted.
	t = r.transfer(r.spec(nixl.Read, 0, 64))
	require.NoError(r, t.Close())
	r.refused(t.Post(), nixl.ErrClosed)
	require.NoError(r, r.A.Close())
}

func testRegistrationBusy(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, Size))
	require.NoError(r, t.Post())
	require.ErrorIs(r, r.regA.Close(), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, Size)
	require.NoError(r, r.regA.Close())
	require.NoError(r, r.regA.Close())
}

func testRegistrationGone(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, 64))
	require.NoError(r, r.regA.Close())
	r.refused(t.Post(), nixl.ErrNotRegistered)
	require.NoError(r, t.Close())
	require.True(r, zero(r.BufferA.Data))
}

func testRemovePeer(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, Size))
	require.NoError(r, t.Post())
	require.ErrorIs(r, r.A.RemovePeer(r.peer), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, Size)
	require.NoError(r, r.A.RemovePeer(r.peer))
	r.refused(r.A.RemovePeer(r.peer), nixl.ErrNoPeer)
	r.refused(t.Post(), nixl.ErrNoPeer)
	// Known anew under the next generation, which old handles are not of.
	old := r.peer
	r.peer = r.add(r.A, r.B)
	require.Greater(r, r.peer.Generation, old.Generation)
	r.refused(t.Post(), nixl.ErrStalePeer)
	r.refused(r.A.RemovePeer(old), nixl.ErrStalePeer)
	r.refused(r.A.Notify(old, nil), nixl.ErrStalePeer)
	r.run(r.spec(nixl.Read, 0, 64))
}

func testAgentClose(r *rig) {
	r.connect()
	idle := r.transfer(r.spec(nixl.Read, 0, 64))
	t := r.transfer(r.spec(nixl.Read, 0, Size))
	require.NoError(r, t.Post())
	require.ErrorIs(r, r.A.Close(), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, Size)
	require.NoError(r, r.A.Close())
	require.NoError(r, r.A.Close())
	r.refused(idle.Post(), nixl.ErrClosed)
	require.NoError(r, idle.Close())
	require.NoError(r, t.Close())
	require.NoError(r, r.regA.Close())
	_, err := r.A.Metadata()
	require.ErrorIs(r, err, nixl.ErrClosed)
	_, err = r.A.Register(r.Memory, r.BufferA.all())
	require.ErrorIs(r, err, nixl.ErrClosed)
	_, err = r.A.NewTransfer(r.spec(nixl.Read, 0, 64))
	r.refused(err, nixl.ErrClosed)
	_, err = r.A.Notifications(nil)
	require.ErrorIs(r, err, nixl.ErrClosed)
	require.ErrorIs(r, r.A.Notify(r.peer, nil), nixl.ErrClosed)
	require.ErrorIs(r, r.A.RemovePeer(r.peer), nixl.ErrClosed)
}

// untouched is where the last bytes begin that the transfers of cut leave
// alone: all others may still change after these have failed.
const untouched = Size - 4096

// cut posts two transfers and cuts the connection under them. The second
// lies behind the first in the buffers.
func (r *rig) cut() (one, two nixl.Transfer) {
	r.Helper()
	if r.Disconnect == nil {
		r.Skip("this fabric can not be made to disconnect")
	}
	r.connect()
	s := r.spec(nixl.Read, 0, untouched/2)
	s.Notification = []byte("never")
	one, two = r.transfer(s), r.transfer(r.spec(nixl.Read, untouched/2, untouched/2))
	require.NoError(r, one.Post())
	require.NoError(r, two.Post())
	r.Disconnect()
	return one, two
}

func testDisconnect(r *rig) {
	one, two := r.cut()
	// Neither proves that the memory is left alone.
	r.unproven(r.wait(one), nixl.ErrDisconnected)
	r.unproven(r.wait(two), nixl.ErrDisconnected)
	s, err := one.Status()
	require.Equal(r, nixl.Failed, s)
	r.unproven(err, nixl.ErrDisconnected)
	// Not even a refusal does, after that.
	r.unproven(two.Post(), nixl.ErrNoPeer)
	require.NoError(r, one.Close())
	require.NoError(r, two.Close())
	require.ErrorIs(r, r.regA.Close(), nixl.ErrPoisoned)
	r.silence(r.B)
	// The end of the transport is the proof.
	require.NoError(r, r.A.Close())
	require.NoError(r, r.regA.Close())
	fill(r.BufferA.Data, 99)
	before := append([]byte(nil), r.BufferA.Data...)
	r.silence(r.B)
	require.Equal(r, before, r.BufferA.Data)
}

func testReconnect(r *rig) {
	one, two := r.cut()
	r.unproven(r.wait(one), nixl.ErrDisconnected)
	blob, err := r.B.Metadata()
	require.NoError(r, err)
	_, err = r.A.AddPeer(blob)
	require.ErrorIs(r, err, nixl.ErrBusy, "the other transfer is still to be polled")
	r.unproven(r.wait(two), nixl.ErrDisconnected)
	old := r.peer
	r.peer = r.add(r.A, r.B)
	require.Greater(r, r.peer.Generation, old.Generation)
	r.unproven(one.Post(), nixl.ErrStalePeer)
	fresh := r.transfer(r.spec(nixl.Read, untouched, 64))
	require.NoError(r, fresh.Post())
	require.NoError(r, r.wait(fresh))
	require.Equal(r, r.BufferB.Data[untouched:untouched+64], r.BufferA.Data[untouched:untouched+64])
}

func testRestart(r *rig) {
	if r.RestartB == nil {
		r.Skip("this fabric can not restart an agent")
	}
	r.connect()
	flying, idle := r.transfer(r.spec(nixl.Read, 0, Size)), r.transfer(r.spec(nixl.Read, 0, 64))
	require.NoError(r, flying.Post())
	next := r.RestartB()
	r.unproven(r.wait(flying), nixl.ErrDisconnected)
	r.refused(idle.Post(), nixl.ErrNoPeer)
	_, err := r.B.Metadata()
	require.ErrorIs(r, err, nixl.ErrClosed)
	r.register(next, r.BufferB)
	old := r.peer
	r.peer = r.add(r.A, next)
	require.Equal(r, old.Name, r.peer.Name)
	require.Greater(r, r.peer.Generation, old.Generation)
	r.refused(idle.Post(), nixl.ErrStalePeer)
	s := r.spec(nixl.Read, 0, 64)
	s.Notification = []byte("to the new life")
	r.run(s)
	require.Equal(r, "to the new life", string(r.message(next).Message))
}

func testStaleMetadata(r *rig) {
	if r.RestartB == nil {
		r.Skip("this fabric can not restart an agent")
	}
	r.connect()
	old, err := r.B.Metadata()
	require.NoError(r, err)
	next := r.RestartB()
	r.register(next, r.BufferB)
	r.peer = r.add(r.A, next)
	_, err = r.A.AddPeer(old)
	require.Error(r, err)
	require.True(r, nixl.Quiet(err))
	r.run(r.spec(nixl.Read, 0, 64))
}
