// Kit runs everything that needs a GPU, on a machine that has one but neither Go
// nor a network. ./build.sh gpu-kit puts it into a folder with the compiled
// tests; there,
//
//	./run.sh [-out folder] [PART...]
//
// runs all parts, or those that are named, and writes report.json, report.txt and
// parts.tar.gz (all that the parts wrote) into the folder (result-1, -2, ... beside
// run.sh). All three are written anew after each part, so that whatever happens
// there is a whole report of what was found until then.
//
// The kit has no measurements of its own: they are tests and benchmarks in the
// packages that they measure, whose documentation says how. What is most wanted
// comes first. The first report that is of use, up to the part "live", is there
// after less than five minutes, all of it after less than eight, even if each part has
// to be killed. One process holds a context for the whole run; nvidia-smi is sampled
// during each part.
//
// A part that fails, crashes, writes nonsense, takes too long (it is killed with
// all that it started) or can't be run is in the report as such, with the reason; it
// keeps the figures that it had come to, and the others still run. Without a usable
// driver the report says so at once, with the reason.
//
// README.txt says how to read the report. The exit status is 0 when every part
// passed, 1 when one did not, 2 on bad arguments, 3 without a usable driver. A
// simulated libcuda is no usable driver but with -simulated, which is how the kit is
// rehearsed; the report then says that no figure is of hardware, and so does the unit
// of each.
//
// # Rehearsal
//
// ./build.sh kit-rehearsal runs the kit in an empty environment over the simulator as
// libcuda.so.1, also over one that is slow, fails and hangs. That is two Go runtimes in
// a process, which Go does not promise to work. What it can't rehearse are the figures,
// nvidia-smi, a driver that crashes or hangs in the kernel, sizes and launch counts of a
// GPU's measurements (a simulated device gets smaller ones), and NIXL.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, unix.SIGTERM, unix.SIGHUP)
	exe, err := os.Executable()
	if err != nil {
		fmt.Fprintln(os.Stderr, "kit:", err)
		os.Exit(1)
	}
	status := run(ctx, filepath.Dir(filepath.Dir(exe)), os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

const usage = `usage: run.sh [-out folder] [-simulated] [-limits x] [PART...]
Runs all parts of the kit, or those that are named, and writes report.json,
report.txt and parts.tar.gz into the folder. -simulated takes a simulated libcuda
for a GPU, and -limits makes every limit x times as long, for rehearsals.
`

// usageError is a mistake in the arguments.
type usageError struct{ error }

// run runs the kit in a folder.
func run(ctx context.Context, dir string, args []string, out, errs io.Writer) int {
	k, err := parse(dir, args)
	if errors.Is(err, flag.ErrHelp) {
		fmt.Fprint(out, usage, "Parts:\n")
		for _, p := range parts {
			fmt.Fprintf(out, "  %-12s %s\n", p.name, p.what)
		}
		return 0
	}
	var r *Report
	if err == nil {
		k.says = out
		r, err = k.run(ctx)
	}
	if err != nil {
		fmt.Fprintln(errs, "kit:", err)
		if errors.As(err, new(usageError)) {
			return 2
		}
		return 1
	}
	fmt.Fprintf(out, "\n%s: %s\n", r.Verdict, filepath.Join(k.out, "report.txt"))
	return r.exitCode()
}

func parse(dir string, args []string) (*kit, error) {
	f := flag.NewFlagSet("kit", flag.ContinueOnError)
	f.SetOutput(io.Discard)
	k := &kit{dir: dir, parts: parts, clk: clock.Wall(), env: cleanEnv(os.Environ())}
	out := f.String("out", "", "")
	f.BoolVar(&k.simulated, "simulated", false, "")
	f.Float64Var(&k.limits, "limits", 0, "")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil, err
	} else if err != nil {
		return nil, usageError{err}
	}
	if !(k.limits >= 0 && k.limits <= 100) { // nor is it a number
		return nil, usageError{fmt.Errorf("-limits %g: want 0 to 100", k.limits)}
	}
	if k.chosen = f.NArg() > 0; k.chosen {
		var names []string
		for _, p := range parts {
			names = append(names, p.name)
		}
		for _, name := range f.Args() {
			if !slices.Contains(names, name) {
				return nil, usageError{fmt.Errorf("no part %q: there are %s", name, strings.Join(names, ", "))}
			}
		}
		k.parts = slices.DeleteFunc(slices.Clone(parts), func(p part) bool {
			return p.name != kitPart && p.name != probePart && !slices.Contains(f.Args(), p.name)
		})
	}
	var err error
	k.out, err = resultFolder(dir, *out)
	return k, err
}
