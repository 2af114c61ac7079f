package core

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

// A block that joins a request was in none of its earlier steps: it is dry, and
// its zeroing waits for nothing. Steps from then on count.
func TestAppendedBlocksAreDry(t *testing.T) {
	c := newCore(t, PerBlock)
	const compute, gate = 1, 2
	marks, zeroed := kv.Seq(0), kv.Seq(0)
	step := func(h Holder) kv.Point {
		p, err := c.Plan([]Holder{h}, nil)
		require.NoError(t, err)
		require.NoError(t, c.Prepare(p))
		launchAll(t, c, gate, &zeroed)
		_, _, err = c.Begin(p)
		require.NoError(t, err)
		marks++
		m := kv.Point{Timeline: compute, Seq: marks}
		require.NoError(t, c.Submitted(p, m))
		return m
	}
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	first := step(h)
	require.NoError(t, c.Append(h, 0, []kv.Tenancy{ten(2, 1)}))
	require.NoError(t, c.Zero(ZeroRequest{Tenancies: []kv.Tenancy{ten(1, 1), ten(2, 1)}}))
	launches := map[kv.Block]Launch{}
	for _, a := range c.Actions(nil) {
		require.Equal(t, DoLaunch, a.Kind)
		ln, err := c.Launch(a.Launch)
		require.NoError(t, err)
		require.Len(t, ln.Blocks, 1)
		launches[ln.Blocks[0]] = Launch{Where: ln.Where, Waits: append([]kv.Point(nil), ln.Waits...)}
		zeroed++
		require.NoError(t, c.Launched(a.Launch, kv.Point{Timeline: gate, Seq: zeroed}))
	}
	require.Equal(t, OnIdle, launches[2].Where)
	require.Empty(t, launches[2].Waits)
	require.Equal(t, OnBusy, launches[1].Where)
	require.Contains(t, launches[1].Waits, first)

	require.NoError(t, c.Fired(gate, zeroed))
	second := step(h)
	uses, err := c.Uses(0, []kv.Tenancy{ten(2, 1)})
	require.NoError(t, err)
	require.Contains(t, uses, second)

	// What leaves takes its steps along; what leaves unused takes none.
	require.NoError(t, c.Append(h, 0, []kv.Tenancy{ten(3, 1)}))
	require.NoError(t, c.Drop(h))
	require.NoError(t, c.Retire(0, []kv.Tenancy{ten(2, 1), ten(3, 1)}))
	busy, err := c.Block(0, 2)
	require.NoError(t, err)
	require.True(t, busy.Busy)
	idle, err := c.Block(0, 3)
	require.NoError(t, err)
	require.False(t, idle.Busy)
}
