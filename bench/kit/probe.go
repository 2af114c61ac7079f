package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kvgate/kvgate/bench/kit/internal/measure"
	"github.com/kvgate/kvgate/bench/kit/internal/report"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/internal/abi"
)

// measuring are the parts that are this very program. Each tells people on w
// what it found, and returns it for the JSON.
var measuring = map[string]func(ctx context.Context, w io.Writer) (any, error){
	"probe": probe,
	"bandwidth": func(ctx context.Context, w io.Writer) (any, error) {
		return measure.Bandwidth(ctx, w, driver.Options{})
	},
	"wake": func(ctx context.Context, w io.Writer) (any, error) { return measure.Wake(ctx, w, driver.Options{}) },
	"step": func(ctx context.Context, w io.Writer) (any, error) { return measure.Step(ctx, w, driver.Options{}) },
}

// figuresOfPart runs one of them.
func figuresOfPart(ctx context.Context, name string, part func(context.Context, io.Writer) (any, error), args []string, out io.Writer) error {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	path := f.String("json", "", "the file that the figures go to")
	if err := parse(f, args, 0); err != nil {
		return err
	}
	data, err := part(ctx, out)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if *path == "" {
		return nil
	}
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return os.WriteFile(*path, append(text, '\n'), 0o666)
}

// probed is what the probe writes: the device, or why there is none.
type probed struct {
	Device *report.Device `json:"device,omitempty"`
	Reason string         `json:"reason,omitempty"`
}

func probe(_ context.Context, w io.Writer) (any, error) {
	d, err := driver.Open(driver.Options{})
	if err != nil {
		fmt.Fprintln(w, err)
		return probed{Reason: err.Error()}, nil
	}
	i, rdma := d.Info(), d.RDMA()
	r := &report.Device{Name: i.Name, Simulated: i.Simulated, Library: d.Library(), Driver: abi.CUDA(i.Driver).String(),
		Kernel: kernelDriver(), Capability: fmt.Sprintf("%d.%d", i.Capability[0], i.Capability[1]), SMs: i.SMs,
		Memory: i.Memory, Bandwidth: i.Bandwidth,
		RDMA: fmt.Sprintf("supported %t, needs a flush %t, can flush %t", rdma.Supported, rdma.NeedsFlush, rdma.CanFlush)}
	var errs [2]error
	r.PCI, errs[0] = d.PCIAddress()
	r.UUID, errs[1] = d.UUID()
	if err := errors.Join(errs[:]...); err != nil {
		fmt.Fprintln(w, err) // the driver is too old to tell
	}
	if err := d.Close(); err != nil {
		return nil, err
	}
	fmt.Fprintf(w, "%s, CUDA %s, %s\n", r.Name, r.Driver, r.Library)
	return probed{Device: r}, nil
}
