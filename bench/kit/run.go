package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/kit/internal/pack"
	"github.com/kvgate/kvgate/bench/kit/internal/report"
	"github.com/kvgate/kvgate/clock"
)

const runUsage = `usage: run.sh [-out folder] [-simulated]
Runs all parts of the kit and writes report.json, report.txt and logs into the
folder. -simulated takes a simulated libcuda for a GPU, for rehearsals.
`

// kit is one run.
type kit struct {
	dir       string // of the kit
	out       string // of the report
	simulated bool   // a simulated device will do
	rehearsed bool   // and it is one
	parts     []part
	manifest  *pack.Manifest
	clk       clock.Clock
	says      io.Writer
	env       []string
	state     func() *report.GPUState
}

func runKit(ctx context.Context, args []string, out, errs io.Writer) (int, error) {
	f := flag.NewFlagSet("run", flag.ContinueOnError)
	dest := f.String("out", "", "")
	simulated := f.Bool("simulated", false, "")
	if err := parse(f, args, 0); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(out, runUsage)
		}
		return 0, err
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	k := &kit{dir: filepath.Dir(filepath.Dir(exe)), simulated: *simulated, parts: parts,
		clk: clock.Wall(), says: out, env: cleanEnv(os.Environ())}
	if k.out, err = resultFolder(k.dir, *dest); err != nil {
		return 0, err
	}
	gpu := &smi{clk: k.clk, out: k.out, env: k.env}
	k.state = func() *report.GPUState { return gpu.ask(ctx) }
	r := k.run(ctx)
	if err := write(r, k.out); err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "\n%s: %s\n", r.Verdict, filepath.Join(k.out, "report.txt"))
	return r.Verdict.ExitCode(), nil
}

// resultFolder makes the folder that the report goes to. One that holds a
// report is not written to.
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

// cleanEnv is the environment of the parts: this process's without settings
// that would make a part something else than it says. The simulated library's
// own stay, and where NIXL is.
func cleanEnv(env []string) (kept []string) {
	for _, e := range env {
		if !strings.HasPrefix(e, "KVGATE_") || strings.HasPrefix(e, "KVGATE_SOFT_") || strings.HasPrefix(e, "KVGATE_NIXL_LIB=") {
			kept = append(kept, e)
		}
	}
	return kept
}

func (k *kit) run(ctx context.Context) *report.Report {
	r := &report.Report{Format: report.Format, Started: date(), Kit: build(), Host: host()}
	start := k.clk.Now()
	r.Parts = append(r.Parts, k.verify(r))
	why := "" // not to run what needs a driver
	for _, p := range k.parts {
		var result report.Part
		switch {
		case ctx.Err() != nil:
			result = notRun(p, "interrupted")
		case why != "":
			result = notRun(p, why)
		default:
			fmt.Fprintf(k.says, "%-13s ", p.name)
			result = k.runPart(ctx, p)
			if p.name == probePart {
				r.Device, why = k.device(&result)
				k.rehearsed = r.Device != nil && r.Device.Simulated
				r.Simulated = k.rehearsed
			}
			fmt.Fprintf(k.says, "%-9s %6.1f s  %s\n", result.Status, result.Seconds, result.Reason)
		}
		r.Parts = append(r.Parts, result)
	}
	if why != "" {
		fmt.Fprintf(k.says, "the other parts are not run: %s\n", why)
	}
	r.Seconds = (k.clk.Now() - start).Seconds()
	r.Judge()
	return r
}

func notRun(p part, why string) report.Part {
	return report.Part{Name: p.name, What: p.what, Status: report.PartNotRun, Reason: why, Limit: p.limit.Seconds()}
}

// verify is the part that looks at the kit itself.
func (k *kit) verify(r *report.Report) report.Part {
	p := report.Part{Name: kitPart, What: "the kit's files are as they were packed", Status: report.PartPassed}
	start := k.clk.Now()
	m, err := pack.Read(k.dir)
	if err == nil {
		r.Kit.Glibc = m.Glibc
		err = m.Verify(k.dir)
	} else {
		m = &pack.Manifest{}
	}
	k.manifest = m
	if err != nil {
		p.Status, p.Reason = report.PartFailed, err.Error()
	}
	p.Seconds = (k.clk.Now() - start).Seconds()
	return p
}

// device makes out what the probe found, or why there is nothing to go on with.
func (k *kit) device(p *report.Part) (*report.Device, string) {
	var found probed
	err := json.Unmarshal(p.Data, &found)
	switch {
	case err != nil && p.Status == report.PartPassed: // runPart has looked at the JSON
		p.Status, p.Reason = report.PartFailed, err.Error()
		fallthrough
	case err != nil:
		return nil, "the probe of the driver " + string(p.Status) + ": " + p.Reason
	case found.Device == nil && found.Reason == "" && p.Status == report.PartPassed:
		p.Status, p.Reason = report.PartFailed, "the probe of the driver tells of no device, and of no reason"
		return nil, p.Reason
	case found.Device == nil && found.Reason != "":
		p.Status, p.Reason = report.PartFailed, "no usable driver: "+found.Reason
		return nil, p.Reason
	case p.Status != report.PartPassed:
		return nil, "the probe of the driver " + string(p.Status) + ": " + p.Reason
	case found.Device.Simulated && !k.simulated:
		p.Status, p.Reason = report.PartFailed,
			"no usable driver: "+found.Device.Library+" is a simulated device (-simulated takes it for a GPU)"
		return nil, p.Reason
	}
	return found.Device, ""
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

// write writes the report in both forms.
func write(r *report.Report, dir string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "report.json"), append(text, '\n'), 0o666),
		os.WriteFile(filepath.Join(dir, "report.txt"), []byte(r.Text()), 0o666))
}
