package loadgate_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// The tests of this file run under the real pacer, where goroutines really run
// at the same time. The long form is go test -race -run RealPacer -real.runs 300
// and a -timeout to go with it.
var (
	realRuns = flag.Int("real.runs", 1, "how often the tests under the real pacer run")
	realSeed = flag.Uint64("real.seed", 1, "seed of the first run of the soak; each next run has the next")
)

// TestRaceRealPacer is the race of TestZeroingBehindBacklog on the wall clock,
// with blocks that another step has yet to write.
func TestRaceRealPacer(t *testing.T) {
	for _, mode := range core.Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			r := newRig(t, mode, true, nil)
			f := newFlow(r)
			for range *realRuns {
				leaving := f.admit(t, blocks-1, false)
				plan, err := r.gate.Plan([]loadgate.Holder{leaving.holder})
				require.NoError(t, err)
				_, err = plan.Launch(f.step(20*time.Millisecond, leaving))
				require.NoError(t, err)
				f.release(t, leaving)

				arriving := f.admit(t, blocks-1, true)
				require.NoError(t, r.gate.EndStep())
				require.NoError(t, arriving.load.Wait(t.Context()))
				plan, err = r.gate.Plan([]loadgate.Holder{arriving.holder})
				require.NoError(t, err)
				fence, err := plan.Launch(f.step(100 * time.Microsecond))
				require.NoError(t, err)
				require.NoError(t, r.gate.Wait(t.Context(), fence))
				switch {
				case mode.Gated():
					require.Zero(t, f.damaged(arriving))
				case mode == core.Ungated:
					require.Positive(t, f.damaged(arriving), "the race did not show")
				}
				f.release(t, arriving)
			}
		})
	}
}

// TestSoakRealPacer is an engine that schedules ahead, with loads that others
// cancel, wait for and look at from goroutines of their own.
func TestSoakRealPacer(t *testing.T) {
	for _, mode := range []loadgate.Mode{core.Ungated, core.EventSync, core.StepFIFO, core.PerBlock, core.PerBlockSkipCovered} {
		t.Run(mode.String(), func(t *testing.T) {
			var bad damage
			for run := range *realRuns {
				seed := *realSeed + uint64(run)
				t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) { bad = bad.plus(soak(t, mode, seed)) })
			}
			t.Logf("%+v", bad)
			require.Positive(t, bad.used, "no load was used")
			require.Positive(t, bad.fresh, "no fresh block was used")
			if mode.Gated() {
				require.Zero(t, bad.lost, "loaded blocks that were not as sent")
				require.Zero(t, bad.unzeroed, "fresh pages that were not zero")
			} else {
				require.Positive(t, bad.lost, "the check is blind: nothing was lost ungated")
			}
		})
	}
}

// damage counts what the soak checked and what was wrong.
type damage struct {
	used, lost, fresh, unzeroed int
}

func (d damage) plus(o damage) damage {
	return damage{d.used + o.used, d.lost + o.lost, d.fresh + o.fresh, d.unzeroed + o.unzeroed}
}

func soak(t *testing.T, mode loadgate.Mode, seed uint64) damage {
	const steps = 150
	r := newRig(t, mode, true, func(o *loadgate.Options) { o.Posters, o.PerPeer = 3, 2 })
	f := newFlow(r)
	f.slowPosts = true
	f.rand = rand.New(rand.NewPCG(seed, 0))
	faults := rand.New(rand.NewPCG(seed, 1)) // used with the machine locked
	r.fabric.Inject(func(softnic.TransferInfo) softnic.Fault {
		if faults.IntN(10) == 0 {
			return softnic.Fault{Kind: softnic.FailPost}
		}
		return softnic.Fault{}
	})
	unzeroed.Store(0)
	fresh.Store(0)

	ctx, stop := context.WithCancel(t.Context())
	var others sync.WaitGroup
	shared := make(chan sharedLoad, steps*4) // never released: whoever got one may look at it
	others.Go(func() { cancels(ctx, t, r, shared, seed) })
	others.Go(func() { looks(ctx, t, r) })
	others.Go(func() {
		for ctx.Err() == nil {
			_, err := r.gate.Progress(1)
			assert.NoError(t, err)
			_ = r.dev.Clock().Sleep(ctx, 50*time.Microsecond)
		}
	})
	bad := f.engine(t, steps, shared)
	stop()
	others.Wait()

	// Whatever happened, nothing is left over.
	for r.gate.Counters().InFlight > 0 {
		_, err := r.gate.Progress(0)
		require.NoError(t, err)
		require.NoError(t, r.dev.Clock().Sleep(t.Context(), 50*time.Microsecond))
	}
	c := r.gate.Counters()
	require.Zero(t, c.Held, "%+v", c)
	require.Zero(t, c.Poisoned, "%+v", c)
	require.Equal(t, c.Loads, c.Succeeded+c.Failed+c.Withdrawn+c.Abandoned, "%+v", c)
	all := r.alloc(blocks - 1)
	require.NoError(t, r.pool.Free(all))
	bad.fresh, bad.unzeroed = int(fresh.Load()), int(unzeroed.Load())
	return bad
}

