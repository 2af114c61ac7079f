package loadgate_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// rankDriver makes the calls of one rank. It books, beside the gate, what requests
// and prefixes have.
type rankDriver struct {
	t        *testing.T
	gate     *loadgate.Gate
	requests map[int]loadgate.Request
	kept     map[int]loadgate.Kept
	counts   map[int]*[3]int // reserved, planned, settled
	steps    map[int][]int   // tokens of the steps that are not settled
}

// do makes the call with a number and returns all that came of it, in words.
func (d *rankDriver) do(op [4]int) string {
	q, c := d.requests[op[1]], d.counts[op[1]]
	var err error
	switch op[0] {
	case 0:
		if c == nil {
			q, err = d.gate.NewRequest()
			require.NoError(d.t, err)
			d.requests[op[1]], d.counts[op[1]] = q, &[3]int{}
			if k, ok := d.kept[op[2]]; ok {
				err = q.Adopt(k)
				require.NoError(d.t, err)
				n, _ := k.Tokens()
				*d.counts[op[1]] = [3]int{n, n, n}
			}
		}
	case 1:
		if err = q.Grow(op[2]); err == nil {
			c[0] = max(c[0], op[2])
		}
	case 2:
		if c != nil {
			if n := op[2]; c[1]+n <= c[0] && n > 0 {
				s, err := d.gate.NewStep([]loadgate.Use{{Request: q, Tokens: n}})
				require.NoError(d.t, err)
				launch(d.t, s)
				c[1] += n
				d.steps[op[1]] = append(d.steps[op[1]], n)
			}
		}
	case 3:
		if s := d.steps[op[1]]; len(s) > 0 {
			accepted := min(op[2], s[0])
			require.NoError(d.t, q.Settle(accepted))
			c[0] -= s[0] - accepted
			c[1] -= s[0] - accepted
			c[2] += accepted
			d.steps[op[1]] = s[1:]
		}
	case 4:
		if c != nil && c[2] > 0 {
			var k loadgate.Kept
			if k, err = q.Keep(c[2]); err == nil {
				if old, ok := d.kept[op[2]]; ok {
					require.NoError(d.t, old.Close())
				}
				d.kept[op[2]] = k
			}
		}
	case 5:
		if c != nil {
			require.NoError(d.t, q.Close())
			delete(d.requests, op[1])
			delete(d.counts, op[1])
			delete(d.steps, op[1])
		}
	}
	if q, ok := d.requests[op[1]]; ok && d.counts[op[1]] != nil {
		require.Equal(d.t, *d.counts[op[1]], tokens(d.t, q))
		return fmt.Sprint(err, lists(d.t, q, 3), tokens(d.t, q))
	}
	return fmt.Sprint(err)
}

// checkLists holds the lists of a rank against the counts: blocks for all that is
// reserved, whatever is in a window of the settled tokens, no block twice but in
// prefixes, and as many used as that makes.
func (d *rankDriver) checkLists(leads bool) {
	used := map[kv.Block]bool{}
	for i, q := range d.requests {
		c := d.counts[i]
		ls := lists(d.t, q, 3)
		for g, bs := range ls {
			require.Len(d.t, bs, (c[0]+15)/16, "group %d for %v", g, c)
			from := 0
			switch g {
			case 1:
				from = max(c[2]+1-32, 0) / 16
			case 2:
				from = max(c[2]-1, 0) / 16
			}
			for k, b := range bs {
				if k >= from {
					require.NotEqual(d.t, kv.Pad, b, "group %d place %d of %v", g, k, c)
				}
				if b != kv.Pad {
					used[b] = true
				}
			}
		}
	}
	if !leads {
		return // the ledger has what the leader has
	}
	pool, err := d.gate.Pool(0)
	require.NoError(d.t, err)
	require.GreaterOrEqual(d.t, pool.Counters().Used, len(used))
	if len(d.kept) == 0 {
		require.Equal(d.t, pool.Counters().Used, len(used))
	}
}

// Ranks that share a ledger make the same calls, one well behind the other: the
// ids are equal all the same, and no block is free before both are done.
func TestRequestsOfTwoRanks(t *testing.T) {
	plan := hybrid(t, layout.Options{StateMode: layout.StateAlign})
	for seed := range uint64(20) {
		ledger, err := loadgate.PlanLedger(2, plan, plan.Size(120))
		require.NoError(t, err)
		var ranks [2]*rankDriver
		for i := range ranks {
			dev, err := sim.New(sim.Options{})
			require.NoError(t, err)
			g, err := loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: plan.Size(120), Ledger: ledger, Rank: i})
			require.NoError(t, err)
			ranks[i] = &rankDriver{t: t, gate: g, requests: map[int]loadgate.Request{}, kept: map[int]loadgate.Kept{},
				counts: map[int]*[3]int{}, steps: map[int][]int{}}
			defer func() {
				require.NoError(t, g.Close(context.Background()))
				require.NoError(t, dev.Close())
			}()
		}
		rng := rand.New(rand.NewPCG(seed, 1))
		var ops [][4]int
		var want []string
		done := 0
		for len(ops) < 400 || done < len(ops) {
			if len(ops) < 400 && rng.IntN(2) == 0 {
				op := [4]int{rng.IntN(6), rng.IntN(6), rng.IntN(4)}
				switch c := ranks[0].counts[op[1]]; op[0] {
				case 1:
					if c == nil {
						continue
					}
					op[2] = c[0] + rng.IntN(60)
				case 2:
					op[2] = []int{1, 4, 16, 48}[op[2]]
				case 3:
					op[2] = []int{0, 1, 16, 48}[op[2]]
				}
				ops = append(ops, op)
				want = append(want, ranks[0].do(op))
				ranks[0].checkLists(true)
			} else if done < len(ops) {
				require.Equal(t, want[done], ranks[1].do(ops[done]), "seed %d, call %d: %v", seed, done, ops[done])
				ranks[1].checkLists(false)
				done++
			}
		}
		for i, d := range ranks {
			pool, err := d.gate.Pool(0)
			require.NoError(t, err)
			for n := range 6 {
				if q, ok := d.requests[n]; ok {
					require.NoError(t, q.Close())
				}
				if k, ok := d.kept[n]; ok {
					require.NoError(t, k.Close())
				}
			}
			free := 0
			if i == 1 {
				free = 119
			}
			require.Zero(t, pool.Counters().Used)
			require.LessOrEqual(t, free, pool.Counters().Free, "both ranks have let go of all")
		}
	}
}
