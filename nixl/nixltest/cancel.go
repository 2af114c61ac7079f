package nixltest

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

func testCancelIdle(r *rig) {
	r.connect()
	s := r.spec(nixl.Read, 0, 4096)
	s.Notification = []byte("never")
	t := r.transfer(s)
	t.Cancel()
	t.Cancel()
	status, err := t.Status()
	require.Equal(r, nixl.Failed, status)
	r.refused(err, nixl.ErrCanceled)
	r.refused(t.Post(), nixl.ErrCanceled)
	r.refused(r.wait(t), nixl.ErrCanceled)
	require.NoError(r, r.regA.Close()) // nothing holds it
	r.silence(r.B)
	require.True(r, zero(r.BufferA.Data))
	require.NoError(r, t.Close())
	t.Cancel()
	r.refused(t.Post(), nixl.ErrClosed)
}

// A canceled transfer holds all that it uses until its end is told; after that
// nothing of it moves, in either direction.
func testCancelInFlight(r *rig) {
	r.connect()
	for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
		s := r.spec(op, 0, Size)
		s.Notification = []byte("never")
		t := r.transfer(s)
		require.NoError(r, t.Post())
		t.Cancel()
		t.Cancel()
		r.unproven(t.Close(), nixl.ErrBusy)
		r.unproven(t.Post(), nixl.ErrBusy)
		require.ErrorIs(r, r.regA.Close(), nixl.ErrBusy)
		require.ErrorIs(r, r.A.RemovePeer(r.peer), nixl.ErrBusy)
		require.ErrorIs(r, r.A.Close(), nixl.ErrBusy)
		r.canceled(r.wait(t))
		status, err := t.Status()
		require.Equal(r, nixl.Failed, status)
		r.canceled(err)

		fill(r.BufferA.Data, 99)
		fill(r.BufferB.Data, 98)
		before := [2][]byte{bytes.Clone(r.BufferA.Data), bytes.Clone(r.BufferB.Data)}
		r.silence(r.B)
		require.True(r, bytes.Equal(before[0], r.BufferA.Data) && bytes.Equal(before[1], r.BufferB.Data), "bytes moved after the end of a canceled %s", op)
		r.refused(t.Post(), nixl.ErrCanceled)
		require.NoError(r, t.Close())
		require.NoError(r, r.regA.Close())
		r.regA = r.register(r.A, r.BufferA)
	}
	clear(r.BufferA.Data)
	r.run(r.spec(nixl.Read, 64, 64)) // the peer is as it was
	r.onlyCopied(64, 64)
	require.NoError(r, r.A.RemovePeer(r.peer))
}

func testCancelAfterTheEnd(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, 4096))
	require.NoError(r, t.Post())
	require.NoError(r, r.wait(t))
	t.Cancel()
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, 4096)
	r.refused(t.Post(), nixl.ErrCanceled)
	status, err := t.Status()
	require.Equal(r, nixl.Done, status)
	require.NoError(r, err)
	require.NoError(r, t.Close())
	require.NoError(r, r.regA.Close())
}

// The others of the same peer and the same memory know nothing of it.
func testCancelAmongOthers(r *rig) {
	r.connect()
	const n, each = 8, Size / 8
	var all []nixl.Transfer
	for i := range uint64(n) {
		t := r.transfer(r.spec(nixl.Read, i*each, each))
		require.NoError(r, t.Post())
		all = append(all, t)
	}
	all[3].Cancel()
	for i, t := range all {
		err := r.wait(t)
		if i == 3 {
			r.canceled(err)
			continue
		}
		require.NoError(r, err)
		off := i * each
		require.True(r, bytes.Equal(r.BufferB.Data[off:off+each], r.BufferA.Data[off:off+each]), "bytes differ")
	}
	require.NoError(r, r.regA.Close())
}

// Somebody polls the transfer while another cancels it.
func testCancelPolled(r *rig) {
	r.connect()
	s := r.spec(nixl.Read, 0, Size)
	s.Notification = []byte("never")
	t := r.transfer(s)
	require.NoError(r, t.Post())
	t.Cancel()
	ended := make(chan error, 1)
	r.poll(t, func(err error) { ended <- err })
	over := clock.Func("end of the transfer", func() bool { return len(ended) > 0 })
	require.NoError(r, r.Clock.WaitUntil(context.Background(), over, r.Clock.Now()+patience))
	r.canceled(<-ended)
	require.NoError(r, t.Close())
	r.refused(t.Post(), nixl.ErrClosed)
	require.NoError(r, r.regA.Close())
	_, err := r.A.NewTransfer(s)
	r.refused(err, nixl.ErrNotRegistered)
	r.silence(r.B)
}

// poll polls a transfer to its end on a goroutine of its own.
func (r *rig) poll(t nixl.Transfer, done func(error)) {
	r.Clock.Go("poll", func() { done(nixl.Wait(context.Background(), r.Clock, r.A, t, clock.Never)) })
}

// Cancels from another goroutine at any moment of a transfer: the end is one of
// the two, and the message has left with one of them only.
func testCancelRaces(r *rig) {
	r.connect()
	rounds := 300
	if r.RestartB != nil {
		rounds = 100 // the other process is slower
	}
	random := rand.New(rand.NewPCG(1, 2))
	took := 200 * time.Microsecond // a guess, that adapts
	type end struct {
		err error
		at  time.Duration
	}
	told := map[string]bool{}
	done, canceled := 0, 0
	for i := range rounds {
		const n = 16 << 10
		s := r.spec(nixl.Op(i%2), uint64(i%32)*n, n)
		s.Notification = fmt.Appendf(nil, "round %d", i)
		t := r.transfer(s)
		late := time.Duration(random.Int64N(int64(2 * took)))
		began := r.Clock.Now()
		require.NoError(r, t.Post())
		ended := make(chan end, 1)
		r.poll(t, func(err error) { ended <- end{err, r.Clock.Now()} })
		if late > took/8 {
			require.NoError(r, r.Clock.Sleep(context.Background(), late))
		}
		t.Cancel()
		over := clock.Func("end of the transfer", func() bool { return len(ended) > 0 })
		require.NoError(r, r.Clock.WaitUntil(context.Background(), over, r.Clock.Now()+patience))
		e := <-ended
		if e.err == nil {
			done++
			told[string(s.Notification)] = true
			off := uint64(i%32) * n
			require.True(r, bytes.Equal(r.BufferB.Data[off:off+n], r.BufferA.Data[off:off+n]), "bytes differ")
			took = max((took*7+e.at-began)/8, 10*time.Microsecond)
		} else {
			canceled++
			r.canceled(e.err)
			took += took / 8
		}
		r.refused(t.Post(), nixl.ErrCanceled)
		require.NoError(r, t.Close())
	}
	r.Logf("%d done, %d canceled", done, canceled)
	require.NotZero(r, done)
	require.NotZero(r, canceled)
	in := nixl.NewInbox(r.B, r.Clock, rounds)
	for range done {
		n, err := in.Wait(context.Background(), anyMessage, r.Clock.Now()+patience)
		require.NoError(r, err)
		require.True(r, told[string(n.Message)], "%s", n.Message)
		delete(told, string(n.Message))
	}
	require.Zero(r, in.Len())
	r.silence(r.B)
	require.NoError(r, r.regA.Close())
	require.NoError(r, r.A.Close())
}