// sharedLoad is a load that others than the engine look at, too.
type sharedLoad struct {
	ticket loadgate.Transfer
	read   *watched
}

// cancels waits for tickets or cancels them, at any moment of their lives.
func cancels(ctx context.Context, t *testing.T, r *rig, loads <-chan sharedLoad, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 2))
	for {
		var load sharedLoad
		select {
		case load = <-loads:
		case <-ctx.Done():
			return
		}
		ticket := load.ticket
		if rnd.IntN(2) == 0 {
			err := ticket.Wait(ctx)
			assert.True(t, err == nil || ctx.Err() != nil || errors.Is(err, core.ErrCanceled) || stale(err) || errors.Is(err, ticket.Err()) || stale(ticket.Err()), "%v", err)
			continue
		}
		_ = r.dev.Clock().Sleep(ctx, time.Duration(rnd.IntN(400))*time.Microsecond)
		withdrawn, err := ticket.Cancel()
		if err != nil {
			assert.True(t, errors.Is(err, core.ErrState) || stale(err), "%v", err)
			continue
		}
		if withdrawn {
			load.read.withdrawn.Store(true)
		}
		assert.True(t, ticket.Done())
		err = ticket.Err()
		assert.True(t, errors.Is(err, core.ErrCanceled) || stale(err), "%v", err)
		_, err = ticket.Cancel()
		assert.True(t, errors.Is(err, core.ErrState) || stale(err), "%v", err)
	}
}

// looks reads what may be read at any time.
func looks(ctx context.Context, t *testing.T, r *rig) {
	for ctx.Err() == nil {
		c := r.gate.Counters()
		assert.GreaterOrEqual(t, c.Held+c.InFlight, 0)
		for b := range kv.Block(blocks) {
			_, err := r.gate.Block(0, b)
			assert.NoError(t, err)
		}
		assert.Empty(t, r.gate.Poisoned(0, nil))
		_ = r.dev.Clock().Sleep(ctx, 20*time.Microsecond)
	}
}

// engine runs steps, always one ahead of the output that it waits for.
func (f *flow) engine(t *testing.T, steps int, share chan<- sharedLoad) (d damage) {
	var loading, loaded, running []*request
	var output event.Fence
	for range steps {
		// Who arrives. A pool without room says so, and the request has to wait.
		for range f.rand.IntN(3) {
			n := 1 + f.rand.IntN(3)
			if f.pool.Counters().Free < n {
				break
			}
			if q := f.admit(t, n, f.rand.IntN(3) > 0); q.load == none {
				running = append(running, q)
			} else {
				if q.shared = f.rand.IntN(2) == 0; q.shared {
					share <- sharedLoad{q.load, q.read}
				}
				loading = append(loading, q)
			}
		}
		// What has arrived, and what won't.
		left := loading[:0]
		for _, q := range loading {
			switch {
			case !q.load.Done():
				left = append(left, q)
				continue
			case q.load.Err() == nil:
				loaded = append(loaded, q)
			default:
				f.release(t, q)
			}
			if !q.shared {
			}
		}
		loading = left

		var holders []loadgate.Holder
		for _, q := range running {
			holders = append(holders, q.holder)
		}
		for _, q := range loaded {
			holders = append(holders, q.holder)
		}
		plan, err := f.gate.Plan(holders)
		require.NoError(t, err)
		last := output
		output, err = plan.Launch(f.step(time.Duration(50+f.rand.IntN(300))*time.Microsecond, running...))
		require.NoError(t, err)
		require.NoError(t, f.gate.EndStep())

		// Who leaves: some, with their step still under way. Loads are looked at
		// when the step that used them is over.
		if len(loaded) > 0 {
			require.NoError(t, f.gate.Wait(t.Context(), output))
		} else {
			require.NoError(t, f.gate.Wait(t.Context(), last))
		}
		for _, q := range loaded {
			d.used += len(q.blocks)
			d.lost += f.damaged(q)
			f.release(t, q)
		}
		loaded = loaded[:0]
		stay := running[:0]
		for _, q := range running {
			if q.steps++; f.rand.IntN(2) == 0 {
				f.release(t, q)
			} else {
				stay = append(stay, q)
			}
		}
		running = stay
	}
	for _, q := range append(loading, running...) {
		if q.load != none {
			if _, err := q.load.Cancel(); err != nil {
				require.ErrorIs(t, err, core.ErrState)
			}
		}
		f.release(t, q)
	}
	require.NoError(t, f.gate.Wait(t.Context(), output))
	return d
}

// stale says that the engine has dropped the request meanwhile.
func stale(err error) bool { return errors.Is(err, core.ErrStale) }
