package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/kvgate/kvgate/bench/kit/internal/gotest"
	"github.com/kvgate/kvgate/bench/kit/internal/proc"
	"github.com/kvgate/kvgate/bench/kit/internal/report"
)

const (
	maxData = 4 << 20 // bytes of JSON of one part
	maxText = 64 << 10
	maxTail = 4000
	// ownTimeout is how long before a part's limit a test binary ends itself,
	// and thereby says which test it was in.
	ownTimeout = 3 * time.Second
	// rehearsalLimit is how many times as long a part may take beside a
	// simulated device, which shares the CPUs with it and with others.
	rehearsalLimit = 4
)

// runPart runs one part and makes out what became of it.
func (k *kit) runPart(ctx context.Context, p part) report.Part {
	limit := p.limit
	if k.rehearsed {
		limit *= rehearsalLimit
	}
	r := report.Part{Name: p.name, What: p.what, Limit: limit.Seconds(), Log: p.name + ".log"}
	args, env, notes := p.optional.use(k.dir, k.manifest)
	r.Notes = notes
	data := filepath.Join(k.out, p.name+".json")
	c := proc.Command{
		Path:  filepath.Join(k.dir, "bin", p.program),
		Args:  slices.Concat(p.args, args),
		Env:   slices.Concat(k.env, p.env, env),
		Dir:   k.out,
		Log:   filepath.Join(k.out, r.Log),
		Limit: limit,
	}
	switch p.kind {
	case figures:
		c.Args = append(c.Args, "-json", data)
		_ = os.Remove(data) // what an earlier run left is not this one's
	case printed:
		c.Out = data
	default:
		c.Args = append(c.Args, "-test.v=test2json", "-test.timeout="+max(time.Second, limit-ownTimeout).String())
	}
	if k.rehearsed {
		c.Args = append(c.Args, p.simulated...)
		if p.slow != 0 {
			c.Env = append(c.Env, fmt.Sprintf("KVGATE_SOFT_SLOW=%d", p.slow))
		}
	}
	if p.clocks {
		r.Before = k.state()
	}
	o := proc.Run(ctx, k.clk, c)
	if p.clocks {
		r.After = k.state()
	}
	r.Seconds = o.Took.Seconds()
	r.Status = report.PartPassed
	if !o.OK() {
		r.Status, r.Reason = report.PartFailed, o.Reason
	}
	switch o.Ending {
	case proc.TimedOut:
		r.Status = report.PartTimedOut
	case proc.NotStarted:
		r.Status = report.PartNotRun
		return r
	}
	log, err := os.ReadFile(c.Log)
	if err != nil {
		fail(&r, "its log: "+err.Error())
	}
	switch p.kind {
	case figures, printed:
		takeFigures(&r, data, log)
	default:
		takeTests(&r, p, log)
	}
	if p.name == livePart && r.Data != nil {
		r.Text = liveText(r.Data)
	}
	if r.Status != report.PartPassed {
		r.Tail = end(log, maxTail)
	}
	return r
}

// fail adds a reason why a part did not pass. That it timed out stays.
func fail(r *report.Part, why string) {
	if r.Status == report.PartPassed {
		r.Status = report.PartFailed
	}
	if r.Reason != "" {
		why = r.Reason + "; " + why
	}
	r.Reason = why
}

// takeFigures takes the JSON that a part has written, if it is some.
func takeFigures(r *report.Part, path string, log []byte) {
	r.Text = end(log, maxText)
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		if r.Status == report.PartPassed { // else it never came to that
			fail(r, "it wrote no figures")
		}
		return
	}
	if err != nil {
		fail(r, err.Error())
		return
	}
	defer f.Close()
	i, err := f.Stat()
	if err != nil || !i.Mode().IsRegular() || i.Size() > maxData {
		fail(r, fmt.Sprintf("its figures are no file of at most %d bytes", maxData))
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		fail(r, err.Error())
		return
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		if r.Status == report.PartPassed || len(text) > 0 { // else it never came to that
			fail(r, "its figures are broken: "+err.Error())
		}
		return
	}
	r.Data = bytes.TrimSpace(text)
}

// takeTests makes out what the tests came to.
func takeTests(r *report.Part, p part, log []byte) {
	t, err := gotest.Read(bytes.NewReader(log))
	if err != nil {
		fail(r, err.Error())
		return
	}
	r.Tests = t
	for _, c := range []struct {
		is  bool
		why string
	}{
		{len(t.Failed) > 0, fmt.Sprintf("%d tests failed", len(t.Failed))},
		{t.Panic != "", t.Panic},
		{len(t.Unfinished) > 0, fmt.Sprintf("%d tests did not end", len(t.Unfinished))},
		{!t.Complete && r.Status == report.PartPassed, "it did not come to its end"},
		{t.Passed < p.least, fmt.Sprintf("%d tests passed, at least %d have to", t.Passed, p.least)},
		{p.kind == benchmarks && len(t.Benchmarks) == 0, "no benchmark ran"},
	} {
		if c.is {
			fail(r, c.why)
		}
	}
	if r.Status == report.PartFailed && t.TimedOut() {
		r.Status = report.PartTimedOut
	}
}

// end returns the end of a text, as valid UTF-8.
func end(text []byte, n int) string {
	if len(text) > n {
		text = text[len(text)-n:]
		for len(text) > 0 && !utf8.RuneStart(text[0]) {
			text = text[1:]
		}
	}
	return string(bytes.ToValidUTF8(text, []byte("?")))
}
