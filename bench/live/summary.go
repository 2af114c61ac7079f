package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/kvgate/kvgate/bench/internal/outcome"
	"github.com/kvgate/kvgate/bench/live/decode"
	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/loadgate/core"
)

// summary is what -json prints, as the package's documentation has it.
type summary struct {
	Device struct {
		Name      string  `json:"name"`
		Backend   string  `json:"backend"`
		Driver    string  `json:"driver"`
		Simulated bool    `json:"simulated"`
		Slow      float64 `json:"slow"`
	} `json:"device"`
	NIC struct {
		Asked     string     `json:"asked"`
		Kind      string     `json:"kind"`
		What      string     `json:"what"`
		Simulated bool       `json:"simulated"`
		Skipped   []nic.Skip `json:"skipped"`
	} `json:"nic"`
	Config struct {
		Rounds       int     `json:"rounds"`
		Seconds      float64 `json:"seconds"`
		StepUS       float64 `json:"step_us"`
		Requests     int     `json:"requests"`
		PromptBlocks int     `json:"prompt_blocks"`
		AnswerTokens int     `json:"answer_tokens"`
		Blocks       int     `json:"blocks"`
		BlockTokens  int     `json:"block_tokens"`
		Segments     int     `json:"segments"`
		PageBytes    int     `json:"page_bytes"`
		Seed         uint64  `json:"seed"`
	} `json:"config"`
	Modes   []result `json:"modes"`
	Failure string   `json:"failure"`

	o       options
	process int
	rounds  [][]decode.Round // by mode
}

// result is a mode's.
type result struct {
	Mode              string    `json:"mode"`
	Gated             bool      `json:"gated"`
	Simulated         bool      `json:"simulated"`
	Rounds            int       `json:"rounds"`
	Seconds           float64   `json:"seconds"`
	Steps             int       `json:"steps"`
	StepsPerS         float64   `json:"steps_per_s"`
	TokensPerS        float64   `json:"tokens_per_s"`
	Overhead          *float64  `json:"overhead_percent"`
	StepP50           float64   `json:"step_p50_ms"`
	StepP99           float64   `json:"step_p99_ms"`
	HostBlocked       float64   `json:"host_blocked_ms"`
	Loads             int       `json:"loads"`
	HeldLoads         int       `json:"held_loads"`
	HoldP50           float64   `json:"hold_p50_ms"`
	HoldP99           float64   `json:"hold_p99_ms"`
	LoadP50           float64   `json:"load_p50_ms"`
	LoadP99           float64   `json:"load_p99_ms"`
	Requests          int       `json:"requests"`
	CorruptedRequests int       `json:"corrupted_requests"`
	Blocks            int       `json:"blocks"`
	CorruptedBlocks   int       `json:"corrupted_blocks"`
	SubmitsPerStep    float64   `json:"submits_per_step"`
	PollsPerStep      float64   `json:"polls_per_step"`
	ZeroedBytes       uint64    `json:"zeroed_bytes"`
	LoadedBytes       uint64    `json:"loaded_bytes"`
	RoundStepsPerS    []float64 `json:"round_steps_per_s"`
}

func newSummary(o options, c decode.Config, d cuda.Info, n *nic.NIC) *summary {
	s := &summary{o: o, process: n.Process(), rounds: make([][]decode.Round, len(o.modes)), Modes: []result{}}
	s.Device.Name, s.Device.Backend, s.Device.Simulated, s.Device.Slow = d.Name, d.Backend, d.Simulated, 1
	if d.Driver != 0 {
		s.Device.Driver = fmt.Sprintf("%d.%d", d.Driver/1000, d.Driver%1000/10)
	}
	if d.Backend == "sim" {
		s.Device.Slow = o.slow
	}
	s.NIC.Asked, s.NIC.Kind, s.NIC.What = o.nic, n.Kind, n.What
	s.NIC.Simulated = d.Simulated && n.Kind != nic.NIXL
	s.NIC.Skipped = append([]nic.Skip{}, n.Skipped...)
	g := &s.Config
	g.Rounds, g.Seconds, g.StepUS = o.rounds, o.time.Seconds(), c.Step.Seconds()*1e6
	g.Requests, g.PromptBlocks, g.AnswerTokens, g.Blocks = c.Requests, c.PromptBlocks, c.AnswerTokens, c.Blocks()
	g.BlockTokens, g.Segments, g.PageBytes, g.Seed = c.BlockTokens, c.Segments, c.PageBytes, c.Seed
	return s
}

