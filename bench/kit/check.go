package main

import (
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/kvgate/kvgate/bench/kit/internal/report"
)

// checkReport says whether a report is one of a run in which everything passed,
// of the device that was asked for.
func checkReport(args []string, out io.Writer) error {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	simulated := f.Bool("simulated", false, "")
	if err := parse(f, args, 1); err != nil {
		return err
	}
	text, err := os.ReadFile(f.Arg(0))
	if err != nil {
		return err
	}
	r, err := report.Read(text)
	if err != nil {
		return err
	}
	if err := complete(r, *simulated); err != nil {
		return fmt.Errorf("check: %s: %w", f.Arg(0), err)
	}
	fmt.Fprintf(out, "%s: %d parts, all passed\n", f.Arg(0), len(r.Parts))
	return nil
}

// complete says what a report lacks.
func complete(r *report.Report, simulated bool) error {
	if r.Simulated != simulated {
		return fmt.Errorf("the device was simulated: %t, want %t", r.Simulated, simulated)
	}
	names := []string{kitPart}
	for _, p := range parts {
		names = append(names, p.name)
	}
	for _, name := range names {
		p := r.Part(name)
		if p == nil {
			return fmt.Errorf("part %s is not in it", name)
		}
		if p.Status != report.PartPassed {
			return fmt.Errorf("part %s %s: %s", name, p.Status, p.Reason)
		}
	}
	if err := checkFigures(r); err != nil {
		return err
	}
	if r.Verdict != report.Passed || r.Device == nil || r.Started.IsZero() || r.Seconds <= 0 || r.Kit.Revision == "" ||
		r.Host.CPUs == 0 || r.Device.Name == "" || r.Device.Driver == "" || r.Device.Bandwidth == 0 {
		return fmt.Errorf("verdict, device, host, build or time are not in it: %+v", r)
	}
	return nil
}
