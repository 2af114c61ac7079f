package softnic_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

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
