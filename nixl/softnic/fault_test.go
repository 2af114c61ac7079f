package softnic_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// faulty is a pair on virtual time whose every transfer and message has the
// fault.
func faulty(t *testing.T, fault softnic.Fault) *pair {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	x.f.Inject(func(softnic.TransferInfo) softnic.Fault { return fault })
	return x
}

// half is a transfer of half of the memory in 8 entries with a message.
func (x *pair) half() nixl.Transfer {
	x.t.Helper()
	s := x.spec(nixl.Read, 0, 8, size/16)
	s.Notification = []byte("done")
	return x.transfer(s)
}

// messages lets everything settle and returns what p has got.
func (x *pair) messages() []nixl.Notification {
	x.t.Helper()
	x.sleep(100 * time.Millisecond)
	got, err := x.p.Notifications(nil)
	require.NoError(x.t, err)
	return got
}

func (x *pair) unquiet(err error, want error) {
	x.t.Helper()
	require.ErrorIs(x.t, err, want)
	require.False(x.t, nixl.Quiet(err))
}

func TestFailPost(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.FailPost})
	tr := x.half()
	err := tr.Post()
	require.ErrorIs(t, err, nixl.ErrBackend)
	require.True(t, nixl.Quiet(err))
	s, err := tr.Status()
	require.NoError(t, err)
	require.Equal(t, nixl.Idle, s)
	require.Empty(t, x.messages())
	require.Zero(t, present(x.dm.Bytes()))
	require.NoError(t, x.dr.Close(), "nothing keeps the memory")
}

func TestFailHalfWayGoesOnLanding(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.FailHalfWay, At: 0.5})
	tr := x.half()
	x.unquiet(tr.Post(), nixl.ErrBackend)
	s, err := tr.Status()
	require.Equal(t, nixl.Failed, s)
	x.unquiet(err, nixl.ErrBackend)
	require.NoError(t, tr.Close())
	// The handle is gone; the bytes are not.
	before := present(x.dm.Bytes())
	require.Less(t, before, size/8)
	require.Empty(t, x.messages())
	require.Equal(t, size/4, present(x.dm.Bytes()), "4 of 8 entries")
	require.ErrorIs(t, x.dr.Close(), nixl.ErrPoisoned)
}

func TestFailHalfWayOfOneEntryProvesNothing(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.FailHalfWay, At: 1})
	tr := x.transfer(x.spec(nixl.Read, 0, 1, size))
	x.unquiet(tr.Post(), nixl.ErrBackend)
	require.Empty(t, x.messages())
	require.Zero(t, present(x.dm.Bytes()))
}

func TestCloseOfTheAgentSilencesOrphans(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.FailHalfWay, At: 0.5})
	x.unquiet(x.half().Post(), nixl.ErrBackend)
	x.sleep(time.Millisecond)
	require.NoError(t, x.d.Close())
	before := bytes.Clone(x.dm.Bytes())
	require.NotZero(t, present(before))
	x.sleep(100 * time.Millisecond)
	require.Equal(t, before, x.dm.Bytes())
}

func TestFailLate(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.FailLate})
	tr := x.half()
	require.NoError(t, tr.Post())
	x.unquiet(x.wait(tr), nixl.ErrBackend)
	require.Equal(t, size/2, present(x.dm.Bytes()), "every byte has landed")
	require.Empty(t, x.messages(), "never after a failure")
	// The memory is poisoned, yet the request can be posted again.
	x.f.Inject(nil)
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.Len(t, x.messages(), 1)
	require.ErrorIs(t, x.dr.Close(), nixl.ErrPoisoned)
}

func TestHang(t *testing.T) {
	for _, at := range []float64{0, 0.5, 1} {
		x := faulty(t, softnic.Fault{Kind: softnic.Hang, At: at})
		tr := x.half()
		require.NoError(t, tr.Post())
		err := nixl.Wait(context.Background(), x.w, x.d, tr, x.w.Now()+time.Second)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, int(at*size/2), present(x.dm.Bytes()))
		require.ErrorIs(t, tr.Close(), nixl.ErrBusy)
		require.ErrorIs(t, x.dr.Close(), nixl.ErrBusy)
		require.ErrorIs(t, x.d.Close(), nixl.ErrBusy)
		// A disconnect is what ends it.
		require.NoError(t, x.f.Disconnect("p"))
		x.unquiet(x.wait(tr), nixl.ErrDisconnected)
		require.NoError(t, tr.Close())
	}
}

func TestHangIsExplained(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.Hang, At: 0.25})
	tr := x.half()
	require.NoError(t, tr.Post())
	err := x.wait(tr)
	var dead *vtime.DeadlockError
	require.ErrorAs(t, err, &dead)
	require.Contains(t, dead.Report, "actor main waits for transfer of agent d")
	require.Contains(t, dead.Report, "softnic:\n  transfer 1: d reads, peer p: 131072 of 524288 bytes landed: hangs (injected)")
}

func TestSlow(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	x.f.Inject(func(i softnic.TransferInfo) softnic.Fault {
		if i.ID == 1 {
			return softnic.Fault{Kind: softnic.Slow, Factor: 8}
		}
		return softnic.Fault{}
	})
	slow, fast := x.half(), x.half()
	var a, b time.Duration
	a = took(x.w, func() { require.NoError(t, slow.Post()); require.NoError(t, x.wait(slow)) })
	b = took(x.w, func() { require.NoError(t, fast.Post()); require.NoError(t, x.wait(fast)) })
	require.InDelta(t, 8, float64(a)/float64(b), 0.5)
}

func TestNotificationFaults(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.LoseNotification})
	tr := x.half()
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.NoError(t, x.d.Notify(x.peer, []byte("lost too")))
	require.Empty(t, x.messages())

	x = faulty(t, softnic.Fault{Kind: softnic.DuplicateNotification})
	tr = x.half()
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.NoError(t, x.d.Notify(x.peer, []byte("again")))
	require.Len(t, x.messages(), 4)

	x = faulty(t, softnic.Fault{Kind: softnic.EarlyNotification})
	tr = x.half()
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	got, err := x.p.Notifications(nil)
	require.NoError(t, err)
	require.Len(t, got, 1)
	require.Less(t, present(x.dm.Bytes()), size/2, "told before the bytes are there")
	require.NoError(t, x.wait(tr))
	require.Empty(t, x.messages(), "and once only")

	x = faulty(t, softnic.Fault{Kind: softnic.FailPost})
	err = x.d.Notify(x.peer, nil)
	require.ErrorIs(t, err, nixl.ErrBackend)
	require.True(t, nixl.Quiet(err))
}

func TestFaultNames(t *testing.T) {
	for k := softnic.NoFault; k <= softnic.DuplicateNotification; k++ {
		require.NotContains(t, k.String(), "fault ", "%d has no name", k)
	}
	require.Equal(t, "fault 10", (softnic.DuplicateNotification + 1).String())
}
