package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
)

// event is a line of go test -json: see cmd/test2json and go help buildjson.
type event struct {
	Action     string
	Package    string
	Test       string
	Output     string
	ImportPath string
}

type name struct{ pkg, test string }

// skip is a test that was skipped.
type skip struct {
	name
	said []string
}

// tally prints a run of go test as it goes, and keeps what was skipped.
type tally struct {
	out     io.Writer
	pending map[name][]string // output of tests that are not over, and of packages
	order   []name            // of pending
	skips   []skip
	passed  int
	failed  int             // tests, and packages that failed without one of their tests
	broken  map[string]bool // packages one of whose tests has failed
}

func newTally(out io.Writer) *tally {
	return &tally{out: out, pending: map[name][]string{}, broken: map[string]bool{}}
}

// read takes events to their end. A line that is none is printed.
func (t *tally) read(r io.Reader) error {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if !bytes.HasPrefix(line, []byte("{")) || json.Unmarshal(line, &e) != nil {
				fmt.Fprint(t.out, string(line))
			} else {
				t.take(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (t *tally) take(e event) {
	n := name{e.Package, e.Test}
	switch e.Action {
	case "build-output":
		fmt.Fprint(t.out, e.Output)
	case "output":
		if _, known := t.pending[n]; !known {
			t.order = append(t.order, n)
		}
		t.pending[n] = append(t.pending[n], e.Output)
	case "skip":
		if lines := t.end(n); e.Test != "" {
			t.skips = append(t.skips, skip{n, said(lines)})
		} else {
			t.print(lines) // no test files
		}
	case "pass", "fail":
		switch {
		case e.Test == "" && e.Action == "fail":
			// What was not over when the package failed belongs to the failure:
			// a panic, a deadline, a race.
			for _, x := range slices.Clone(t.order) {
				if x.pkg == e.Package && x.test != "" {
					t.print(t.end(x))
				}
			}
			t.print(t.end(n))
			if !t.broken[e.Package] {
				t.failed++
			}
		case e.Test == "":
			t.print(t.end(n))
		case e.Action == "fail":
			t.print(t.end(n))
			t.failed++
			t.broken[e.Package] = true
		default:
			t.end(n)
			t.passed++
		}
	}
}

// end takes out what is pending of a test or package.
func (t *tally) end(n name) []string {
	lines := t.pending[n]
	delete(t.pending, n)
	t.order = slices.DeleteFunc(t.order, func(x name) bool { return x == n })
	return lines
}

// framing is what go test prints of a test's course under -v alone. A package
// that passes says so twice.
var framing = regexp.MustCompile(`^(=== (RUN|PAUSE|CONT|NAME) |PASS$)`)

func (t *tally) print(lines []string) {
	for _, l := range lines {
		if !framing.MatchString(strings.TrimRight(l, "\n")) {
			fmt.Fprint(t.out, l)
		}
	}
}

var logged = regexp.MustCompile(`^\s+\S+\.go:\d+: `)

// said returns what a skipped test has logged, one line for each entry. The
// reason is the last of them, unless something deferred has logged behind it.
func said(lines []string) (entries []string) {
	for _, l := range lines {
		switch {
		case logged.MatchString(l):
			entries = append(entries, strings.TrimSpace(logged.ReplaceAllString(l, "")))
		case entries != nil && strings.HasPrefix(l, "        "):
			entries[len(entries)-1] += " " + strings.TrimSpace(l)
		}
	}
	if entries == nil {
		return []string{"no reason given"}
	}
	return entries
}

// reasons are expressions for skips that are expected.
type reasons []*regexp.Regexp

func readReasons(path string) (reasons, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var rs reasons
	for i, l := range strings.Split(string(text), "\n") {
		l, _, _ = strings.Cut(l, "#")
		if l = strings.TrimSpace(l); l == "" {
			continue
		}
		r, err := regexp.Compile(l)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", path, i+1, err)
		}
		rs = append(rs, r)
	}
	return rs, nil
}

// find returns which of the entries is the reason of a skip, and whether it is
// expected. An expression may also name the test: "package test: reason".
func (rs reasons) find(s skip) (reason string, expected bool) {
	for _, e := range slices.Backward(s.said) {
		named := short(s.pkg) + " " + s.test + ": " + e
		if slices.ContainsFunc(rs, func(r *regexp.Regexp) bool { return r.MatchString(e) || r.MatchString(named) }) {
			return e, true
		}
	}
	return s.said[len(s.said)-1], false
}

// listed is how many tests the summary names for each reason.
const listed = 12

// summary prints the skips by reason and returns how many are not expected.
func (t *tally) summary(expected reasons) (unexpected int) {
	if len(t.skips) == 0 {
		return 0
	}
	byReason := map[string][]string{}
	var order []string
	for _, s := range t.skips {
		reason, ok := expected.find(s)
		if !ok {
			unexpected++
			reason = "unexpected: " + reason
		}
		if byReason[reason] == nil {
			order = append(order, reason)
		}
		byReason[reason] = append(byReason[reason], short(s.pkg)+" "+s.test)
	}
	slices.Sort(order)
	fmt.Fprintf(t.out, "\n%d skipped:\n", len(t.skips))
	for _, r := range order {
		fmt.Fprintf(t.out, "  %s\n", r)
		tests := byReason[r]
		for _, test := range tests[:min(listed, len(tests))] {
			fmt.Fprintf(t.out, "      %s\n", test)
		}
		if more := len(tests) - listed; more > 0 {
			fmt.Fprintf(t.out, "      and %d more\n", more)
		}
	}
	return unexpected
}

const module = "github.com/kvgate/kvgate/"

func short(pkg string) string { return strings.TrimPrefix(pkg, module) }
