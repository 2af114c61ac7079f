package loadgate_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// TestRequestsRealPacer has goroutines that each serve requests of their own on
// one gate, by loads, steps, prefixes, cancels and ends at any moment, and others
// that look. What was loaded has to be as sent when a step uses it.
func TestRequestsRealPacer(t *testing.T) {
	for run := range *realRuns {
		requestsRealPacer(t, *realSeed+uint64(run))
	}
}

func requestsRealPacer(t *testing.T, seed uint64) {
	ctx := t.Context()
	dev, err := sim.New(sim.Options{Real: true})
	require.NoError(t, err)
	fabric := softnic.New(dev.World(), softnic.Options{})
	plan := hybrid(t, layout.Options{StateMode: layout.StateAlign})
	open := func(name string, blocks int) *loadgate.Gate {
		agent, err := fabric.NewAgent(name, dev.NIC())
		require.NoError(t, err)
		g, err := loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: plan.Size(blocks), Agent: agent,
			Tables: loadgate.TableOptions{Requests: 8, Tokens: 512}})
		require.NoError(t, err)
		return g
	}
	gate, prefill := open("decode", 120), open("prefill", 60)
	blob, err := prefill.Metadata()
	require.NoError(t, err)
	peer, err := gate.AddPeer(ctx, blob)
	require.NoError(t, err)
	source, err := prefill.NewRequest()
	require.NoError(t, err)
	require.NoError(t, source.Grow(128))
	sent := bytesOfPattern(plan.Size(60))
	require.NoError(t, dev.Write(cuda.DevicePtr(prefill.Arena().Base), sent))
	theirs := lists(t, source, 3)

	serve := func(rng *rand.Rand) error {
		q, err := gate.NewRequest()
		if err != nil {
			return err
		}
		defer func() { assert.NoError(t, q.Close()) }()
		n := 16 * (1 + rng.IntN(8))
		if err := q.GrowTo(loadgate.Room{Tokens: n, Lookahead: 4}); errors.Is(err, loadgate.ErrFull) {
			return nil
		} else if err != nil {
			return err
		}
		load, err := q.Load(loadgate.TransferSpec{Peers: []loadgate.Peer{peer}, Blocks: theirs, Tokens: layout.TokenRange{To: n}})
		if err != nil {
			return err
		}
		if rng.IntN(4) == 0 {
			_, err := load.Cancel()
			if err == nil || errors.Is(err, loadgate.ErrState) || errors.Is(err, loadgate.ErrStale) {
				return nil
			}
			return err
		}
		if err := load.Wait(ctx); err != nil && !errors.Is(err, loadgate.ErrStale) {
			return err
		}
		for range 1 + rng.IntN(3) {
			step, err := gate.NewStep([]loadgate.Use{{Request: q, Tokens: 1}})
			if err != nil {
				return err
			}
			out, err := step.Launch(nil)
			if err != nil {
				return err
			}
			if err := gate.Wait(ctx, out); err != nil {
				return err
			}
			if err := q.Settle(rng.IntN(2)); err != nil {
				return err
			}
			if err := q.GrowTo(loadgate.Room{Tokens: n, Lookahead: 8}); errors.Is(err, loadgate.ErrFull) {
				break
			} else if err != nil {
				return err
			}
		}
		bs, err := q.AppendBlocks(nil, 0)
		if err != nil {
			return err
		}
		for i := range n / 16 {
			s := gate.Arena().Page(0, 0)
			have := make([]byte, s.Page)
			if err := dev.Read(have, cuda.DevicePtr(s.Address(bs[i]))); err != nil {
				return err
			}
			from := prefill.Arena().Page(0, 0).Address(theirs[0][i]) - prefill.Arena().Base
			if !assert.Equal(t, sent[from:from+s.Page], have, "block %d", bs[i]) {
				return nil
			}
		}
		return nil
	}
	var workers, others sync.WaitGroup
	looking, stop := context.WithCancel(ctx)
	for w := range uint64(4) {
		workers.Go(func() {
			rng := rand.New(rand.NewPCG(seed, w))
			for range 40 {
				if err := serve(rng); !assert.NoError(t, err) {
					return
				}
			}
		})
	}
	others.Go(func() {
		for looking.Err() == nil {
			_, err := gate.Progress(0)
			assert.NoError(t, err)
			gate.Ended(nil)
			gate.OpenSteps(nil)
			_, err = gate.Block(0, kv.Block(1))
			assert.NoError(t, err)
		}
	})
	workers.Wait()
	stop()
	others.Wait()
	require.NoError(t, gate.Close(ctx))
	require.NoError(t, prefill.Close(ctx))
	require.NoError(t, fabric.Close())
	require.NoError(t, dev.Close())
}

func bytesOfPattern(n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(1 + i%199)
	}
	return b
}
