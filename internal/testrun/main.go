// Command testrun is go test that says what was skipped. It takes go test's
// arguments, prints what go test prints without -v, and at the end each skipped
// test with its reason, which go test keeps to itself where a package passes.
// Its exit code is go test's.
//
//	testrun [-expected FILE] [go test's arguments]
//
// Each line of FILE is a regular expression for reasons that are as they should
// be, or for "package test: reason"; # begins a comment. With CI=true or KVGATE_REQUIRE set, a skip for any
// other reason makes the exit code 1 where it would be 0.
//
// If KVGATE_TALLY names a file, a line with three numbers is added to it: how
// many tests passed, failed and were skipped, subtests among them. A package that
// fails without a test that does, as one that is not built, counts as one.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/kvgate/kvgate/internal/testutil"
)

func main() {
	code, err := run(os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "testrun:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(args []string) (int, error) {
	var expected reasons
	if len(args) > 1 && args[0] == "-expected" {
		var err error
		if expected, err = readReasons(args[1]); err != nil {
			return 2, err
		}
		args = args[2:]
	}
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = os.Stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return 2, err
	}
	if err := cmd.Start(); err != nil {
		return 2, err
	}
	t := newTally(os.Stdout)
	readErr := t.read(events)
	err = cmd.Wait()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		return 2, err
	}
	unexpected := t.summary(expected)
	code := cmd.ProcessState.ExitCode()
	if path := os.Getenv("KVGATE_TALLY"); path != "" {
		f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
		if err != nil {
			return 2, err
		}
		_, err = fmt.Fprintln(f, t.passed, t.failed, len(t.skips))
		if err = errors.Join(err, f.Close()); err != nil {
			return 2, err
		}
	}
	if code == 0 && unexpected > 0 && testutil.Required() {
		return 1, fmt.Errorf("%d unexpected skips", unexpected)
	}
	return code, readErr
}
