package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/memory/layout"
)

const usage = `usage: go run ./bench/pipeline [flags]
load
  -trace file       Mooncake .jsonl or Azure .csv (a trace that is made up)
  -requests n       only the first n of it, 0 for all; of one that is made up, its length (0: 1000)
  -clip             shorten prompts that are longer than the model takes, instead of refusing them
  -rate r           replay the arrivals r times as fast; 0: closed loop (0)
  -concurrency n    requests outstanding in the closed loop (0: 1.2 times what the pool holds)
  -late p           share of requests, below 1, that are canceled when their blocks' zeroing was launched (0)
model
  -model m          config.json, its folder, or a name such as qwen3.5-35b-a3b (a built-in hybrid model)
  -as f             what a config.json of an unknown architecture is read as: gqa or mla (nothing: refused)
  -block-tokens n   tokens in a block (0: as vLLM for hybrid models, 128 for the others)
  -tp n             ranks (1)
  -kv-dtype t       of attention caches (the model's)
  -zero z           auto or always (auto: if the model needs it)
  -weights b        bytes that a step reads beside KV and states (6e9)
machine
  -pool b           bytes of the pool (60e9)
  -hbm b            bytes a second of device memory, peak (4.8e12)
  -nic b            bytes a second of the NIC (50e9)
  -nic-us t         its latency (10)
  -host-us t        the host's own work in a step (500)
run
  -defer d          auto, on or off: keep freed blocks out of the pool until the step in flight was
                    processed (auto: in Ungated, SkipCovered and StepFIFO)
  -check c          first or all: check blocks at their first use after a write, or at every use (first)
  -content c        reduced or full: pages are held at a reduced size, or at their own (reduced);
                    full takes a -pool of at most 1.3e9, and few -requests
  -seed n           of NIC and step jitter, and of the trace's offset (1)
  -seeds n          repeat with n seeds from -seed on: means, with 95 % intervals (1)
  -json             one JSON object instead of the table
`

type options struct {
	trace, model, kvDType string
	as                    string
	zero, deferral        string
	check, content        string
	requests, concurrency int
	blockTokens, tp       int
	clip, json            bool
	rate, late            float64
	weights, pool         float64
	hbm, nic              float64
	nicUS, hostUS         float64
	seed                  uint64
	seeds                 int
}

func parse(args []string) (options, error) {
	var o options
	f := flag.NewFlagSet("pipeline", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.trace, "trace", "", "")
	f.StringVar(&o.model, "model", "", "")
	f.StringVar(&o.as, "as", "", "")
	f.StringVar(&o.kvDType, "kv-dtype", "", "")
	f.StringVar(&o.zero, "zero", "auto", "")
	f.StringVar(&o.deferral, "defer", "auto", "")
	f.StringVar(&o.check, "check", "first", "")
	f.StringVar(&o.content, "content", "reduced", "")
	f.IntVar(&o.requests, "requests", 0, "")
	f.IntVar(&o.concurrency, "concurrency", 0, "")
	f.IntVar(&o.blockTokens, "block-tokens", 0, "")
	f.IntVar(&o.tp, "tp", 1, "")
	f.BoolVar(&o.clip, "clip", false, "")
	f.BoolVar(&o.json, "json", false, "")
	f.Float64Var(&o.rate, "rate", 0, "")
	f.Float64Var(&o.late, "late", 0, "")
	f.Float64Var(&o.weights, "weights", 6e9, "")
	f.Float64Var(&o.pool, "pool", 60e9, "")
	f.Float64Var(&o.hbm, "hbm", 4.8e12, "")
	f.Float64Var(&o.nic, "nic", 50e9, "")
	f.Float64Var(&o.nicUS, "nic-us", 10, "")
	f.Float64Var(&o.hostUS, "host-us", 500, "")
	f.Uint64Var(&o.seed, "seed", 1, "")
	f.IntVar(&o.seeds, "seeds", 1, "")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	return o, o.validate(f)
}

