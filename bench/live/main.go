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

	"github.com/kvgate/kvgate/bench/internal/outcome"
	"github.com/kvgate/kvgate/bench/live/decode"
	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/nixl"
)

func main() {
	if nic.Asked() {
		err := nic.Serve(func(slow float64) (cuda.Device, error) { return openDevice(nil, slow) })
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
func openDevice(w io.Writer, slow float64) (cuda.Device, error) {
	return auto.Open(w, auto.Options{Sim: sim.Options{Real: true, Slow: slow, SMs: simulatedSMs, Shareable: true}})
}

func run(ctx context.Context, args []string, out, errs io.Writer, open func(w io.Writer, slow float64) (cuda.Device, error)) int {
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
	dev, err := open(said, o.slow)
	if err != nil {
		fmt.Fprintln(errs, "live:", err)
		return 1
	}
	status, busy := o.live(ctx, dev, said, out, errs)
	if busy {
		return status // something may still write to the device's memory
	}
	if err := dev.Close(); err != nil && status == 0 {
		fmt.Fprintln(errs, "live:", err)
		return 1
	}
	return status
}

// live measures on an open device. busy says that the device can not be closed.
func (o options) live(ctx context.Context, dev cuda.Device, said, out, errs io.Writer) (status int, busy bool) {
	info := dev.Info()
	cfg := o.config(info.Simulated)
	err := cfg.Check()
	if err == nil && o.slow > 1 && info.Backend != "sim" {
		err = fmt.Errorf("-slow %g: the device is %s, and not the simulator of this program", o.slow, info.Name)
	}
	if err != nil {
		fmt.Fprintln(errs, "live:", err)
		return 2, false
	}
	m, err := decode.Open(ctx, dev, cfg, o.nic, o.slow)
	if err != nil {
		fmt.Fprintln(errs, "live:", oneLine(err))
		return 1, errors.Is(err, nixl.ErrBusy)
	}
	s := newSummary(o, cfg, info, m.NIC())
	s.head(said)
	failed := errors.Join(s.measure(ctx, m, out), m.Close())
	busy = errors.Is(failed, nixl.ErrBusy)
	if failed == nil {
		failed = s.judge()
	}
	if failed != nil {
		failed = oneLine(failed)
		s.Failure = failed.Error()
	}
	switch {
	case o.json:
		err = s.writeJSON(out)
	case o.bench:
		err = s.lines(out)
	default:
		err = s.table(out)
	}
	if failed = errors.Join(failed, err); failed != nil {
		fmt.Fprintln(errs, "live:", oneLine(failed))
		return 1, busy
	}
	if note := outcome.Unshown(s.runs()); note != "" {
		fmt.Fprintln(said, note)
	}
	return 0, false
}

// measure runs the rounds; those of the modes take turns.
func (s *summary) measure(ctx context.Context, m *decode.Machine, out io.Writer) error {
	for n := range s.o.rounds {
		for i, mode := range s.o.modes {
			r, err := m.Round(ctx, mode, s.o.time/durations(s.o.rounds))
			if err != nil {
				return fmt.Errorf("%v: %w", mode, err)
			}
			s.add(i, r)
			if s.o.bench {
				one := total([]decode.Round{r})
				one.Mode = mode.String()
				if err := s.line(out, &one, fmt.Sprintf("/round-%d", n+1)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// oneLine is an error whose causes are not on lines of their own.
func oneLine(err error) error { return &flat{err} }

type flat struct{ error }

func (f *flat) Error() string { return strings.ReplaceAll(f.error.Error(), "\n", "; ") }
func (f *flat) Unwrap() error { return f.error }
