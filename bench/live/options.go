package main

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/kvgate/kvgate/bench/internal/outcome"
	"github.com/kvgate/kvgate/bench/live/decode"
	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/loadgate"
)

const usage = `usage: live [flags]
  -nic k        nixl, ipc, copy, or auto: the first of them that can be had (auto)
  -for d        time for each mode, all its rounds together (10s); a round has
                30 steps at least
  -rounds n     of each mode; the modes take turns (3)
  -mode names   these modes instead of all, with commas between
  -step d       what the stand-in for the forward pass takes (5ms)
  -requests n   decoded at the same time (32; on a simulated device 6)
  -prompt n     blocks of a prompt (16; 4)
  -answer n     tokens of an answer, on average (64; 20)
  -tokens n     in a block (128; 32)
  -segments n   pages of a block (8; 2)
  -page n       bytes of a page (262144; 4096)
  -seed n       of the answers' lengths (1)
  -slow x       makes a simulated device x times as slow as its model (1)
  -json         results as JSON
  -bench        each round's figures as a line of Go's benchmark format, when it is
                over, and all rounds' at the end, instead of the table
KVGATE_DRIVER is sim or nvidia where the device is not to be picked.
`

type options struct {
	nic    string
	time   time.Duration
	rounds int
	modes  []loadgate.Mode
	slow   float64
	json   bool
	bench  bool
	given  decode.Config // 0: the device's default
}

// The defaults, which a simulated device has others of: it runs PTX on the CPU.
var (
	onGPU = decode.Config{Requests: 32, PromptBlocks: 16, AnswerTokens: 64, BlockTokens: 128, Segments: 8, PageBytes: 256 << 10}
	onSim = decode.Config{Requests: 6, PromptBlocks: 4, AnswerTokens: 20, BlockTokens: 32, Segments: 2, PageBytes: 4 << 10}
)

// simulatedSMs is how many multiprocessors a simulated device has: each is a
// thread block to interpret.
const simulatedSMs = 4

// config is what an engine is to do on a device.
func (o *options) config(simulated bool) decode.Config {
	c, d := o.given, onGPU
	if simulated {
		d = onSim
	}
	for _, f := range []struct {
		to *int
		or int
	}{
		{&c.Requests, d.Requests}, {&c.PromptBlocks, d.PromptBlocks}, {&c.AnswerTokens, d.AnswerTokens},
		{&c.BlockTokens, d.BlockTokens}, {&c.Segments, d.Segments}, {&c.PageBytes, d.PageBytes},
	} {
		if *f.to == 0 {
			*f.to = f.or
		}
	}
	return c
}

// Limits of the flags; what a config can be is for decode to say.
const (
	maxTime   = time.Hour
	maxRounds = 1000
	maxSlow   = 1e6
	maxCount  = 1 << 30
)

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("live", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.nic, "nic", nic.Auto, "")
	f.DurationVar(&o.time, "for", 10*time.Second, "")
	f.IntVar(&o.rounds, "rounds", 3, "")
	mode := f.String("mode", "", "")
	f.DurationVar(&o.given.Step, "step", 5*time.Millisecond, "")
	counts := map[string]*int{"requests": &o.given.Requests, "prompt": &o.given.PromptBlocks, "answer": &o.given.AnswerTokens,
		"tokens": &o.given.BlockTokens, "segments": &o.given.Segments, "page": &o.given.PageBytes}
	for name, to := range counts {
		f.IntVar(to, name, 0, "")
	}
	f.Uint64Var(&o.given.Seed, "seed", 1, "")
	f.Float64Var(&o.slow, "slow", 1, "")
	f.BoolVar(&o.json, "json", false, "")
	f.BoolVar(&o.bench, "bench", false, "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	var wrong error
	f.Visit(func(g *flag.Flag) {
		if n := counts[g.Name]; n != nil && (*n < 1 || *n > maxCount) && wrong == nil {
			wrong = fmt.Errorf("-%s %d: want 1 to %d", g.Name, *n, maxCount)
		}
	})
	switch {
	case wrong != nil:
		return o, wrong
	case o.json && o.bench:
		return o, fmt.Errorf("-json and -bench: want one of them")
	case o.nic != nic.Auto && !slices.Contains(nic.Kinds, o.nic):
		return o, fmt.Errorf("-nic %q: want auto, %s", o.nic, strings.Join(nic.Kinds, ", "))
	case o.rounds < 1 || o.rounds > maxRounds:
		return o, fmt.Errorf("-rounds %d: want 1 to %d", o.rounds, maxRounds)
	case o.time < time.Millisecond*time.Duration(o.rounds) || o.time > maxTime:
		return o, fmt.Errorf("-for %v: want a millisecond a round to %v", o.time, maxTime)
	case o.given.Step < 0 || o.given.Step > time.Minute:
		return o, fmt.Errorf("-step %v: want 0 to %v", o.given.Step, time.Minute)
	case !(o.slow >= 1) || o.slow > maxSlow:
		return o, fmt.Errorf("-slow %g: want 1 to %g", o.slow, maxSlow)
	}
	var err error
	o.modes, err = outcome.ParseModes(*mode)
	return o, err
}
