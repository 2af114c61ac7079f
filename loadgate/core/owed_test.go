package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

// TestCoveredFillingIsOwed: filling that is left to a load is done after all
// where no load comes, or only half of one, also for a block that was filled
// before.
func TestCoveredFillingIsOwed(t *testing.T) {
	for name, bytes := range map[string]kv.Range{"no load": {}, "half a load": {Len: 50}, "whole load": kv.WholeBlock} {
		t.Run(name, func(t *testing.T) {
			c := newCore(t, PerBlockSkipCovered)
			var seq kv.Seq
			h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
			require.NoError(t, err)
			require.NoError(t, c.Zero(ZeroRequest{Tenancies: []kv.Tenancy{ten(1, 1)}}))
			launchAll(t, c, 1, &seq)
			require.NoError(t, c.Fired(1, seq))
			require.NoError(t, c.Zero(ZeroRequest{Filling: Resetting, Tenancies: []kv.Tenancy{ten(1, 1)}, Covered: true}))
			require.False(t, c.Pending(), "it is left to the load")

			resets := 0
			count := func() {
				for _, a := range c.Actions(nil) {
					if a.Kind == DoLaunch {
						ln, err := c.Launch(a.Launch)
						require.NoError(t, err)
						require.Equal(t, Resetting, ln.Filling)
						resets++
						seq++
						require.NoError(t, c.Launched(a.Launch, kv.Point{Timeline: 1, Seq: seq}))
					}
				}
			}
			if bytes.Len > 0 {
				id, err := c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: bytes}}})
				require.NoError(t, err)
				count()
				require.NoError(t, c.Fired(1, seq))
				c.Actions(nil)
				require.NoError(t, c.Posted(id))
				require.NoError(t, c.Finished(id, nil, true))
			}
			p, err := c.Plan([]Holder{h}, nil)
			require.NoError(t, err)
			require.NoError(t, c.Prepare(p))
			count()
			_, _, err = c.Begin(p)
			require.NoError(t, err)
			if bytes == kv.WholeBlock {
				require.Zero(t, resets)
			} else {
				require.Equal(t, 1, resets)
			}
		})
	}
}

// TestHurryReachesWhatIsWaitedFor: in StepFIFO somebody who waits for a store
// hurries the load that the store waits for.
func TestHurryReachesWhatIsWaitedFor(t *testing.T) {
	c := newCore(t, StepFIFO, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	piece := []Piece{{Tenancy: ten(1, 1), Bytes: kv.WholeBlock}}
	load, err := c.Transfer(TransferRequest{Holder: h, Pieces: piece})
	require.NoError(t, err)
	store, err := c.Transfer(TransferRequest{Kind: Store, Holder: h, Pieces: piece})
	require.NoError(t, err)
	require.Empty(t, c.Actions(nil), "the load waits for the end of its step")
	require.NoError(t, c.Hurry(store))
	acts := c.Actions(nil)
	require.Len(t, acts, 1)
	require.Equal(t, load, acts[0].Transfer)
	require.NoError(t, c.Posted(load))
	require.NoError(t, c.Finished(load, nil, true))
	acts = c.Actions(nil)
	require.Equal(t, store, acts[len(acts)-1].Transfer)
	require.Equal(t, DoPost, acts[len(acts)-1].Kind)
}
