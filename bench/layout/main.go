// Layout shows how the cache of a model is laid out: groups, pages, what of them
// is padding, how many blocks fit into a pool and what a request takes of it.
//
//	go run ./bench/layout -model qwen3.5-35b-a3b [flags]
//
// It computes, and runs nothing. The exit status is 2 on bad input, 1 when
// something could not be written.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kvgate/kvgate/memory/layout"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

const usage = `usage: go run ./bench/layout -model m [flags]
  -list             the names of models that come with the library, and nothing else
model
  -model m          config.json, its folder, or a name
  -as f             what a config.json of an unknown architecture is read as: gqa or mla (nothing: refused)
  -draft m          a draft model, whose layers draw from the same pool
engine
  -tp n, -rank n    tensor-parallel size and rank (1, 0)
  -pp n, -stage n   pipeline stages and the one to show (1, 0)
  -order o          of dimensions: LBNHC, LBHNC, LHBNC, BLNHC, BLHNC or BHLNC (as the model needs)
  -kernel k         what the attention kernel pages by, in tokens: "16+" for multiples, "16,32,64" for these (the model's)
  -block-tokens n   tokens in a block (0: the smallest that do)
  -row-tokens n     pad block-outermost blocks to rows of so many tokens (0: don't)
  -kv-dtype t       of attention caches (as the checkpoint says)
  -state-mode m     none or align (none)
  -speculative n    speculative tokens (0)
  -max-tokens n     longest sequence (0: the model's)
request and pool
  -memory b         bytes of the pool (42949672960)
  -tokens n         of a request (8192)
output
  -svg file         a picture of one block
  -json             one JSON object instead of the table
  -diff o=v,...     what is different with other values of engine flags, as tp=2,order=BLNHC, and what moves
                    of a request when an engine of these reads it from one of those
`

// options are the flags, as given.
type options struct {
	list, json             bool
	model, as, draft       string
	tp, rank, pp, stage    int
	order, kernel, kvDType string
	blockTokens, rows      int
	stateMode              string
	speculative, maxTokens int
	memory                 uint64
	tokens                 int
	svg, diff              string
}

// flags binds o, whose values are the defaults.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("layout", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.BoolVar(&o.list, "list", o.list, "")
	f.BoolVar(&o.json, "json", o.json, "")
	f.StringVar(&o.model, "model", o.model, "")
	f.StringVar(&o.as, "as", o.as, "")
	f.StringVar(&o.draft, "draft", o.draft, "")
	f.Uint64Var(&o.memory, "memory", o.memory, "")
	f.IntVar(&o.tokens, "tokens", o.tokens, "")
	f.StringVar(&o.svg, "svg", o.svg, "")
	f.StringVar(&o.diff, "diff", o.diff, "")
	o.engineFlags(f)
	return f
}

func (o *options) engineFlags(f *flag.FlagSet) {
	f.IntVar(&o.tp, "tp", o.tp, "")
	f.IntVar(&o.rank, "rank", o.rank, "")
	f.IntVar(&o.pp, "pp", o.pp, "")
	f.IntVar(&o.stage, "stage", o.stage, "")
	f.StringVar(&o.order, "order", o.order, "")
	f.StringVar(&o.kernel, "kernel", o.kernel, "")
	f.StringVar(&o.kvDType, "kv-dtype", o.kvDType, "")
	f.IntVar(&o.blockTokens, "block-tokens", o.blockTokens, "")
	f.IntVar(&o.rows, "row-tokens", o.rows, "")
	f.StringVar(&o.stateMode, "state-mode", o.stateMode, "")
	f.IntVar(&o.speculative, "speculative", o.speculative, "")
	f.IntVar(&o.maxTokens, "max-tokens", o.maxTokens, "")
}

func parse(args []string) (options, error) {
	o := options{tp: 1, pp: 1, stateMode: "none", memory: 40 << 30, tokens: 8192}
	f := o.flags()
	switch err := f.Parse(args); {
	case err != nil:
		return o, err
	case f.NArg() > 0:
		return o, fmt.Errorf("unexpected argument %q: see -h", f.Arg(0))
	case o.model == "" && !o.list:
		return o, errors.New("-model is missing: a config.json or one of the names that -list shows")
	case o.tokens < 0 || o.tokens > layout.MaxTokens:
		return o, fmt.Errorf("-tokens %d: want 0 to %d", o.tokens, layout.MaxTokens)
	}
	return o, nil
}

// changed returns the options with the values of -diff.
func (o options) changed() (options, error) {
	f := flag.NewFlagSet("diff", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	o.engineFlags(f)
	for _, pair := range strings.Split(o.diff, ",") {
		name, value, ok := strings.Cut(pair, "=")
		if !ok {
			return o, fmt.Errorf("-diff %q: want name=value", pair)
		}
		if f.Lookup(name) == nil {
			return o, fmt.Errorf("-diff %q: %q is no engine flag: see -h", pair, name)
		}
		if err := f.Set(name, value); err != nil {
			return o, fmt.Errorf("-diff %q: %w", pair, err)
		}
	}
	return o, nil
}

func run(args []string, out, errs io.Writer) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		return 0
	}
	if err == nil && o.list {
		for _, name := range layout.Names() {
			fmt.Fprintln(out, name)
		}
		return 0
	}
	var first, second *report
	if err == nil {
		first, err = o.report()
	}
	if err == nil && o.diff != "" {
		var other options
		if other, err = o.changed(); err == nil {
			second, err = other.report()
		}
		if err == nil {
			second.Moves = first.moves(other)
		}
	}
	if err != nil {
		fmt.Fprintln(errs, "layout:", strings.ReplaceAll(err.Error(), "layout: ", ""))
		return 2
	}
	if err := o.write(out, first, second); err != nil {
		fmt.Fprintln(errs, "layout:", err)
		return 1
	}
	return 0
}

func (o options) write(out io.Writer, first, second *report) error {
	if o.svg != "" {
		if err := os.WriteFile(o.svg, first.picture(), 0o644); err != nil {
			return err
		}
	}
	switch {
	case o.json:
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		if second != nil {
			return e.Encode([]*report{first, second})
		}
		return e.Encode(first)
	case second != nil:
		return diff(out, first, second)
	}
	return first.table(out)
}