// plain writes a number without an exponent, unless it is very large or small.
func plain(v float64) string {
	if a := math.Abs(v); a == 0 || a >= 1e-4 && a <= 1e12 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

const (
	// maxFull is what all seeds may write at full content, in bytes a mode:
	// about a minute on two cores.
	maxFull  = 1e10
	maxSeeds = 1000
	maxUS    = 1e9
)

// validate looks at what no other package does.
func (o *options) validate(f *flag.FlagSet) error {
	oneOf := func(name, v string, want ...string) error {
		for _, w := range want {
			if v == w {
				return nil
			}
		}
		return fmt.Errorf("-%s %q: want %s", name, v, strings.Join(want, " or "))
	}
	within := func(name string, v, least, most float64) error {
		if !(v >= least && v <= most) {
			return fmt.Errorf("-%s %s: want %s to %s", name, plain(v), plain(least), plain(most))
		}
		return nil
	}
	set := map[string]bool{}
	f.Visit(func(g *flag.Flag) { set[g.Name] = true })
	checks := []error{
		oneOf("as", o.as, append([]string{""}, layout.Families()...)...),
		oneOf("zero", o.zero, "auto", "always"),
		oneOf("defer", o.deferral, "auto", "on", "off"),
		oneOf("check", o.check, "first", "all"),
		oneOf("content", o.content, "reduced", "full"),
		within("requests", float64(o.requests), 0, trace.MaxRequests),
		within("concurrency", float64(o.concurrency), 0, trace.MaxRequests),
		within("block-tokens", float64(o.blockTokens), 0, layout.MaxDim),
		within("tp", float64(o.tp), 1, layout.MaxTP),
		within("rate", o.rate, 0, 1e9),
		within("late", o.late, 0, 1),
		within("weights", o.weights, 0, 1e15),
		within("pool", o.pool, 1, 1e15),
		within("hbm", o.hbm, 1e6, 1e18),
		within("nic", o.nic, 1e6, 1e18),
		within("nic-us", o.nicUS, 0, maxUS),
		within("host-us", o.hostUS, 0, maxUS),
		within("seeds", float64(o.seeds), 1, maxSeeds),
	}
	for _, err := range checks {
		if err != nil {
			return err
		}
	}
	switch {
	case o.content == "full" && o.pool > engine.MaxFullPool:
		return fmt.Errorf("-content full: -pool %s: want at most %d: each byte is written and compared in every mode",
			plain(o.pool), engine.MaxFullPool)
	case o.late == 1:
		return errors.New("-late 1: want less than 1, or no request completes")
	case f.NArg() > 0:
		return fmt.Errorf("unexpected argument %q", f.Arg(0))
	case set["rate"] && o.rate > 0 && set["concurrency"]:
		return fmt.Errorf("-rate and -concurrency: an open loop has no concurrency")
	case o.seed > math.MaxInt64-maxSeeds:
		return fmt.Errorf("-seed %d: want at most %d", o.seed, math.MaxInt64-maxSeeds)
	}
	return nil
}

// attentionBlock is the default block of models without states, in tokens.
// vLLM's 16 take eight times as many descriptors, and as much more time here.
const attentionBlock = 128

// job is what is to be run.
type job struct {
	options
	model    *layout.Model
	plan     *layout.Plan
	trace    *trace.Trace  // as read
	limited  trace.Limited // of the first seed
	config   engine.Config // of every seed, but for the seed and the trace
	progress *progress
}

// prepare reads the files and checks that the run is possible.
func (o options) prepare() (j job, err error) {
	j.options = o
	if j.model = engine.Builtin(); o.model != "" {
		if j.model, err = layout.Load(o.model, layout.ConfigOptions{As: o.as}); err != nil {
			return j, err
		}
	}
	lo := layout.Options{TP: o.tp, BlockTokens: o.blockTokens, Order: j.model.Order()}
	if o.kvDType != "" {
		if lo.KVDType, err = layout.ParseDType(o.kvDType); err != nil {
			return j, fmt.Errorf("-kv-dtype: %w", err)
		}
	}
	if o.blockTokens == 0 && !hasStates(j.model) && lo.Order == layout.LBNHC {
		lo.BlockTokens = attentionBlock
	}
	if j.plan, err = layout.NewPlan(j.model, lo); err != nil {
		return j, fmt.Errorf("%s%w", o.culprit(lo, j.model), err)
	}
	if err := j.readTrace(); err != nil {
		return j, err
	}
	j.config = engine.Config{Plan: j.plan, Zero: j.plan.NeedsZeroing || o.zero == "always",
		Weights: o.weights, Pool: o.pool, HBM: o.hbm, NIC: o.nic,
		Latency: us(o.nicUS), Host: us(o.hostUS), Rate: o.rate, Concurrency: o.concurrency, Late: o.late,
		CheckAll: o.check == "all", Full: o.content == "full"}
	if j.config.Defer, err = engine.ParseDeferral(o.deferral); err != nil {
		return j, err
	}
	full := 0.0
	for s := range o.seeds { // each has another part of a trace that is cut
		t, limited, err := j.cut(s)
		if err != nil {
			return j, fmt.Errorf("%w (-clip shortens such prompts)", err)
		}
		if s == 0 {
			j.limited = limited
		}
		c := j.config
		c.Trace = t
		if _, err := c.Fit(); err != nil {
			return j, fmt.Errorf("-pool %s: %w", plain(o.pool), err)
		}
		if full += c.CacheBytes(); o.content == "full" && full > maxFull {
			return j, fmt.Errorf("-content full: %d requests write %s bytes in each mode, want at most %s: fewer -requests, or -content reduced",
				len(t.Requests)*(s+1), plain(math.Round(full)), plain(maxFull))
		}
	}
	return j, nil
}

// culprit names the flag without which a model could be laid out, if one is.
func (o options) culprit(lo layout.Options, m *layout.Model) string {
	for _, f := range []struct {
		name string
		set  bool
		drop func(*layout.Options)
	}{
		{"-block-tokens " + strconv.Itoa(o.blockTokens), o.blockTokens != 0, func(l *layout.Options) { l.BlockTokens = 0 }},
		{"-tp " + strconv.Itoa(o.tp), o.tp != 1, func(l *layout.Options) { l.TP = 1 }},
		{"-kv-dtype " + o.kvDType, o.kvDType != "", func(l *layout.Options) { l.KVDType = layout.DefaultDType }},
	} {
		without := lo
		f.drop(&without)
		if _, err := layout.NewPlan(m, without); f.set && err == nil {
			return f.name + ": "
		}
	}
	return ""
}

func hasStates(m *layout.Model) bool {
	for i := range m.Layers {
		if m.Layers[i].Kind == layout.Recurrent {
			return true
		}
	}
	return false
}

func us(v float64) time.Duration { return time.Duration(v * float64(time.Microsecond)) }

func (j *job) readTrace() (err error) {
	if j.options.trace == "" {
		j.trace, err = trace.Generate(trace.GenerateOptions{Requests: j.requests})
	} else {
		j.trace, err = trace.Load(j.options.trace)
	}
	return err
}

// cut returns the requests of the i-th seed's run, fitted to the model. The
// trace begins where the golden section puts it, so that few seeds are far
// apart; seed 1 begins at the beginning.
func (j *job) cut(i int) (*trace.Trace, trace.Limited, error) {
	n := len(j.trace.Requests)
	_, part := math.Modf(float64(j.seed+uint64(i)-1) * (math.Phi - 1))
	t := *j.trace.Rotate(int(part * float64(n)))
	if j.requests > 0 && j.requests < n {
		t.Requests = t.Requests[:j.requests:j.requests]
	}
	if j.model.MaxTokens == 0 {
		return &t, trace.Limited{}, nil
	}
	return t.Limit(j.model.MaxTokens, j.clip)
}

// seeded returns the configuration of the i-th seed.
func (j *job) seeded(i int) engine.Config {
	c := j.config
	c.Seed = j.seed + uint64(i)
	c.Trace, _, _ = j.cut(i) // prepare has looked at the errors
	return c
}