// add takes in a round of the i-th mode.
func (s *summary) add(i int, r decode.Round) { s.rounds[i] = append(s.rounds[i], r) }

// finish makes the results of the modes that have rounds.
func (s *summary) finish() {
	s.Modes = s.Modes[:0]
	var base float64
	for i, mode := range s.o.modes {
		if len(s.rounds[i]) == 0 {
			continue
		}
		r := total(s.rounds[i])
		r.Mode, r.Gated, r.Simulated = mode.String(), mode.Gated(), s.Device.Simulated
		if mode == core.Ungated {
			base = r.StepsPerS
		}
		s.Modes = append(s.Modes, r)
	}
	for i := range s.Modes {
		if base > 0 {
			over := 100 * (1 - s.Modes[i].StepsPerS/base)
			s.Modes[i].Overhead = &over
		}
	}
}

// total puts the rounds of a mode together.
func total(rounds []decode.Round) (r result) {
	var span, blocked time.Duration
	var tokens int
	var submits, polls uint64
	var times, holds, loads []time.Duration
	for _, x := range rounds {
		r.Rounds++
		span += x.Span
		blocked += x.HostBlocked
		r.Steps += x.Steps
		tokens += x.Tokens
		submits += x.Submits
		polls += x.Polls
		times = append(times, x.StepTimes...)
		holds = append(holds, x.Holds...)
		loads = append(loads, x.LoadTimes...)
		r.Loads += x.Loads
		r.HeldLoads += x.HeldLoads
		r.Requests += x.Requests
		r.CorruptedRequests += x.CorruptedRequests
		r.Blocks += x.Blocks
		r.CorruptedBlocks += x.CorruptedBlocks
		r.ZeroedBytes += x.ZeroedBytes
		r.LoadedBytes += x.LoadedBytes
		r.RoundStepsPerS = append(r.RoundStepsPerS, per(float64(x.Steps), x.Span.Seconds()))
	}
	r.Seconds = span.Seconds()
	r.StepsPerS, r.TokensPerS = per(float64(r.Steps), r.Seconds), per(float64(tokens), r.Seconds)
	r.HostBlocked = ms(blocked)
	r.SubmitsPerStep, r.PollsPerStep = per(float64(submits), float64(r.Steps)), per(float64(polls), float64(r.Steps))
	r.StepP50, r.StepP99 = percentile(times, 50), percentile(times, 99)
	r.HoldP50, r.HoldP99 = percentile(holds, 50), percentile(holds, 99)
	r.LoadP50, r.LoadP99 = percentile(loads, 50), percentile(loads, 99)
	return r
}

// per returns n/of, 0 of nothing.
func per(n, of float64) float64 {
	if of <= 0 {
		return 0
	}
	return n / of
}

// percentile returns the p-th of 100, the nearest rank, in ms; 0 of none.
func percentile(d []time.Duration, p int) float64 {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return ms(d[(len(d)-1)*p/100])
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }

// judge says what is wrong with the results, or that there is nothing to judge by.
func (s *summary) judge() error {
	s.finish()
	for _, r := range s.Modes {
		if r.Steps == 0 || r.Blocks == 0 {
			return fmt.Errorf("%s made %d steps over %d blocks: -for is too short", r.Mode, r.Steps, r.Blocks)
		}
	}
	return outcome.Judge(s.runs())
}

// runs is what the results say of the race.
func (s *summary) runs() (out []outcome.Run) {
	for _, r := range s.Modes {
		out = append(out, outcome.Run{Mode: r.Mode, Gated: r.Gated, Blocks: r.Blocks, Corrupted: r.CorruptedBlocks})
	}
	return out
}

func (s *summary) writeJSON(w io.Writer) error {
	s.finish()
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
