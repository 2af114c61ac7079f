package trace

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// GenerateOptions says what [Generate] makes.
type GenerateOptions struct {
	Requests int    // 0: 1000
	Seed     uint64 // the same seed gives the same trace
}

// Generate makes a trace up that is like the first eleven minutes of the
// Mooncake conversation trace, of which the constants below are statistics: a
// service whose prompts all begin with the same stretch, with conversations
// whose next prompt is the last one, its answer and something new. Arrivals
// come in bursts, at steps of three seconds.
//
// Follow-ups wait for minutes, so that a trace of a few hundred requests has
// fewer of them, as has the beginning of the recorded one.
func Generate(o GenerateOptions) (*Trace, error) {
	if o.Requests == 0 {
		o.Requests = 1000
	}
	if o.Requests < 0 || o.Requests > MaxRequests {
		return nil, fmt.Errorf("trace: %d requests, want 1 to %d: %w", o.Requests, MaxRequests, ErrTrace)
	}
	g := &generator{rand: rand.New(rand.NewPCG(o.Seed, 0x6d6f6f6e)), nextID: 1}
	t := &Trace{Name: fmt.Sprintf("generated, seed %d", o.Seed), Prefixes: true}
	for at := time.Duration(0); len(t.Requests) < o.Requests; at += arrivalStep {
		for range min(g.poisson(arrivalsPerStep), o.Requests-len(t.Requests)) {
			r := g.request(at)
			if g.rand.Float64() < followed && len(r.HashIDs) > 2 {
				heap.Push(&g.waiting, followUp{after: r, at: at + g.wait()})
			}
			t.Requests = append(t.Requests, r)
		}
	}
	first := t.Requests[0].Arrival
	for i := range t.Requests {
		t.Requests[i].Arrival -= first
	}
	return t, nil
}

// Statistics of the first 2,000 requests of the conversation trace.
const (
	arrivalStep     = 3 * time.Second
	arrivalsPerStep = 8.93

	// How many of the requests of more than two stretches have a follow-up,
	// those behind the end of the trace included (shorter ones may have, but it
	// would not show in the ids); what share of these keep all of the prompt but
	// its last, partly filled stretch; and how much of it the others keep at
	// most.
	followed   = 0.38
	keepAll    = 0.82
	keepAtMost = 0.9

	// The wait for a follow-up, log-normal: median in seconds and sigma.
	waitMedian, waitSigma = 100, 0.81
	longestPrompt         = 128_000
)

// quantiles is a distribution by some of its quantiles; between them the
// logarithm is linear.
type quantiles []struct{ share, value float64 }

var (
	// Prompts that follow no other: a tenth is hardly more than the common
	// beginning.
	freshInput = quantiles{{0, 891}, {.05, 899}, {.1, 919}, {.2, 1378}, {.25, 1895}, {.3, 2885}, {.4, 5059}, {.5, 6703},
		{.6, 9242}, {.7, 12846}, {.8, 17869}, {.9, 27809}, {.95, 43399}, {.98, 75504}, {1, 122889}}
	output = quantiles{{0, 1}, {.05, 10}, {.1, 25}, {.15, 50}, {.2, 107}, {.25, 165}, {.3, 225}, {.4, 311}, {.5, 363},
		{.6, 410}, {.7, 460}, {.8, 517}, {.9, 602}, {.95, 689}, {.98, 928}, {.99, 1059}, {1, 2000}}
	// What a follow-up adds to the prompt and answer before it.
	addedInput = quantiles{{0, 1}, {.1, 5}, {.3, 11}, {.5, 22}, {.6, 37}, {.7, 111}, {.8, 532}, {.85, 2494}, {.9, 4203},
		{.95, 8215}, {.98, 15307}, {1, 36387}}
)

func (q quantiles) draw(r *rand.Rand) int {
	u := r.Float64()
	i := 1
	for u > q[i].share {
		i++
	}
	lo, hi := q[i-1], q[i]
	f := (u - lo.share) / (hi.share - lo.share)
	return int(math.Round(lo.value * math.Pow(hi.value/lo.value, f)))
}

type generator struct {
	rand    *rand.Rand
	waiting followUps
	nextID  uint64
	line    int
}

// followUp is a conversation that goes on at a time.
type followUp struct {
	after Request
	at    time.Duration
}

// request makes the next request: the follow-up that has waited longest, else
// one of a new conversation.
func (g *generator) request(at time.Duration) Request {
	g.line++
	r := Request{Line: g.line, Arrival: at, Output: output.draw(g.rand)}
	kept := []uint64{0}
	if len(g.waiting) > 0 && g.waiting[0].at <= at {
		before := heap.Pop(&g.waiting).(followUp).after
		kept = before.HashIDs[:len(before.HashIDs)-1]
		r.Input = before.Input + before.Output + addedInput.draw(g.rand)
		if g.rand.Float64() >= keepAll {
			kept = kept[:2+int(g.rand.Float64()*keepAtMost*float64(len(kept)-2))]
		}
		r.Input = min(r.Input, max(longestPrompt, before.Input))
	} else {
		r.Input = freshInput.draw(g.rand)
	}
	r.HashIDs = slices.Clone(kept)
	for len(r.HashIDs) < stretches(r.Input) {
		r.HashIDs = append(r.HashIDs, g.nextID)
		g.nextID++
	}
	return r
}

func (g *generator) wait() time.Duration {
	s := waitMedian * math.Exp(waitSigma*g.rand.NormFloat64())
	return max(time.Duration(s*float64(time.Second)).Round(arrivalStep), arrivalStep)
}

// poisson draws a small Poisson number by Knuth's product.
func (g *generator) poisson(mean float64) int {
	n, p := 0, g.rand.Float64()
	for p > math.Exp(-mean) {
		n++
		p *= g.rand.Float64()
	}
	return n
}

// followUps is a heap by time.
type followUps []followUp

func (f followUps) Len() int           { return len(f) }
func (f followUps) Less(i, j int) bool { return f[i].at < f[j].at }
func (f followUps) Swap(i, j int)      { f[i], f[j] = f[j], f[i] }
func (f *followUps) Push(x any)        { *f = append(*f, x.(followUp)) }
func (f *followUps) Pop() any {
	old := *f
	x := old[len(old)-1]
	*f = old[:len(old)-1]
	return x
}
