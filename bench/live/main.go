package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/kvgate/kvgate/bench/live/decode"
	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
)

func main() {
	if nic.Asked() {
		err := nic.Serve(func(o sim.Options) (cuda.Device, error) { return openDevice(nil, o) })
		if err != nil {
			fmt.Fprintln(os.Stderr, "live: the NIC's process:", err)
			os.Exit(1)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr, openDevice)
	stop()
	os.Exit(status)
}

// openDevice opens the device at hand, and says on w what it is.
func openDevice(w io.Writer, o sim.Options) (cuda.Device, error) {
	return auto.Open(w, auto.Options{Sim: o})
}

func run(ctx context.Context, args []string, out, errs io.Writer, open func(io.Writer, sim.Options) (cuda.Device, error)) int {
	o, err := parse(args)
	switch {
	case errors.Is(err, flag.ErrHelp):
		fmt.Fprint(out, usage)
		return 0
	case err != nil:
		fmt.Fprintln(errs, "live:", err)
		return 2
	}
	said := out
	if o.json {
		said = errs // what goes to out is JSON only
	}
	dev, err := open(said, simOptions(o))
	if err != nil {
		fmt.Fprintln(errs, "live:", err)
		return 1
	}
	status := o.live(ctx, dev, said, out, errs)
	if err := dev.Close(); err != nil && status == 0 {
		fmt.Fprintln(errs, "live:", err)
		return 1
	}
	return status
}

// live measures on an open device.
func (o options) live(ctx context.Context, dev cuda.Device, said, out, errs io.Writer) int {
	cfg := o.config(dev.Info().Simulated)
	if err := cfg.Check(); err != nil {
		fmt.Fprintln(errs, "live:", err)
		return 2
	}
	m, err := decode.Open(ctx, dev, o.nic, cfg)
	if err != nil {
		fmt.Fprintln(errs, "live:", err)
		return 1
	}
	s := newSummary(o, cfg, dev.Info(), m.NIC())
	s.head(said)
	failed := errors.Join(s.measure(ctx, m), m.Close())
	if failed == nil {
		failed = s.judge()
	}
	if failed != nil {
		s.Failure = failed.Error()
	}
	if o.json {
		err = s.writeJSON(out)
	} else {
		err = s.table(out)
	}
	if failed = errors.Join(failed, err); failed != nil {
		fmt.Fprintln(errs, "live:", failed)
		return 1
	}
	if note := s.unshown(); note != "" {
		fmt.Fprintln(said, note)
	}
	return 0
}

// measure runs the rounds; those of the modes take turns.
func (s *summary) measure(ctx context.Context, m *decode.Machine) error {
	for range s.o.rounds {
		for i, mode := range s.o.modes {
			r, err := m.Round(ctx, mode, s.o.time/durations(s.o.rounds))
			if err != nil {
				return fmt.Errorf("%v: %w", mode, oneLine(err))
			}
			s.add(i, r)
		}
	}
	return nil
}

// oneLine is an error whose causes are not on lines of their own.
func oneLine(err error) error {
	return &flat{err}
}

type flat struct{ error }

func (f *flat) Error() string { return strings.ReplaceAll(f.error.Error(), "\n", "; ") }
func (f *flat) Unwrap() error { return f.error }
