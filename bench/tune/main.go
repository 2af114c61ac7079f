// Tune finds how the kernels are best launched on the device at hand, for the blocks
// of a model: the size of tiles, the thread blocks for each SM, how pages are stored,
// and, where NVIDIA's NVRTC is installed, how the kernels are best compiled.
//
//	cd bench/tune && go run . [-model NAME|config.json] [-o tuning.json] [-plot tuning.svg] [flags]
//
// It prints a table of what it tried, the best first, and what fewer SMs are worth, and
// writes the best as JSON, which kernels.ParseTuning reads and kernels.LoadWithOptions
// takes. Without a GPU it tunes the simulator. That has no caches and no pipelines, so
// it ranks by what warps do, instructions and sectors of memory, and says so: such a
// tuning is refused on any GPU.
//
// Plotting draws in much that the library has no use for. So this program is a module
// of its own.
//
// The exit status is 0 when a tuning was found, 1 when a run failed, 2 on bad input.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"github.com/schollz/progressbar/v3"

	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/nvrtc"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	i, err := os.Stderr.Stat()
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr, err == nil && i.Mode()&os.ModeCharDevice != 0)
	stop()
	os.Exit(status)
}

func run(ctx context.Context, args []string, out, errs io.Writer, terminal bool) int {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage)
		return 0
	}
	if err == nil {
		err = o.prepare()
	}
	if err != nil {
		fmt.Fprintf(errs, "tune: %v (-h lists the flags)\n", err)
		return 2
	}
	if err := o.run(ctx, out, errs, terminal); err != nil {
		fmt.Fprintln(errs, "tune:", err)
		return 1
	}
	return 0
}

func (o *options) run(ctx context.Context, out, errs io.Writer, terminal bool) (err error) {
	dev, err := auto.Open(errs, auto.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	compiler, why, err := o.compiler()
	if err != nil {
		return err
	}
	if compiler != nil {
		defer compiler.Close()
	}
	t, err := newTuner(dev, o, compiler)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.close()) }()
	if terminal {
		bar := progressbar.NewOptions(t.turns(), progressbar.OptionSetWriter(errs), progressbar.OptionClearOnFinish(),
			progressbar.OptionSetPredictTime(true))
		t.progress = func(what string) {
			bar.Describe(what)
			bar.Add(1)
		}
		defer bar.Finish()
	}
	r, err := t.tune(ctx)
	if err != nil {
		return err
	}
	r.Compiler = why
	if err := r.write(out); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r.Tuning, "", "  ")
	if err != nil {
		return err
	}
	text = append(text, '\n')
	if o.out != "" {
		if err := os.WriteFile(o.out, text, 0o644); err != nil {
			_, _ = out.Write(text) // it took minutes to find
			return err
		}
		fmt.Fprintln(out, "written to", o.out)
	} else if _, err := out.Write(text); err != nil {
		return err
	}
	if o.plot != "" {
		if err := r.plot(o.plot); err != nil {
			return err
		}
		fmt.Fprintln(out, "drawn in", o.plot)
	}
	return nil
}

// compiler opens NVRTC as -nvrtc says, and says which it is or why there is none.
func (o *options) compiler() (*nvrtc.Library, string, error) {
	path := o.nvrtc
	switch path {
	case "off":
		return nil, "-nvrtc off", nil
	case "auto":
		path = ""
	}
	l, err := nvrtc.Open(path)
	if err != nil {
		if o.nvrtc != "auto" {
			return nil, "", err
		}
		return nil, "there is no usable NVRTC", nil
	}
	major, minor := l.Version()
	return l, fmt.Sprintf("NVRTC %d.%d, %s", major, minor, l.Path()), nil
}
