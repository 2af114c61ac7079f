package trace

import (
	"fmt"
	"slices"
	"time"
)

// Stats says in numbers what a trace is like.
type Stats struct {
	Requests      int
	Span          time.Duration // from the first arrival to the last
	Input, Output Lengths
	// PrefixShare is the share of all stretches that an earlier request had at
	// the same place after the same beginning; 0 for a trace without prefixes.
	PrefixShare float64
	// FollowUps is the share of requests that begin with two or more stretches
	// of an earlier one.
	FollowUps float64
	// Burst is the mean number of requests that arrive at one time.
	Burst float64
}

// Lengths are in tokens.
type Lengths struct {
	Mean                              float64
	P10, P25, P50, P75, P90, P99, Max int
}

// Stats goes through the trace once.
func (t *Trace) Stats() Stats {
	n := len(t.Requests)
	s := Stats{Requests: n, Span: t.Requests[n-1].Arrival - t.Requests[0].Arrival}
	inputs, outputs := make([]int, n), make([]int, n)
	seen := map[uint64]bool{}
	var all, hits, follow, times int
	for i := range t.Requests {
		r := &t.Requests[i]
		inputs[i], outputs[i] = r.Input, r.Output
		if i == 0 || r.Arrival != t.Requests[i-1].Arrival {
			times++
		}
		hit := 0
		for hit < len(r.HashIDs) && seen[r.HashIDs[hit]] {
			hit++
		}
		for _, id := range r.HashIDs[hit:] {
			seen[id] = true
		}
		all += len(r.HashIDs)
		hits += hit
		if hit > 1 {
			follow++
		}
	}
	s.Input, s.Output = lengths(inputs), lengths(outputs)
	s.PrefixShare = float64(hits) / float64(max(all, 1))
	s.FollowUps = float64(follow) / float64(n)
	s.Burst = float64(n) / float64(times)
	return s
}

func lengths(v []int) Lengths {
	slices.Sort(v)
	sum := 0.0
	for _, n := range v {
		sum += float64(n)
	}
	at := func(p int) int { return v[min(len(v)*p/100, len(v)-1)] }
	return Lengths{sum / float64(len(v)), at(10), at(25), at(50), at(75), at(90), at(99), at(100)}
}

func (s Stats) String() string {
	return fmt.Sprintf("%d requests in %v, prompts of %.0f tokens (median %d, most %d), answers of %.0f (median %d, most %d), %.1f %% of the prompts' stretches seen before",
		s.Requests, s.Span.Round(time.Millisecond), s.Input.Mean, s.Input.P50, s.Input.Max,
		s.Output.Mean, s.Output.P50, s.Output.Max, 100*s.PrefixShare)
}
