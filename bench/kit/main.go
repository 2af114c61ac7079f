// Kit runs everything that needs a GPU, on a machine that has one but neither Go
// nor a network. ./build.sh gpu-kit puts it into a folder with the compiled
// tests; there,
//
//	./run.sh [-out folder]
//
// runs all parts in turn, in less than eight minutes, and writes report.json,
// report.txt and a log for each part into the folder (result-1, -2, ... beside
// run.sh). The parts are a check of the kit itself, a probe of the driver, the
// behaviours that every device shows alike, the tests of the kernels and of the
// gate over this device, the kernels' bandwidth, how late waiters and held loads
// are, what a step costs the host (package measure says how each is measured),
// and the ordering modes of the gate under a stand-in for a model (bench/live).
//
// A part that fails, crashes, writes nonsense, takes too long (it is killed with
// all that it started) or can't be run is in the report as such, with the
// reason, and the others still run. Without a usable driver the report says so
// at once, with the reason, and the parts that need one are "not run".
//
// The exit status is 0 when every part passed, 1 when one did not, 2 on bad
// arguments, 3 without a usable driver. A simulated libcuda is no usable driver
// but with -simulated, which is how the kit is rehearsed; the report then says
// that no figure is of hardware.
//
// # Rehearsal
//
// ./build.sh kit-rehearsal runs the kit in an empty environment over the
// simulator as libcuda.so.1, with limits four times as long. That is two Go
// runtimes in a process, which Go does not promise to work: of 40 runs of the
// conformance and kernel tests 40 passed, but loops without calls are not made to
// give way. What it can't rehearse are the figures, nvidia-smi, a driver that
// crashes or hangs in the kernel, sizes and launch counts of a GPU's
// measurements (a simulated device gets smaller ones), and NIXL.
//
// The other forms are for the kit's own use:
//
//	kit probe|bandwidth|step|wake -json file   one part
//	kit pack folder                            complete a kit that has been filled
//	kit check [-simulated] report.json         whether a report has all it must have
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM)
	status := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// usageError is a mistake in the arguments.
type usageError struct{ error }

func run(ctx context.Context, args []string, out, errs io.Writer) int {
	verb := "run"
	if len(args) > 0 && args[0] != "" && args[0][0] != '-' {
		verb, args = args[0], args[1:]
	}
	status, err := 0, error(nil)
	switch verb {
	case "run":
		status, err = runKit(ctx, args, out, errs)
	case "pack":
		err = packKit(args)
	case "check":
		err = checkReport(args, out)
	default:
		part, ok := measuring[verb]
		if !ok {
			err = usageError{fmt.Errorf("no %q: may be run, pack, check, probe, bandwidth, step or wake", verb)}
			break
		}
		err = figuresOfPart(ctx, verb, part, args, out)
	}
	switch {
	case err == nil:
		return status
	case errors.Is(err, flag.ErrHelp):
		return 0
	}
	fmt.Fprintln(errs, "kit:", err)
	if errors.As(err, new(usageError)) {
		return 2
	}
	return 1
}

// parse reads flags, which say themselves what is wrong with them, and refuses
// more arguments than want.
func parse(f *flag.FlagSet, args []string, want int) error {
	f.SetOutput(io.Discard)
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return err
	} else if err != nil {
		return usageError{fmt.Errorf("%s: %w", f.Name(), err)}
	}
	if f.NArg() != want {
		return usageError{fmt.Errorf("%s: %d arguments, want %d", f.Name(), f.NArg(), want)}
	}
	return nil
}
