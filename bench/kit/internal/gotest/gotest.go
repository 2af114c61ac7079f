// Package gotest reads what a Go test binary writes with -test.v=test2json, so
// that its results can be told where there is no Go.
package gotest

import (
	"bufio"
	"bytes"
	"io"
	"strconv"
	"strings"
	"time"
)

// mark begins each line that package testing writes of its own accord, so that
// what a test prints can't be taken for it. Source: go doc test2json, and
// package testing, which writes it under -test.v=test2json.
const mark = '\x16'

// Test is one test or subtest.
type Test struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
	// Output is the end of what a test wrote that did not pass: the reason of
	// a skip, the message of a failure.
	Output string `json:"output,omitempty"`
}

// Benchmark is one line of results.
type Benchmark struct {
	Name string `json:"name"`
	N    int    `json:"n"`
	// Metrics are by unit: "ns/op", "GB/s", ...
	Metrics map[string]float64 `json:"metrics"`
}

// Result is what a run of a test binary came to.
type Result struct {
	Passed     int         `json:"passed"` // subtests count, too
	Failed     []Test      `json:"failed,omitempty"`
	Skipped    []Test      `json:"skipped,omitempty"`
	Unfinished []string    `json:"unfinished,omitempty"` // begun, and not heard of again
	Benchmarks []Benchmark `json:"benchmarks,omitempty"`
	// Panic is the first line of a panic or of the runtime's last words.
	Panic string `json:"panic,omitempty"`
	// Complete: the binary came to its last line, PASS or FAIL.
	Complete bool `json:"complete"`
}

// maxOutput is how much of a test's output is kept, in bytes.
const maxOutput = 2000

// Read reads the output of one run. It takes any text: what it can't make sense
// of is output of the tests. The error is the reader's.
func Read(r io.Reader) (*Result, error) {
	p := parser{result: &Result{}, running: map[string]*tail{}}
	lines := bufio.NewReader(r)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.line(bytes.TrimSuffix(line, []byte("\n")))
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range p.order {
		// Nothing tells that a benchmark has ended but what comes behind it.
		if p.running[name] != nil && !(p.result.Complete && strings.HasPrefix(name, "Benchmark")) {
			p.result.Unfinished = append(p.result.Unfinished, name)
		}
	}
	return p.result, nil
}

// tail is the end of a test's output.
type tail struct{ lines [][]byte }

func (t *tail) add(line []byte) {
	t.lines = append(t.lines, bytes.Clone(line[:min(len(line), maxOutput)]))
	size := 0
	for i := len(t.lines) - 1; i >= 0; i-- {
		if size += len(t.lines[i]) + 1; size > maxOutput && i < len(t.lines)-1 {
			t.lines = t.lines[i+1:]
			break
		}
	}
}

func (t *tail) String() string { return strings.TrimSpace(string(bytes.Join(t.lines, []byte("\n")))) }

type parser struct {
	result  *Result
	running map[string]*tail // nil where the test has ended
	order   []string
	current string
}

func (p *parser) line(line []byte) {
	// A mark that follows other output ends a line that had no end.
	if i := bytes.IndexByte(line, mark); i > 0 {
		p.line(line[:i])
		line = line[i:]
	}
	if len(line) > 0 && line[0] == mark {
		p.marked(string(line[1:]))
		return
	}
	p.plain(line)
}

func (p *parser) marked(line string) {
	if rest, ok := strings.CutPrefix(line, "=== "); ok {
		verb, name, _ := strings.Cut(rest, " ")
		name = strings.TrimSpace(name)
		switch verb {
		case "RUN":
			if _, known := p.running[name]; !known {
				p.order = append(p.order, name)
			}
			p.running[name] = &tail{}
			p.current = name
		case "CONT", "NAME":
			p.current = name
		}
		return
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "--- "); ok {
		verdict, rest, _ := strings.Cut(rest, ": ")
		p.ended(verdict, rest)
		return
	}
	p.end(line)
}

// ended books a line such as "TestX/sub (0.01s)".
func (p *parser) ended(verdict, rest string) {
	name, took := rest, 0.0
	if i := strings.LastIndex(rest, " ("); i >= 0 {
		name = rest[:i]
		if d, err := time.ParseDuration(strings.TrimSuffix(rest[i+2:], ")")); err == nil {
			took = d.Seconds()
		}
	}
	test := Test{Name: name, Seconds: took}
	t := p.running[name]
	if t != nil {
		test.Output = t.String()
	} else if verdict != "FAIL" {
		return // it was not begun
	}
	switch verdict {
	case "PASS":
		p.result.Passed++
	case "FAIL":
		p.result.Failed = append(p.result.Failed, test)
	case "SKIP":
		p.result.Skipped = append(p.result.Skipped, test)
	default: // "BENCH": what a benchmark logged
		return
	}
	p.running[name] = nil
}

// end looks for the last line of a run.
func (p *parser) end(line string) bool {
	if line == "PASS" || line == "FAIL" {
		p.result.Complete = true
		return true
	}
	return false
}

func (p *parser) plain(line []byte) {
	text := string(line)
	if p.end(text) {
		return
	}
	if p.result.Panic == "" {
		for _, s := range []string{"panic: ", "fatal error: ", "SIGQUIT: ", "SIGSEGV: "} {
			if strings.HasPrefix(text, s) {
				p.result.Panic = text[:min(len(text), maxOutput)]
			}
		}
	}
	if b, ok := benchmark(text); ok {
		p.result.Benchmarks = append(p.result.Benchmarks, b)
		return
	}
	if t := p.running[p.current]; t != nil {
		t.add(line)
	}
}

// benchmark reads a line such as
//
//	BenchmarkX/sub-8   100   52 ns/op   0 allocs/op
func benchmark(line string) (Benchmark, bool) {
	f := strings.Fields(line)
	if len(f) < 4 || len(f)%2 != 0 || !strings.HasPrefix(f[0], "Benchmark") {
		return Benchmark{}, false
	}
	n, err := strconv.Atoi(f[1])
	if err != nil {
		return Benchmark{}, false
	}
	b := Benchmark{Name: f[0], N: n, Metrics: map[string]float64{}}
	for i := 2; i < len(f); i += 2 {
		v, err := strconv.ParseFloat(f[i], 64)
		if err != nil {
			return Benchmark{}, false
		}
		b.Metrics[f[i+1]] = v
	}
	return b, true
}

// TimedOut reports that the binary ended itself at its -test.timeout.
func (r *Result) TimedOut() bool { return strings.HasPrefix(r.Panic, "panic: test timed out") }
