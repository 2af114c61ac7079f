package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/memory/layout"
)

const usage = `usage: cd bench/tune && go run . [flags]
model
  -model m          config.json, or the name of a model that comes with the library (a built-in hybrid model)
  -block-tokens n   tokens in a block (0: as vLLM for hybrid models, 128 for the others)
  -tp n             ranks (1)
search
  -nvrtc path       NVRTC's library, auto, or off (auto: compile where it is installed)
  -pool b           bytes of memory to work on (0: 4 GB on a GPU, as little as will do on the simulator)
  -rounds n         times that each measurement is repeated on a GPU (9)
  -quick            fewer sizes of tiles, fewer thread blocks
  -budget s         put into the tuning the fewest SMs that reach this share of the full rate, such
                    as 0.9: for zeroing beside decode (0: all SMs)
output
  -o file           write the tuning there, as JSON (standard output)
  -plot file        draw what was tried: .svg, .png or .pdf
`

type options struct {
	modelName       string
	blockTokens, tp int
	nvrtc           string
	pool            float64
	rounds          int
	quick           bool
	budget          float64
	out, plot       string

	plan *layout.Plan
}

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("tune", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	f.StringVar(&o.modelName, "model", "", "")
	f.IntVar(&o.blockTokens, "block-tokens", 0, "")
	f.IntVar(&o.tp, "tp", 1, "")
	f.StringVar(&o.nvrtc, "nvrtc", "auto", "")
	f.Float64Var(&o.pool, "pool", 0, "")
	f.IntVar(&o.rounds, "rounds", 9, "")
	f.BoolVar(&o.quick, "quick", false, "")
	f.Float64Var(&o.budget, "budget", 0, "")
	f.StringVar(&o.out, "o", "", "")
	f.StringVar(&o.plot, "plot", "", "")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	switch {
	case f.NArg() > 0:
		return nil, fmt.Errorf("unexpected argument %q", f.Arg(0))
	case o.blockTokens < 0 || o.blockTokens > layout.MaxDim:
		return nil, fmt.Errorf("-block-tokens %d: want 0 to %d", o.blockTokens, layout.MaxDim)
	case o.tp < 1 || o.tp > layout.MaxTP:
		return nil, fmt.Errorf("-tp %d: want 1 to %d", o.tp, layout.MaxTP)
	case !(o.pool >= 0 && o.pool <= 1e15):
		return nil, fmt.Errorf("-pool %g: want 0 to 1e15", o.pool)
	case o.rounds < 1 || o.rounds > 1000:
		return nil, fmt.Errorf("-rounds %d: want 1 to 1000", o.rounds)
	case !(o.budget >= 0 && o.budget < 1):
		return nil, fmt.Errorf("-budget %g: want 0 or a share below 1", o.budget)
	case o.nvrtc == "":
		return nil, errors.New("-nvrtc: want a path, auto or off")
	}
	switch ext := strings.ToLower(filepath.Ext(o.plot)); {
	case o.plot == "", ext == ".svg", ext == ".png", ext == ".pdf":
	default:
		return nil, fmt.Errorf("-plot %q: want a name that ends with .svg, .png or .pdf", o.plot)
	}
	return o, nil
}

// attentionBlock is the default block of models without states, in tokens, as in
// bench/pipeline.
const attentionBlock = 128

// prepare lays the model out.
func (o *options) prepare() error {
	m, err := o.model()
	if err != nil {
		return err
	}
	lo := layout.Options{TP: o.tp, BlockTokens: o.blockTokens}
	states := false
	for i := range m.Layers {
		states = states || m.Layers[i].Kind == layout.Recurrent
	}
	if o.blockTokens == 0 && !states {
		lo.BlockTokens = attentionBlock
	}
	o.plan, err = layout.NewPlan(m, lo)
	return err
}

// model reads a file where there is one of that name.
func (o *options) model() (*layout.Model, error) {
	if o.modelName == "" {
		return engine.Builtin(), nil
	}
	if _, err := os.Stat(o.modelName); errors.Is(err, fs.ErrNotExist) && !strings.ContainsAny(o.modelName, `/\`) &&
		!strings.HasSuffix(o.modelName, ".json") {
		return layout.Named(o.modelName)
	}
	return layout.LoadConfig(o.modelName)
}
