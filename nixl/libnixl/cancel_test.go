//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

func canceled(t testing.TB, err error) {
	t.Helper()
	require.ErrorIs(t, err, nixl.ErrCanceled)
	require.True(t, nixl.Quiet(err), "not quiet: %v", err)
}

// Canceled in the middle of 64 MiB: memory, peer and agent are held until the
// end is told, and from then on not a byte changes, at either end.
func TestCancelInMidFlight(t *testing.T) {
	library(t)
	const size = 64 << 20
	for _, where := range []string{"one process", "two processes"} {
		t.Run(where, func(t *testing.T) {
			// Over TCP, where nothing is moved by the post itself.
			t.Setenv("UCX_TLS", "tcp,self")
			var c *couple
			if where == "one process" {
				p := newPair(t, size, Config{})
				c = &couple{a: p.a, bufA: p.bufA, bufB: p.bufB, regA: p.regA, peer: p.peer}
			} else {
				c = newCouple(t, size)
			}
			hits := 0
			for i := 0; hits < 4; i++ {
				require.Less(t, i, 100, "each transfer was over before the cancel")
				op := nixl.Op(hits % 2)
				from, to := c.bufB.Data, c.bufA.Data
				if op == nixl.Write {
					from, to = to, from
				}
				pattern(from, uint64(i))
				clear(to)
				s := nixl.Spec{Op: op, Peer: c.peer, Local: all(c.bufA), Remote: all(c.bufB)}
				if c.b != nil {
					s.Notification = []byte("never")
				}
				x, err := c.a.NewTransfer(s)
				require.NoError(t, err)
				if c.b != nil { // so that it is in flight for certain
					c.b.halt()
				}
				require.NoError(t, x.Post())
				if st, err := x.Status(); c.b == nil && st == nixl.Done {
					require.NoError(t, x.Close())
					continue
				} else {
					require.NoError(t, err)
					require.Equal(t, nixl.InProgress, st)
				}
				hits++
				x.Cancel()
				require.ErrorIs(t, x.Close(), nixl.ErrBusy)
				require.ErrorIs(t, c.regA.Close(), nixl.ErrBusy)
				if c.b != nil {
					require.NoError(t, clock.Wall().Sleep(context.Background(), 5*time.Millisecond))
					st, err := x.Status()
					require.NoError(t, err)
					require.Equal(t, nixl.InProgress, st, "the library can not stop it")
					c.b.goOn()
				}
				canceled(t, wait(t, c.a, x))
				require.Zero(t, inFlight(c.a))
				require.Empty(t, c.a.Poisoned())

				for k := range to {
					to[k] = 0xee
				}
				require.NoError(t, clock.Wall().Sleep(context.Background(), 20*time.Millisecond))
				require.Equal(t, size, bytes.Count(to, []byte{0xee}), "bytes moved after the end")
				quiet(t, x.Post(), nixl.ErrCanceled)
				require.NoError(t, x.Close())
				require.NoError(t, c.regA.Close())
				c.regA, err = c.a.Register(nixl.DRAM, all(c.bufA))
				require.NoError(t, err)
				if c.b != nil {
					introduce(t, c.b, c.a)
				}
			}
			if c.b != nil {
				m, err := c.b.Notifications(nil)
				require.NoError(t, err)
				require.Empty(t, m)
			}
		})
	}
}

// A peer that is killed under a canceled transfer leaves no proof.
func TestCanceledAndThenKilled(t *testing.T) {
	t.Setenv("UCX_TLS", "tcp,self")
	c := newCouple(t, 32<<20)
	x, err := c.a.NewTransfer(nixl.Spec{Peer: c.peer, Local: all(c.bufA), Remote: all(c.bufB)})
	require.NoError(t, err)
	c.b.halt()
	require.NoError(t, x.Post())
	x.Cancel()
	c.b.kill()
	unproven(t, wait(t, c.a, x), nixl.ErrDisconnected)
	require.ErrorIs(t, c.regA.Close(), nixl.ErrPoisoned)
	require.NoError(t, c.a.Recover(c.peer))
	require.NoError(t, c.regA.Close())
}

// A cancel while the library is at the post comes after it; one while it makes
// the request anew, before.
func TestCancelInTheMiddleOfAPost(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	s := p.spec(nixl.Read, 0, 64)
	s.Notification = []byte("never")
	x := p.transfer(t, s)
	p.s.onPost = func() (status, bool) { x.Cancel(); return 0, false }
	require.NoError(t, x.Post())
	p.s.onPost = nil
	canceled(t, wait(t, p.a, x))
	require.Zero(t, p.s.count("notify"))
	require.NoError(t, x.Close())

	x = p.transfer(t, s)
	p.a.dropRequests(func(*Transfer) bool { return true })
	p.s.onCreate = func() { x.Cancel() }
	posts := p.s.count("post")
	quiet(t, x.Post(), nixl.ErrCanceled)
	p.s.onCreate = nil
	require.Equal(t, posts, p.s.count("post"))
	st, err := x.Status()
	require.Equal(t, nixl.Failed, st)
	quiet(t, err, nixl.ErrCanceled)
	require.NoError(t, x.Close())
	require.Equal(t, p.s.count("create"), p.s.count("release"))

	// After a failure a refusal proves no more than that did.
	x = p.transfer(t, s)
	p.s.onPost = once(statusBackend)
	require.Error(t, x.Post())
	x.Cancel()
	unproven(t, x.Post(), nixl.ErrCanceled)
	_, err = x.Status()
	unproven(t, err, nixl.ErrBackend)
}

// Posts, polls and cancels of one transfer from three goroutines: whatever the
// order, what was posted is polled to its end once and told once.
func TestCancelAgainstEverything(t *testing.T) {
	rounds := 300
	if *long {
		rounds = 20_000
	}
	p := newPair(t, 1<<16, Config{})
	ends := map[string]int{}
	for i := range rounds {
		s := p.spec(nixl.Op(i%2), 0, 4096)
		s.Notification = []byte("done")
		x := p.transfer(t, s)
		before := p.s.count("notify")
		started := make(chan struct{})
		ended := make(chan error, 1)
		go func() {
			<-started
			x.Cancel()
		}()
		go func() {
			close(started)
			err := x.Post()
			if err == nil {
				err = wait(t, p.a, x)
			}
			ended <- err
		}()
		err := <-ended
		if err != nil {
			canceled(t, err)
		}
		require.Equal(t, err == nil, p.s.count("notify") > before)
		x.Cancel()
		quiet(t, x.Post(), nixl.ErrCanceled)
		require.NoError(t, x.Close())
		e := (*nixl.Error)(nil)
		switch {
		case err == nil:
			ends["done"]++
		case errors.As(err, &e) && e.NeverHanded:
			ends["withdrawn"]++
		default:
			ends["canceled in flight"]++
		}
	}
	t.Log(ends)
	require.Zero(t, inFlight(p.a))
	require.NoError(t, p.regA.Close())
}
