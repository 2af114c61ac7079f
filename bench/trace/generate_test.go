package trace

import (
	"bytes"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// A generated trace is like the recorded one that its constants are of: each of
// sixteen seeds roughly, and their mean closely. Quantiles of short prompts are
// loose because few prompts are of such lengths.
func TestGenerateIsLikeTheRecorded(t *testing.T) {
	want := loadShared(t, conversation).Stats()
	const seeds = 16
	metrics := []struct {
		name      string
		of        func(Stats) float64
		one, mean float64 // tolerance, relative
	}{
		{"span", func(s Stats) float64 { return s.Span.Seconds() }, .10, .03},
		{"burst", func(s Stats) float64 { return s.Burst }, .10, .03},
		{"input mean", func(s Stats) float64 { return s.Input.Mean }, .15, .06},
		{"input p10", func(s Stats) float64 { return float64(s.Input.P10) }, .20, .10},
		{"input p25", func(s Stats) float64 { return float64(s.Input.P25) }, .40, .15},
		{"input p50", func(s Stats) float64 { return float64(s.Input.P50) }, .15, .08},
		{"input p75", func(s Stats) float64 { return float64(s.Input.P75) }, .15, .06},
		{"input p90", func(s Stats) float64 { return float64(s.Input.P90) }, .25, .10},
		{"input p99", func(s Stats) float64 { return float64(s.Input.P99) }, .40, .15},
		{"output mean", func(s Stats) float64 { return s.Output.Mean }, .08, .03},
		{"output p10", func(s Stats) float64 { return float64(s.Output.P10) }, .30, .10},
		{"output p50", func(s Stats) float64 { return float64(s.Output.P50) }, .06, .03},
		{"output p90", func(s Stats) float64 { return float64(s.Output.P90) }, .10, .03},
		{"prefix share", func(s Stats) float64 { return s.PrefixShare }, .25, .08},
		{"follow-ups", func(s Stats) float64 { return s.FollowUps }, .20, .06},
	}
	sums := make([]float64, len(metrics))
	for seed := range uint64(seeds) {
		tr, err := Generate(GenerateOptions{Requests: want.Requests, Seed: seed})
		require.NoError(t, err)
		got := tr.Stats()
		for i, m := range metrics {
			require.InEpsilon(t, m.of(want), m.of(got), m.one, "seed %d: %s", seed, m.name)
			sums[i] += m.of(got)
		}
	}
	for i, m := range metrics {
		t.Logf("%-13s recorded %9.3f, generated %9.3f", m.name, m.of(want), sums[i]/seeds)
		require.InEpsilon(t, m.of(want), sums[i]/seeds, m.mean, "%s over %d seeds", m.name, seeds)
	}
}

// A generated trace is of the form that the reader takes, and its ids are
// consistent: one id is only ever at one place behind one beginning.
func TestGenerateForm(t *testing.T) {
	tr, err := Generate(GenerateOptions{Requests: 3000, Seed: 5})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, WriteMooncake(&text, tr))
	back, err := ReadMooncake(tr.Name, &text)
	require.NoError(t, err)
	require.Equal(t, tr, back)

	before := map[uint64]uint64{}
	for _, r := range tr.Requests {
		last := uint64(math.MaxUint64)
		for _, id := range r.HashIDs {
			if b, ok := before[id]; ok {
				require.Equal(t, b, last)
			}
			before[id] = last
			last = id
		}
	}
}

func TestGenerateIsSeeded(t *testing.T) {
	gen := func(o GenerateOptions) *Trace {
		tr, err := Generate(o)
		require.NoError(t, err)
		return tr
	}
	a := gen(GenerateOptions{Seed: 1})
	require.Len(t, a.Requests, 1000)
	require.Equal(t, a, gen(GenerateOptions{Seed: 1, Requests: 1000}))
	require.NotEqual(t, a.Requests, gen(GenerateOptions{Seed: 2}).Requests)
	require.Equal(t, a.Requests[:100], gen(GenerateOptions{Seed: 1, Requests: 100}).Requests, "a shorter trace is the beginning")
	for _, n := range []int{-1, MaxRequests + 1} {
		_, err := Generate(GenerateOptions{Requests: n})
		require.ErrorIs(t, err, ErrTrace)
	}
}
