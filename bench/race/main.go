// Race runs the race that kvgate exists for, once in each of its modes, and
// counts the blocks whose content was lost. A request is loaded from another
// machine into blocks that earlier requests have just let go of: a step that
// writes some of them has yet to run, the zeroing of others is under way, and
// their own zeroing waits behind both. Then a step uses the blocks and checks
// each byte.
//
//	go run ./bench/race [-rounds n] [-mode names] [-pacer virtual|real] [-transport softnic|nixl] [-seed n] [-json]
//	go run ./bench/race -verdicts FILE
//
// The device is simulated; the zeroing is the PTX that a GPU would run. So is the
// fabric, unless -transport nixl makes it NVIDIA's NIXL over UCX, with the other
// machine in a process of its own: then real bytes race the zeroing's stores. The
// exit status is 0 when only modes that promise nothing lost blocks, and Ungated,
// where it ran, did; 1 when not, or when something failed; 2 when the command
// line is wrong. Where no mode ran that lost blocks, a line says so.
//
// -verdicts judges the small programs of a file with the happens-before checker, prints
// of each its name, the verdict that the file gives and the one that was found, and
// exits with 1 where they differ.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kvgate/kvgate/bench/internal/outcome"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
)

func main() {
	if os.Getenv(prefillVariable) != "" {
		if err := prefill(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "race: prefill:", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// result is what became of one mode. The names of the fields are those of -json.
type result struct {
	Mode      string `json:"mode"`
	Gated     bool   `json:"gated"`
	Simulated bool   `json:"simulated"`
	Pacer     string `json:"pacer"`
	Transport string `json:"transport"` // simulated, too, if it is softnic
	Seed      uint64 `json:"seed"`
	Rounds    int    `json:"rounds"`
	Blocks    int    `json:"blocks"` // loaded
	Corrupted int    `json:"corrupted_blocks"`
	Held      uint64 `json:"held_loads"`
}

func run(args []string, out, errs io.Writer) int {
	c, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		fmt.Fprintln(errs, "race:", err)
		return 2
	}
	if c.verdicts != "" {
		return verdicts(c.verdicts, out, errs)
	}
	if !c.json {
		what := "simulated device and fabric"
		if c.transport == "nixl" {
			what = "simulated device, real bytes by NIXL over UCX from another process"
		}
		fmt.Fprintf(out, "%s, %s time, seed %d, %d loads of %d blocks in each mode\n", what, c.pacer, c.seed, c.rounds, arriving)
		fmt.Fprintf(out, "%-22s %7s %17s %11s\n", "mode", "rounds", "corrupted blocks", "held loads")
	}
	var results []result
	for _, mode := range c.modes {
		r, err := c.race(mode, c.open())
		if err != nil {
			fmt.Fprintf(errs, "race: %v: %v\n", mode, err)
			return 1
		}
		results = append(results, r)
		if !c.json {
			fmt.Fprintf(out, "%-22s %7d %17s %11d\n", r.Mode, r.Rounds, fmt.Sprintf("%d of %d", r.Corrupted, r.Blocks), r.Held)
		}
	}
	if c.json {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if err := e.Encode(results); err != nil {
			fmt.Fprintln(errs, "race:", err)
			return 1
		}
	}
	if err := outcome.Judge(runs(results)); err != nil {
		fmt.Fprintln(errs, "race:", err)
		return 1
	}
	if note := outcome.Unshown(runs(results)); note != "" {
		if c.json {
			out = errs // what goes to out is JSON only
		}
		fmt.Fprintln(out, note)
	}
	return 0
}

// race runs all rounds of one mode on a machine of its own.
func (c config) race(mode loadgate.Mode, open openTransport) (r result, err error) {
	o := sim.Options{Real: c.pacer == "real", Seed: c.seed}
	if c.transport == "nixl" {
		o.Slow = slowForNIXL
	}
	m, err := newMachine(mode, o, open)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, m.close()) }()
	r = result{Mode: mode.String(), Gated: mode.Gated(), Simulated: true, Pacer: c.pacer, Transport: c.transport, Seed: c.seed}
	for r.Rounds < c.rounds {
		n, err := m.round(context.Background())
		if err != nil {
			return r, fmt.Errorf("round %d: %w", r.Rounds, err)
		}
		r.Rounds++
		r.Blocks += arriving
		r.Corrupted += n
	}
	r.Held = m.Gate.Counters().HeldAtFirst
	return r, nil
}

// runs is what the results say of the race.
func runs(results []result) (out []outcome.Run) {
	for _, r := range results {
		out = append(out, outcome.Run{Mode: r.Mode, Gated: r.Gated, Blocks: r.Blocks, Corrupted: r.Corrupted})
	}
	return out
}

type config struct {
	rounds    int
	modes     []loadgate.Mode
	pacer     string
	transport string
	seed      uint64
	json      bool
	verdicts  string // a file of scenarios
}

// slowForNIXL makes the simulated device so much slower than its model that the
// real transport, whose processes have to share the machine's processors with
// it, is as fast beside it as a network is beside a GPU.
const slowForNIXL = 20

func (c config) open() openTransport {
	if c.transport == "nixl" {
		return overNIXL
	}
	return overSoftnic
}

const usage = `usage: go run ./bench/race [flags]
  -rounds n   loads in each mode (50)
  -mode names  these modes instead of all, with commas between; without Ungated
               nothing shows that the race could have been lost: a line says so
  -pacer p    virtual or real time (virtual; real with nixl)
  -transport t  softnic, simulated, or nixl (softnic)
  -seed n     of backlogs, latencies and ties (1)
  -json       results as JSON
  -verdicts file  judges the small programs of a file with the happens-before
               checker instead; exit status 1 where a verdict differs
exit status: 1 if a gated mode lost a block, or Ungated ran and lost none; else 0
`

// maxRounds keeps tags of pages within their 48 bits.
const maxRounds = 1e9

func parse(args []string) (config, error) {
	var c config
	f := flag.NewFlagSet("race", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.IntVar(&c.rounds, "rounds", 50, "")
	mode := f.String("mode", "", "")
	f.StringVar(&c.pacer, "pacer", "", "")
	f.StringVar(&c.transport, "transport", "softnic", "")
	f.Uint64Var(&c.seed, "seed", 1, "")
	f.BoolVar(&c.json, "json", false, "")
	f.StringVar(&c.verdicts, "verdicts", "", "")
	if err := f.Parse(args); err != nil {
		return c, err
	}
	if f.NArg() > 0 {
		return c, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if given := f.NFlag(); c.verdicts != "" && given > 1 {
		return c, errors.New("-verdicts goes with no other flag")
	} else if c.verdicts == "" && flagGiven(f, "verdicts") {
		return c, errors.New("-verdicts without a file")
	}
	if c.rounds < 1 || c.rounds > maxRounds {
		return c, fmt.Errorf("-rounds %d: want 1 to %d", c.rounds, int(maxRounds))
	}
	if c.transport != "softnic" && c.transport != "nixl" {
		return c, fmt.Errorf("-transport %q: want softnic or nixl", c.transport)
	}
	switch {
	case c.pacer == "" && c.transport == "nixl":
		c.pacer = "real"
	case c.pacer == "":
		c.pacer = "virtual"
	case c.pacer != "virtual" && c.pacer != "real":
		return c, fmt.Errorf("-pacer %q: want virtual or real", c.pacer)
	case c.pacer == "virtual" && c.transport == "nixl":
		return c, fmt.Errorf("-pacer virtual: a real transport needs real time")
	}
	var err error
	c.modes, err = outcome.ParseModes(*mode)
	return c, err
}
