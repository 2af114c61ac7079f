package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

// revision and modified are set by the linker (see scripts/gpu-kit.sh): Go's own
// stamp is there in some builds only.
var revision, modified = "unknown", "true"

const (
	maxText = 64 << 10
	maxTail = 4000
	// ownTimeout is how long before a part's limit a test binary ends itself, and
	// thereby says which test it was in.
	ownTimeout = 3 * time.Second
)

// kit is one run.
type kit struct {
	dir       string // of the kit
	out       string // of the report
	parts     []part
	chosen    bool
	simulated bool    // a simulated device will do
	limits    float64 // of the parts, times this; 0: 1, or what a simulated device needs
	clk       clock.Clock
	says      io.Writer
	env       []string

	logs     string
	rehearse bool // the device is a simulated one
	deadline time.Duration
}

// cleanEnv is the environment of the parts: this process's without settings that
// would make a part something else than it says. The simulated library's own stay,
// and where NIXL is.
func cleanEnv(env []string) (kept []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, "KVGATE_") || strings.HasPrefix(e, "KVGATE_SOFT_") || strings.HasPrefix(e, "KVGATE_NIXL_LIB=") {
			kept = append(kept, e)
		}
	}
	return append(kept, environment...)
}

// resultFolder makes the folder that the report goes to. One that holds a report is
// not written to.
func resultFolder(dir, dest string) (string, error) {
	if dest != "" {
		if _, err := os.Stat(filepath.Join(dest, "report.json")); err == nil {
			return "", usageError{fmt.Errorf("%s holds a report already", dest)}
		}
		dest, err := filepath.Abs(dest)
		if err == nil {
			err = os.MkdirAll(dest, 0o777)
		}
		return dest, err
	}
	for i := 1; ; i++ {
		dest := filepath.Join(dir, fmt.Sprintf("result-%d", i))
		if err := os.Mkdir(dest, 0o777); err == nil || !errors.Is(err, os.ErrExist) {
			return dest, err
		}
	}
}

// run runs the parts and keeps the report in the folder up to date. The error is of
// the last writing alone.
func (k *kit) run(ctx context.Context) (*Report, error) {
	r := &Report{Format: format, Verdict: running, Chosen: k.chosen, Started: date(), Host: host(),
		Kit: Build{Revision: revision, Modified: modified != "false", Go: runtime.Version(), Target: runtime.GOOS + "/" + runtime.GOARCH}}
	for _, p := range k.parts {
		r.Parts = append(r.Parts, Part{Name: p.name, What: p.what, Status: notRun, Reason: "the run ended before", Limit: p.limit.Seconds()})
	}
	k.logs = filepath.Join(k.out, "parts")
	if err := os.MkdirAll(k.logs, 0o777); err != nil {
		return r, err
	}
	start := k.clk.Now()
	k.deadline = start + k.scaled(mostTime-lastTime)
	var err error
	write := func() {
		r.Seconds = (k.clk.Now() - start).Seconds()
		err = r.write(k.out, k.logs)
	}
	smi := startSampler(k.clk, k.env)
	held := startHolder(k.clk, k.dir, k.logs, k.env, 2*k.scaled(mostTime))
	why := "" // not to run what needs a driver
	for i, p := range k.parts {
		to := &r.Parts[i]
		switch {
		case ctx.Err() != nil:
			to.Reason = "interrupted"
		case why != "":
			to.Reason = why
		case k.clk.Now() >= k.deadline:
			to.Reason = "no time was left"
		default:
			to.Status, to.Reason = running, ""
			write()
			smi.take()
			k.runPart(ctx, p, to)
			if p.name != kitPart {
				to.Clocks = smi.take()
			}
			if p.name == probePart {
				r.Device, why = k.device(to)
				if r.Device == nil && strings.Contains(why, "CUDA_ERROR_DEVICE_UNAVAILABLE") {
					// Perhaps it takes one process at a time.
					held.end()
					r.Notes, held = append(r.Notes, "no context is held: beside one the device was not available"), nil
					k.runPart(ctx, p, to)
					r.Device, why = k.device(to)
				}
				k.rehearse = r.Device != nil && r.Device.Simulated
				r.Simulated = k.rehearse
				if k.rehearse && k.limits == 0 {
					k.deadline = start + k.scaled(mostTime-lastTime)
				}
			}
			if p.name == probePart && why == "" {
				smi.ready(k.scaled(firstAnswer) - (k.clk.Now() - start)) // what is measured next has its clocks
			}
			r.GPU = smi.steadyValues()
			fmt.Fprintf(k.says, "%-12s %-9s %6.1f s  %s\n", to.Name, to.Status, to.Seconds, to.Reason)
			write()
		}
	}
	if why != "" {
		fmt.Fprintf(k.says, "the other parts are not run: %s\n", why)
	}
	if held != nil {
		if note := held.end(); note != "" {
			r.Notes = append(r.Notes, note)
		}
	}
	smi.stop()
	r.judge()
	if write(); err == nil { // all of it is in the archive
		err = os.RemoveAll(k.logs)
	}
	return r, err
}

// scaled is a limit as it is in this run.
func (k *kit) scaled(limit time.Duration) time.Duration {
	switch {
	case k.limits > 0:
		return time.Duration(float64(limit) * k.limits)
	case k.rehearse:
		return limit * simulatedLimit
	}
	return limit
}

