// Pipeline replays a request trace through a decode engine, once in each of the
// gate's ordering modes, and prints side by side what zeroing against KV loads
// costs and what it breaks.
//
//	go run ./bench/pipeline [-trace file] [-model config.json] [flags]
//
// Without files it makes a trace up and takes a built-in hybrid layout. Device,
// fabric and clock are simulated, and so is every figure; package engine says
// what is modelled. Azure and Mooncake traces are read (see package trace), and
// the architectures of package layout.
//
// The exit status is 0 when all modes ran and those that are gated corrupted
// nothing, 1 when one did or a run failed, 2 on bad input.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/layout"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr, isTerminal(os.Stderr))
	stop()
	os.Exit(status)
}

// isTerminal reports whether a file is a character device, such as a terminal.
func isTerminal(f *os.File) bool {
	i, err := f.Stat()
	return err == nil && i.Mode()&os.ModeCharDevice != 0
}

func run(ctx context.Context, args []string, out, errs io.Writer, terminal bool) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		return 0
	}
	var j job
	if err == nil {
		j, err = o.prepare()
	}
	if err != nil {
		fmt.Fprintln(errs, "pipeline:", err)
		return 2
	}
	line := progress{out: errs, on: terminal}
	j.progress = &line
	results, err := j.run(ctx)
	line.end()
	if err != nil {
		fmt.Fprintln(errs, "pipeline:", err)
		if badInput(err) {
			return 2
		}
		return 1
	}
	r := summarize(&j, results)
	if o.json {
		err = r.writeJSON(out)
	} else {
		err = r.writeTable(out)
	}
	if err == nil {
		err = judge(results)
	}
	if err != nil {
		fmt.Fprintln(errs, "pipeline:", err)
		return 1
	}
	return 0
}

func badInput(err error) bool {
	return errors.Is(err, engine.ErrConfig) || errors.Is(err, trace.ErrTrace) || errors.Is(err, layout.ErrOptions) || errors.Is(err, layout.ErrModel)
}

// judge says which gated mode did not keep its promise.
func judge(runs [][]engine.Result) error {
	for _, seed := range runs {
		for i := range seed {
			r := &seed[i]
			if m, err := core.ParseMode(r.Mode); err != nil {
				return err
			} else if m.Gated() && r.Corrupted() {
				return fmt.Errorf("%s is gated, and corrupted %d blocks at their first use, %d later, by %d stray writes",
					r.Mode, r.CorruptedBlocks, r.Later, r.Strays)
			}
		}
	}
	return nil
}
