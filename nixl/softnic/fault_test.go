package softnic_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/clock"
	"github.com/kvgate/kvgate/internal/vtime"
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
	x.unquiet(x.wait(bystander), nixl.ErrNoPeer)
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
			x.unquiet(x.wait(quick), nixl.ErrNoPeer)
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

// A message may come before whoever it is for, and may not come at all.
func TestInbox(t *testing.T) {
	pacers(t, func(t *testing.T, w *vtime.World) {
		x := newPair(t, w, softnic.Options{})
		x.f.Inject(func(i softnic.TransferInfo) softnic.Fault {
			if string(i.Notification) == "3" {
				return softnic.Fault{Kind: softnic.LoseNotification}
			}
			return softnic.Fault{}
		})
		in := nixl.NewInbox(x.p, w, 3)
		is := func(s string) func(nixl.Notification) bool {
			return func(n nixl.Notification) bool { return string(n.Message) == s }
		}
		ctx := context.Background()
		for _, m := range []string{"1", "2", "3", "4"} {
			s := x.spec(nixl.Read, 0, 1, 64)
			s.Notification = []byte(m)
			tr := x.transfer(s)
			require.NoError(t, tr.Post())
			require.NoError(t, x.wait(tr))
		}
		n, err := in.Wait(ctx, is("4"), w.Now()+10*time.Second)
		require.NoError(t, err)
		require.Equal(t, "d", n.From)
		// Kept all the while.
		n, err = in.Wait(ctx, is("1"), w.Now()+10*time.Second)
		require.NoError(t, err)
		require.Equal(t, "1", string(n.Message))
		// 1 of n lost: an error at the deadline, not a hang.
		_, err = in.Wait(ctx, is("3"), w.Now()+10*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		gone, cancel := context.WithCancelCause(ctx)
		cause := errors.New("no longer wanted")
		cancel(cause)
		_, err = in.Wait(gone, is("3"), clock.Never)
		require.ErrorIs(t, err, cause)
		require.Equal(t, 1, in.Len())
		// Bounded: the oldest goes.
		for range 4 {
			require.NoError(t, x.d.Notify(x.peer, []byte("more")))
		}
		_, err = in.Wait(ctx, is("3"), w.Now()+10*time.Millisecond)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		require.Equal(t, 3, in.Len())
		require.Equal(t, uint64(2), in.Dropped())
		_, ok := in.Take(is("2"))
		require.False(t, ok)
		// Two wait at one inbox; each gets its own.
		results := make(chan error, 2)
		for _, m := range []string{"a", "b"} {
			w.Go("waiter", func() {
				_, err := in.Wait(ctx, is(m), w.Now()+10*time.Second)
				results <- err
				w.Notify()
			})
		}
		require.NoError(t, x.d.Notify(x.peer, []byte("b")))
		require.NoError(t, x.d.Notify(x.peer, []byte("a")))
		done := clock.Func("waiters", func() bool { return len(results) == 2 })
		require.NoError(t, w.WaitUntil(ctx, done, w.Now()+20*time.Second))
		require.NoError(t, <-results)
		require.NoError(t, <-results)
	})
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

func TestOverlapIsTold(t *testing.T) {
	var told []softnic.OverlapInfo
	o := softnic.Options{Listener: softnic.Listener{Overlap: func(i softnic.OverlapInfo) { told = append(told, i) }}}
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
	inner := nixl.Descriptor{Addr: x.dm.Addr() + 100, Len: 50}
	r, err := x.d.Register(nixl.DRAM, []nixl.Descriptor{inner})
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, "d", told[0].Agent)
	require.Equal(t, inner, told[0].New.Descriptor)
	require.Equal(t, uint64(size), told[0].Old.Len)
	_, err = x.d.Register(nixl.DRAM, []nixl.Descriptor{inner})
	require.NoError(t, err)
	require.Len(t, told, 1, "an equal region is counted, not told")
	require.NoError(t, r.Close())
}

func TestFaultNames(t *testing.T) {
	for k := softnic.NoFault; k <= softnic.DuplicateNotification; k++ {
		require.NotContains(t, k.String(), "fault ", "%d has no name", k)
	}
	require.Equal(t, "fault 10", (softnic.DuplicateNotification + 1).String())
}

func TestClosedFabric(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr := x.half()
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	require.NoError(t, x.f.Close())
	before := bytes.Clone(x.dm.Bytes())
	require.NotZero(t, present(before))
	x.sleep(50 * time.Millisecond)
	require.Equal(t, before, x.dm.Bytes())
	_, err := x.f.NewAgent("new")
	require.ErrorIs(t, err, nixl.ErrClosed)
	_, err = x.d.Metadata()
	require.ErrorIs(t, err, nixl.ErrClosed)
	require.ErrorIs(t, x.wait(tr), nixl.ErrClosed)
}

func TestBadAgents(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), softnic.Options{})
	for _, name := range []string{"", "d", string(make([]byte, 256))} {
		_, err := x.f.NewAgent(name)
		require.ErrorIs(t, err, nixl.ErrInvalid)
	}
	_, err := x.f.NewAgent("nil memory", nil)
	require.ErrorIs(t, err, nixl.ErrInvalid)
	// A blob of another fabric means nothing here.
	other := softnic.New(x.w, softnic.Options{})
	defer func() { require.NoError(t, other.Close()) }()
	a, err := other.NewAgent("p")
	require.NoError(t, err)
	blob, err := a.Metadata()
	require.NoError(t, err)
	_, err = x.d.AddPeer(blob)
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	// An agent may be its own peer.
	s := x.spec(nixl.Read, 0, 1, 64)
	s.Peer = x.add(x.d, x.d)
	s.Remote[0].Addr = x.dm.Addr() + 4096
	copy(x.dm.Bytes()[4096:], "to itself")
	tr := x.transfer(s)
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.Equal(t, "to itself", string(x.dm.Bytes()[:9]))
}
