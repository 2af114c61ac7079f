// Nixl compares what a transfer costs its caller through the Go binding of
// NIXL, through a C program that calls the same library, and through NVIDIA's
// Python binding, all in one run.
//
//	go run ./bench/nixl [-rounds n] [-only go,c-kept,c,python] [-json]
//
// The C program runs in two ways: c-kept keeps its lists of descriptors from one
// request to the next, which the Go binding does by itself; c makes them anew, as
// does the Python program. So go compares with c-kept, and python with c. Asking a
// request that is done takes no call of the library in Go, nor does the end of one
// that was over with its post; the others always call it.
//
// Two agents of one process, UCX, reads of 4 KiB descriptors. The library is
// the one that ./build.sh deps fetches, or that KVGATE_NIXL_LIB names; ./build.sh
// nixl-bench makes the C program; the Python binding needs Python 3.11. Each round
// runs all of them in turn; of each figure the smallest over the rounds is
// printed, since other programs only ever make one bigger. The exit status is 1
// when something failed, 2 when the command line is wrong.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

var bindings = []string{"go", "c-kept", "c", "python"}

// figures are nanoseconds for one transfer.
type figures map[string]float64

// phases are what is measured, in the order of the output. C and Python print
// the same names.
var phases = []struct{ name, says string }{
	{"make", "look the descriptors up and make a request"},
	{"post", "hand it over (what is small is moved in here)"},
	{"finish", "poll until it is done"},
	{"status", "ask a request that is done"},
	{"release", "let go of it"},
	{"repost", "post a request again and poll it until it is done"},
}

// descriptors of a transfer.
var counts = []int{1, 64, 512}

// result is one figure of one binding. The names of the fields are those of -json.
type result struct {
	Binding     string  `json:"binding"`
	Descriptors int     `json:"descriptors"`
	Phase       string  `json:"phase"`
	Nanoseconds float64 `json:"ns"`
}

func run(args []string, out, errs io.Writer) int {
	f := flag.NewFlagSet("nixl", flag.ContinueOnError)
	f.SetOutput(errs)
	rounds := f.Int("rounds", 5, "how often each is run")
	only := f.String("only", strings.Join(bindings, ","), "which bindings")
	asJSON := f.Bool("json", false, "print one JSON object a figure")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	which := strings.Split(*only, ",")
	for _, w := range which {
		if !slices.Contains(bindings, w) {
			fmt.Fprintf(errs, "nixl: no binding %q\n", w)
			return 2
		}
	}
	if f.NArg() > 0 || *rounds < 1 {
		fmt.Fprintln(errs, "nixl: takes no arguments, and at least one round")
		return 2
	}
	if err := compare(which, *rounds, *asJSON, out); err != nil {
		fmt.Fprintln(errs, "nixl:", err)
		return 1
	}
	return 0
}

// measurer runs the phases for a number of descriptors.
type measurer interface {
	measure(descriptors int) (figures, error)
	Close() error
}

func compare(which []string, rounds int, asJSON bool, out io.Writer) (err error) {
	env, err := find()
	if err != nil {
		return err
	}
	measurers := map[string]measurer{}
	defer func() {
		for _, m := range measurers {
			err = errors.Join(err, m.Close())
		}
	}()
	for _, w := range which {
		m, err := env.open(w)
		if err != nil {
			return fmt.Errorf("%s: %w", w, err)
		}
		measurers[w] = m
	}
	if !asJSON {
		fmt.Fprintf(out, "%s\nreads of 4 KiB descriptors between two agents of one process, UCX; ns for one transfer, best of %d rounds\n"+
			"go and c-kept keep their lists of descriptors, c and python make them anew\n", env.lib, rounds)
	}
	for _, n := range counts {
		best := map[string]figures{}
		for range rounds {
			for _, w := range which {
				got, err := measurers[w].measure(n)
				if err != nil {
					return fmt.Errorf("%s, %d descriptors: %w", w, n, err)
				}
				if best[w] == nil {
					best[w] = got
				}
				for k, v := range got {
					best[w][k] = min(best[w][k], v)
				}
			}
		}
		if err := print(out, asJSON, n, which, best); err != nil {
			return err
		}
	}
	return nil
}

func print(out io.Writer, asJSON bool, n int, which []string, best map[string]figures) error {
	if asJSON {
		enc := json.NewEncoder(out)
		for _, w := range which {
			for _, p := range phases {
				if err := enc.Encode(result{w, n, p.name, best[w][p.name]}); err != nil {
					return err
				}
			}
		}
		return nil
	}
	fmt.Fprintf(out, "\n%-4d descriptors", n)
	for _, w := range which {
		fmt.Fprintf(out, " %12s", w)
	}
	compared := slices.Contains(which, "go") && slices.Contains(which, "c-kept")
	if compared {
		fmt.Fprintf(out, " %12s", "go/c-kept")
	}
	fmt.Fprintln(out)
	row := func(name string, value func(figures) float64, says string) {
		fmt.Fprintf(out, "%-16s", name)
		for _, w := range which {
			fmt.Fprintf(out, " %12.0f", value(best[w]))
		}
		if compared {
			fmt.Fprintf(out, " %12.2f", value(best["go"])/value(best["c-kept"]))
		}
		fmt.Fprintf(out, "   %s\n", says)
	}
	for _, p := range phases {
		row(p.name, func(f figures) float64 { return f[p.name] }, p.says)
	}
	row("make + post", func(f figures) float64 { return f["make"] + f["post"] }, "")
	row("whole transfer", func(f figures) float64 { return f["make"] + f["post"] + f["finish"] + f["status"] + f["release"] }, "make to release")
	return nil
}
