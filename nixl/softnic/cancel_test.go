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

func (x *pair) canceled(err error) {
	x.t.Helper()
	require.ErrorIs(x.t, err, nixl.ErrCanceled)
	require.True(x.t, nixl.Quiet(err), "not quiet: %v", err)
}

// Here a cancel does stop a flight: what is on the link lands and no more, and
// the end is told once its last chunk is acknowledged.
func TestCancelStops(t *testing.T) {
	for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
		o := slowLink()
		o.Reorder = true
		x := newPair(t, vtime.NewVirtual(vtime.Options{Seed: 7}), o)
		to := x.dm
		if op == nixl.Write {
			to = x.pm
			copy(x.dm.Bytes(), x.pm.Bytes())
			clear(to.Bytes())
		}
		s := x.spec(op, 0, 8, size/8)
		s.Notification = []byte("never")
		tr := x.transfer(s)
		require.NoError(t, tr.Post())
		x.sleep(time.Millisecond)
		tr.Cancel()
		before, at := present(to.Bytes()), x.w.Now()
		x.canceled(x.wait(tr))
		after := present(to.Bytes())
		require.Greater(t, x.w.Now(), at, "the link is not empty at once")
		require.LessOrEqual(t, after-before, o.Chunk, "no chunk left any more")
		require.Less(t, after, size)
		require.NotZero(t, after)
		require.Empty(t, x.messages())
		require.Equal(t, after, present(to.Bytes()))
		require.NoError(t, x.dr.Close())
	}
}

// A cancel that comes when all has landed already waits for no one, and the
// message is withheld all the same.
func TestCancelOfWhatHasLanded(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr := x.half()
	require.NoError(t, tr.Post())
	x.sleep(100 * time.Millisecond)
	tr.Cancel()
	s, err := tr.Status()
	require.Equal(t, nixl.Failed, s)
	x.canceled(err)
	require.Equal(t, size/2, present(x.dm.Bytes()))
	require.Empty(t, x.messages())
}

func TestCancelDoesNotEndWhatHangs(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.Hang, At: 0.5})
	tr := x.half()
	require.NoError(t, tr.Post())
	tr.Cancel()
	err := nixl.Wait(context.Background(), x.w, x.d, tr, x.w.Now()+time.Second)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorIs(t, tr.Close(), nixl.ErrBusy)
	require.NoError(t, x.f.Disconnect("p"))
	x.unquiet(x.wait(tr), nixl.ErrDisconnected)
	require.ErrorIs(t, x.dr.Close(), nixl.ErrPoisoned)
}

// What fails otherwise has failed so, whether before the cancel or behind it.
func TestCancelHidesNoFailure(t *testing.T) {
	x := faulty(t, softnic.Fault{Kind: softnic.FailHalfWay, At: 0.5})
	tr := x.half()
	x.unquiet(tr.Post(), nixl.ErrBackend)
	tr.Cancel()
	_, err := tr.Status()
	x.unquiet(err, nixl.ErrBackend)
	x.unquiet(tr.Post(), nixl.ErrCanceled)
	require.ErrorIs(t, x.dr.Close(), nixl.ErrPoisoned)

	x = newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr = x.half()
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	tr.Cancel()
	require.NoError(t, x.f.Disconnect("p"))
	x.unquiet(x.wait(tr), nixl.ErrDisconnected)
	require.ErrorIs(t, x.dr.Close(), nixl.ErrPoisoned)
}

// The cancel of a dead agent's handle stops nothing: nobody is there to.
func TestCancelAfterTheAgentsDeath(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{Seed: 5}), slowLink())
	tr := x.transfer(x.spec(nixl.Write, 0, 1, size))
	clear(x.pm.Bytes())
	copy(x.dm.Bytes(), bytes.Repeat([]byte{1}, size))
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	_, err := x.f.Restart("d")
	require.NoError(t, err)
	before := present(x.pm.Bytes())
	tr.Cancel()
	x.sleep(softnic.DefaultLinger + time.Millisecond)
	require.Greater(t, present(x.pm.Bytes()), before)
	_, err = tr.Status()
	x.unquiet(err, nixl.ErrClosed)
}