// runPart runs one part and makes out what became of it.
func (k *kit) runPart(ctx context.Context, p part, to *Part) {
	limit := k.scaled(p.limit)
	if p.name == kitPart || p.name == probePart {
		limit = max(limit, p.limit) // without them there is nothing to rehearse
	}
	limit = min(limit, max(k.deadline-k.clk.Now(), time.Second))
	to.Limit = limit.Seconds()
	c := command{path: filepath.Join(k.dir, "bin", p.program), args: slices.Clone(p.args), env: k.env, dir: filepath.Join(k.dir, p.dir),
		log: filepath.Join(k.logs, p.name+".log"), limit: limit}
	if p.name == kitPart {
		c.path = p.program // the system's
	}
	if !p.plain {
		c.args = append(c.args, "-test.v=test2json", "-test.timeout="+max(limit-ownTimeout, limit/2).String())
	}
	if k.rehearse {
		c.args = append(c.args, p.simulated...)
		if p.slow != 0 && !slices.ContainsFunc(k.env, func(e string) bool { return strings.HasPrefix(e, "KVGATE_SOFT_SLOW=") }) {
			c.env = append(slices.Clone(c.env), fmt.Sprintf("KVGATE_SOFT_SLOW=%d", p.slow))
		}
	}
	to.Reason = ""
	o := execute(ctx, k.clk, c)
	to.Seconds, to.Status = o.took.Seconds(), passed
	fail := func(why string) {
		if to.Status == passed {
			to.Status = failed
		}
		if to.Reason != "" {
			why = to.Reason + "; " + why
		}
		to.Reason = why
	}
	switch {
	case !o.started:
		to.Status, to.Reason = notRun, o.reason
		return
	case o.late:
		to.Status, to.Reason = late, o.reason
	case o.reason != "":
		fail(o.reason)
	}
	log, err := os.ReadFile(c.log)
	if err != nil {
		fail("its log: " + err.Error())
	}
	result, err := readResult(bytes.NewReader(log))
	if err != nil {
		fail(err.Error())
	}
	to.Result = *result
	figures := 0
	for _, row := range result.Rows {
		if row.Error == "" {
			figures++
		}
	}
	for _, x := range []struct {
		is  bool
		why string
	}{
		{len(result.Failed) > 0, fmt.Sprintf("%d tests failed", len(result.Failed))},
		{result.Panic != "", result.Panic},
		{len(result.Unfinished) > 0, fmt.Sprintf("%d tests did not end", len(result.Unfinished))},
		{!p.plain && !result.complete && to.Status == passed, "it did not come to its end"},
		{result.Passed < p.least, fmt.Sprintf("%d tests passed, at least %d have to", result.Passed, p.least)},
		{figures < p.rows, fmt.Sprintf("%d figures, at least %d there have to be", figures, p.rows)},
	} {
		if x.is {
			fail(x.why)
		}
	}
	if to.Status == failed && strings.HasPrefix(result.Panic, "panic: test timed out") {
		to.Status = late
	}
	if p.plain {
		to.Text = end(log, maxText)
	} else if to.Status != passed {
		to.Text = end(log, maxTail)
	}
}

// device makes out what the probe found, or why there is nothing to go on with.
func (k *kit) device(p *Part) (*Device, string) {
	var d Device
	err := json.Unmarshal([]byte(p.device), &d)
	if err != nil {
		why := fmt.Sprintf("the probe of the driver %s: %s", p.Status, p.Reason)
		for _, f := range p.Failed {
			why = "no usable driver: " + f.Output
			for line := range strings.Lines(f.Output) {
				if strings.Contains(line, "cuda/driver: ") { // in its frame there are more
					why = "no usable driver: " + strings.TrimSpace(line)
					break
				}
			}
		}
		if p.Status == passed {
			p.Status, p.Reason = failed, "the probe tells of no device"
			why = p.Reason
		}
		return nil, why
	}
	if d.Simulated && !k.simulated {
		p.Status, p.Reason = failed, "no usable driver: "+d.Library+" is a simulated device (-simulated takes it for a GPU)"
		return nil, p.Reason
	}
	return &d, ""
}

// host says what machine this is. What can't be told stays empty.
func host() Host {
	h := Host{CPUs: runtime.NumCPU()}
	var u unix.Utsname
	if unix.Uname(&u) == nil {
		h.Kernel = string(bytes.TrimRight(u.Release[:], "\x00"))
	}
	if text, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		h.CPU = field(string(text), "model name")
	}
	if text, err := os.ReadFile("/proc/meminfo"); err == nil {
		kib, _ := strconv.Atoi(strings.TrimSuffix(field(string(text), "MemTotal"), " kB"))
		h.MemoryMiB = kib >> 10
	}
	return h
}

// field returns the value of the first line "name : value".
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if k, v, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(k) == name {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

// date is when this was called, for people: waits and measurements go by a
// clock.Clock.
func date() time.Time {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &t); err != nil {
		return time.Time{}
	}
	return time.Unix(t.Unix()).UTC()
}

// end returns the end of a text, as valid UTF-8 without the marks of a test binary.
func end(text []byte, n int) string {
	text = text[max(0, len(text)-n):]
	return strings.ReplaceAll(strings.ToValidUTF8(string(text), "?"), string(mark), "")
}
