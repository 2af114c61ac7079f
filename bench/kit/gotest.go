package main

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// mark begins each line that package testing writes of its own accord under
// -test.v=test2json, so that what a test prints can't be taken for it. Source: go
// doc test2json.
const mark = '\x16'

// maxOutput is how much of a test's output is kept, in bytes.
const maxOutput = 2000

// Test is a test or subtest that did not pass.
type Test struct {
	Name   string `json:"name"`
	Output string `json:"output,omitempty"` // its end: the reason
}

// Row is a benchmark: its figures, or why there are none.
type Row struct {
	Name    string             `json:"name"`
	Metrics map[string]float64 `json:"metrics,omitempty"` // by unit
	Error   string             `json:"error,omitempty"`
}

// Result is what a program wrote: a test binary, or one that prints lines in Go's
// benchmark format.
type Result struct {
	Passed       int      `json:"passed,omitempty"` // subtests count, too
	Failed       []Test   `json:"failed,omitempty"`
	Skipped      []Test   `json:"skipped,omitempty"`
	Unfinished   []string `json:"unfinished,omitempty"` // begun, and not heard of again
	Rows         []Row    `json:"rows,omitempty"`
	Observations []string `json:"observations,omitempty"` // lines "observation: ..."
	// Panic is the first line of a panic or of the runtime's last words.
	Panic string `json:"panic,omitempty"`

	complete bool   // it came to its last line, PASS or FAIL
	device   string // the JSON behind "device: "
}

var logged = regexp.MustCompile(`^ *\S+\.go:\d+: (observation|device): (.*)$`)

// readResult reads the output of a program. It takes any text: what it can't make
// sense of is output of the tests. What stands before a line that is too long to be
// any is kept, with the error.
func readResult(r io.Reader) (*Result, error) {
	p := parser{result: &Result{}, running: map[string]*tail{}}
	lines := bufio.NewReaderSize(r, 1<<20)
	var err error
	for err == nil {
		var line []byte
		line, err = lines.ReadSlice('\n')
		if len(line) > 0 {
			p.line(bytes.TrimSuffix(line, []byte("\n")))
		}
		if errors.Is(err, bufio.ErrBufferFull) { // one line in pieces
			err = nil
		}
	}
	for _, name := range p.order {
		if p.running[name] == nil || p.result.complete {
			continue
		}
		// A benchmark's end is its row; of one with others below nothing tells.
		if strings.HasPrefix(name, "Benchmark") && (name != p.current || p.rows[name]) {
			continue
		}
		p.result.Unfinished = append(p.result.Unfinished, name)
	}
	// A benchmark fails with those below it: they say why.
	rows := p.result.Rows
	p.result.Rows = slices.DeleteFunc(rows, func(r Row) bool {
		return r.Error != "" && slices.ContainsFunc(rows, func(x Row) bool { return strings.HasPrefix(x.Name, r.Name+"/") })
	})
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return p.result, err
}

// tail is the end of a test's output.
type tail []byte

func (t *tail) add(line []byte) {
	*t = append(append(*t, line...), '\n')
	*t = (*t)[max(0, len(*t)-maxOutput):]
}

func (t *tail) String() string { return strings.ToValidUTF8(strings.TrimSpace(string(*t)), "?") }

type parser struct {
	result  *Result
	running map[string]*tail // nil where the test has ended
	rows    map[string]bool
	order   []string
	current string
}

func (p *parser) line(line []byte) {
	// A mark that follows other output ends a line that had no end.
	if i := bytes.IndexByte(line, mark); i > 0 {
		p.plain(line[:i])
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
			p.running[name] = new(tail)
			p.current = name
		case "CONT", "NAME":
			p.current = name
		}
		return
	}
	if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "--- "); ok {
		verdict, name, _ := strings.Cut(rest, ": ")
		if i := strings.LastIndex(name, " ("); i >= 0 {
			name = name[:i]
		}
		p.ended(verdict, name)
		return
	}
	p.end(line)
}

func (p *parser) ended(verdict, name string) {
	t, r := p.running[name], p.result
	if t == nil && verdict != "FAIL" {
		return // it was not begun
	}
	test := Test{Name: name}
	if t != nil {
		test.Output = t.String()
	}
	switch {
	case verdict == "PASS":
		r.Passed++
	case verdict == "FAIL" && strings.HasPrefix(name, "Benchmark"):
		r.Rows = append(r.Rows, Row{Name: name, Error: test.Output})
		r.Failed = append(r.Failed, test)
	case verdict == "FAIL":
		r.Failed = append(r.Failed, test)
	case verdict == "SKIP":
		r.Skipped = append(r.Skipped, test)
	default: // "BENCH": what a benchmark logged
		return
	}
	p.running[name] = nil
}

// end looks for the last line of a run.
func (p *parser) end(line string) bool {
	if line == "PASS" || line == "FAIL" {
		p.result.complete = true
		return true
	}
	return false
}

func (p *parser) plain(line []byte) {
	text := strings.ToValidUTF8(string(line), "?")
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
	if m := logged.FindStringSubmatch(text); m != nil {
		if m[1] == "device" {
			p.result.device = m[2]
		} else if len(p.result.Observations) < 5000 {
			p.result.Observations = append(p.result.Observations, m[2][:min(len(m[2]), maxOutput)])
		}
		return
	}
	if p.row(text) {
		return
	}
	if t := p.running[p.current]; t != nil {
		t.add(line)
	}
}

// row reads a line such as
//
//	BenchmarkX/sub-8   100   52 ns/op   0 allocs/op
func (p *parser) row(line string) bool {
	f := strings.Fields(line)
	if len(f) < 4 || len(f)%2 != 0 || !strings.HasPrefix(f[0], "Benchmark") {
		return false
	}
	if _, err := strconv.Atoi(f[1]); err != nil {
		return false
	}
	row := Row{Name: f[0], Metrics: map[string]float64{}}
	// Package testing adds the number of Ps to the name.
	if rest, ok := strings.CutPrefix(f[0], p.current+"-"); ok && p.current != "" {
		if _, err := strconv.Atoi(rest); err == nil {
			row.Name = p.current
		}
	}
	for pair := range slices.Chunk(f[2:], 2) {
		v, err := strconv.ParseFloat(pair[0], 64)
		if err != nil {
			return false
		}
		if !math.IsNaN(v) && !math.IsInf(v, 0) { // a rate of nothing; JSON knows no such numbers
			row.Metrics[pair[1]] = v
		}
	}
	if len(row.Metrics) == 0 {
		row.Metrics, row.Error = nil, "its figures are no numbers: "+line
	}
	if p.rows == nil {
		p.rows = map[string]bool{}
	}
	p.rows[row.Name] = true
	p.result.Rows = append(p.result.Rows, row)
	return true
}
