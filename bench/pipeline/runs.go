package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

// run makes all runs, as many at a time as there are processors. The result has
// a list for each seed, with the modes in order.
func (j *job) run(ctx context.Context) ([][]engine.Result, error) {
	modes := core.Modes()
	results := make([][]engine.Result, j.seeds)
	for i := range results {
		results[i] = make([]engine.Result, len(modes))
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	next := make(chan [2]int)
	var all sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), j.seeds*len(modes)) {
		all.Add(1)
		clock.Wall().Go("runs", func() {
			defer all.Done()
			for at := range next {
				c := j.seeded(at[0])
				if p := j.progress; p != nil {
					c.Progress = func(m loadgate.Mode, over, of int) { p.show(c.Seed, m, over, of) }
				}
				r, err := engine.Run(ctx, c, modes[at[1]])
				if err != nil {
					stop(fmt.Errorf("seed %d: %w", c.Seed, err))
				}
				results[at[0]][at[1]] = r
			}
		})
	}
	for s := range results {
		for m := range modes {
			select {
			case next <- [2]int{s, m}:
			case <-ctx.Done():
			}
		}
	}
	close(next)
	all.Wait()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	for _, seed := range results {
		for i := range seed {
			if u := seed[0].TokensPerS; u > 0 { // modes begin with Ungated
				seed[i].Overhead = 1 - seed[i].TokensPerS/u
			}
		}
	}
	return results, nil
}

// progress is a line on a terminal that is written over.
type progress struct {
	out io.Writer
	on  bool

	mu    sync.Mutex
	shown bool
}

func (p *progress) show(seed uint64, m loadgate.Mode, over, of int) {
	if !p.on {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.shown = true
	fmt.Fprintf(p.out, "\r\x1b[Kseed %d, %v: %d of %d requests", seed, m, over, of)
}

// end clears the line.
func (p *progress) end() {
	if p.shown {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
