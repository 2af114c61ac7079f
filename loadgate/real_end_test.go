package loadgate_test

import (
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// waiters wait for tickets, each on a goroutine of its own, beside one that
// makes the gate move.
type waiters struct {
	r      *rig
	group  sync.WaitGroup
	moving sync.WaitGroup
	stop   atomic.Bool
}

func wait(t *testing.T, r *rig, tickets []loadgate.Transfer) *waiters {
	w := &waiters{r: r}
	for _, ticket := range tickets {
		w.group.Go(func() {
			err := ticket.Wait(t.Context())
			assert.True(t, ticket.Done())
			assert.Equal(t, ticket.Err(), err)
		})
	}
	w.moving.Go(func() {
		for !w.stop.Load() {
			_, _ = r.gate.Progress(0)
			_ = r.gate.Counters()
			runtime.Gosched()
		}
	})
	return w
}

// done returns when every ticket is over. A waiter that is never woken shows
// as a test that hangs.
func (w *waiters) done() {
	w.group.Wait()
	w.stop.Store(true)
	w.moving.Wait()
}

// long is how long a step runs that no test lives to see the end of, however
// busy the machine is.
const long = 30 * time.Second

// kill ends a device whose work nobody will wait for.
func kill(t *testing.T, r *rig) {
	require.NoError(t, r.dev.Kill(cuda.ErrECC, "the step is not waited for"))
	_, err := r.reg.Poll()
	require.ErrorIs(t, err, cuda.ErrECC)
}

// heldLoads are n loads into blocks that a step of that length still uses.
func heldLoads(t *testing.T, r *rig, f *flow, n int, d time.Duration) (tickets []loadgate.Transfer) {
	q := f.admit(t, n, false)
	plan, err := r.gate.Plan([]loadgate.Holder{q.holder})
	require.NoError(t, err)
	_, err = plan.Launch(f.step(d, q))
	require.NoError(t, err)
	for i := range q.blocks {
		tickets = append(tickets, r.load(q.holder, q.blocks[i:i+1]))
	}
	require.Equal(t, n, r.gate.Counters().Held)
	return tickets
}

// freeLoads are n loads into blocks that nothing uses: they leave at once.
func freeLoads(t *testing.T, r *rig, f *flow, n int) (tickets []loadgate.Transfer) {
	for range n {
		tickets = append(tickets, f.admit(t, 1, true).load)
	}
	return tickets
}

// TestCloseRealPacer closes the gate with loads held, posting and under way,
// while others wait for them and hand in more.
func TestCloseRealPacer(t *testing.T) {
	for range *realRuns {
		t.Run("run", func(t *testing.T) {
			r := newRig(t, core.PerBlock, true, func(o *loadgate.Options) { o.Posters = 2 })
			f := newFlow(r)
			tickets := heldLoads(t, r, f, 5, 300*time.Millisecond) // Close frees memory, which waits for the step
			tickets = append(tickets, freeLoads(t, r, f, 5)...)
			last := r.alloc(1)
			h, err := r.gate.Hold(0, last)
			require.NoError(t, err)
			w := wait(t, r, tickets)
			var more sync.WaitGroup
			more.Go(func() {
				for {
					tr := r.read(last)
					ticket, err := r.gate.Load(h, tr)
					if err != nil {
						assert.ErrorIs(t, err, loadgate.ErrClosed)
						assert.NoError(t, tr.Close())
						return
					}
					err = ticket.Wait(t.Context())
					assert.True(t, err == nil || errors.Is(err, core.ErrCanceled), "%v", err)
				}
			})
			require.NoError(t, r.dev.Clock().Sleep(t.Context(), 100*time.Microsecond))
			require.NoError(t, r.gate.Close(t.Context()))
			w.done()
			more.Wait()
			for _, ticket := range tickets[:5] {
				require.ErrorIs(t, ticket.Err(), core.ErrCanceled)
			}
			for _, ticket := range tickets[5:] {
				require.True(t, ticket.Err() == nil || errors.Is(ticket.Err(), core.ErrCanceled), "%v", ticket.Err())
			}
			require.NoError(t, r.gate.Close(t.Context()))
			c := r.gate.Counters()
			require.Zero(t, c.Held+c.InFlight+c.Poisoned, "%+v", c)
		})
	}
}

// TestCancelWakesWaiter: who waits for a ticket is woken at once when somebody
// else cancels it, and not when the device is next asked for its state.
func TestCancelWakesWaiter(t *testing.T) {
	r := newRig(t, core.PerBlock, true, nil)
	f := newFlow(r)
	clk := r.dev.Clock()
	q := f.admit(t, 1, false)
	plan, err := r.gate.Plan([]loadgate.Holder{q.holder})
	require.NoError(t, err)
	_, err = plan.Launch(f.step(long, q))
	require.NoError(t, err)
	quickest := time.Hour
	for range 10 {
		ticket := r.load(q.holder, q.blocks)
		var woken time.Duration
		var waiter sync.WaitGroup
		waiter.Go(func() {
			assert.ErrorIs(t, ticket.Wait(t.Context()), core.ErrCanceled)
			woken = clk.Now()
		})
		require.NoError(t, clk.Sleep(t.Context(), 500*time.Microsecond))
		at := clk.Now()
		_, err := ticket.Cancel()
		require.NoError(t, err)
		waiter.Wait()
		quickest = min(quickest, woken-at)
	}
	require.Less(t, quickest, 2*time.Millisecond)
	kill(t, r)
}

// TestDeathRealPacer lets the device die with loads held: all waiters are told
// so, with its cause, and nothing is posted after.
func TestDeathRealPacer(t *testing.T) {
	for range *realRuns {
		t.Run("run", func(t *testing.T) {
			r := newRig(t, core.PerBlock, true, nil)
			f := newFlow(r)
			var posts atomic.Int64
			r.fabric.Inject(func(softnic.TransferInfo) softnic.Fault { posts.Add(1); return softnic.Fault{} })
			tickets := heldLoads(t, r, f, 10, long)
			w := wait(t, r, tickets)
			require.NoError(t, r.dev.Clock().Sleep(t.Context(), 100*time.Microsecond))
			require.NoError(t, r.dev.Kill(cuda.ErrECC, "test"))
			w.done()
			for _, ticket := range tickets {
				require.ErrorIs(t, ticket.Err(), core.ErrDead)
				require.ErrorIs(t, ticket.Err(), cuda.ErrECC)
			}
			require.Zero(t, posts.Load())
		})
	}
}

// TestPeerLostRealPacer cuts a peer off with loads held, posting and under way.
func TestPeerLostRealPacer(t *testing.T) {
	for range *realRuns {
		t.Run("run", func(t *testing.T) {
			r := newRig(t, core.PerBlock, true, func(o *loadgate.Options) { o.Posters, o.PerPeer = 2, 2 })
			f := newFlow(r)
			r.fabric.Inject(func(softnic.TransferInfo) softnic.Fault { return softnic.Fault{Kind: softnic.Slow, Factor: 1e7} })
			tickets := heldLoads(t, r, f, 5, long)
			tickets = append(tickets, freeLoads(t, r, f, 5)...)
			w := wait(t, r, tickets)
			require.NoError(t, r.dev.Clock().Sleep(t.Context(), 300*time.Microsecond))
			require.NoError(t, r.fabric.Disconnect("prefill"))
			w.done()
			for i, ticket := range tickets {
				err := ticket.Err()
				require.True(t, i >= 5 && err == nil || errors.Is(err, core.ErrPeerLost) ||
					errors.Is(err, nixl.ErrDisconnected) || errors.Is(err, nixl.ErrNoPeer), "%d: %v", i, err)
			}
			kill(t, r)
		})
	}
}

// TestPeerLostAtPost: where nothing was under way when a peer went, the first
// post that is refused is the sign of it, and ends what is held for the peer.
func TestPeerLostAtPost(t *testing.T) {
	for name, c := range map[string]struct {
		lose func(*rig) error
		want error
	}{
		"disconnected": {func(r *rig) error { return r.fabric.Disconnect("prefill") }, nixl.ErrDisconnected},
		"removed":      {func(r *rig) error { return r.agent.RemovePeer(r.peer) }, nixl.ErrNoPeer},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, core.PerBlock, false, nil)
			f := newFlow(r)
			soon := heldLoads(t, r, f, 1, time.Millisecond)[0]
			q := f.admit(t, 1, false)
			plan, err := r.gate.Plan([]loadgate.Holder{q.holder})
			require.NoError(t, err)
			_, err = plan.Launch(f.step(time.Second, q))
			require.NoError(t, err)
			later := r.load(q.holder, q.blocks)
			require.NoError(t, c.lose(r))

			require.ErrorIs(t, soon.Wait(t.Context()), c.want)
			require.ErrorIs(t, later.Wait(t.Context()), core.ErrPeerLost)
			require.Less(t, r.dev.Clock().Now(), 100*time.Millisecond)
		})
	}
}
