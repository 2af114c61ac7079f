package main

import (
	"fmt"
	"io"
	"text/tabwriter"
	"time"
)

// head says what is measured with what.
func (s *summary) head(w io.Writer) {
	d := "GPU"
	if s.Device.Simulated {
		d = "simulated device: all figures are simulated"
	}
	fmt.Fprintf(w, "%s (%s", d, s.Device.Name)
	if s.Device.Driver != "" {
		fmt.Fprintf(w, ", CUDA %s", s.Device.Driver)
	}
	if s.Device.Slow > 1 {
		fmt.Fprintf(w, ", %g times as slow as its model", s.Device.Slow)
	}
	fmt.Fprintln(w, ")")
	for _, k := range s.NIC.Skipped {
		fmt.Fprintf(w, "nic: not %s: %s\n", k.Kind, k.Why)
	}
	fmt.Fprintf(w, "nic: %s: %s", s.NIC.Kind, s.NIC.What)
	if s.process != 0 {
		fmt.Fprintf(w, " (process %d)", s.process)
	}
	fmt.Fprintln(w)
	c := &s.Config
	fmt.Fprintf(w, "%d requests, prompts of %d blocks, answers of %d tokens; %d blocks of %d tokens, %d pages of %d bytes; steps of %v; %d rounds of %v in each mode\n\n",
		c.Requests, c.PromptBlocks, c.AnswerTokens, c.Blocks, c.BlockTokens, c.Segments, c.PageBytes,
		time.Duration(c.StepUS*1e3), c.Rounds, (s.o.time / durations(c.Rounds)).Round(time.Millisecond))
}

func durations(n int) time.Duration { return time.Duration(n) }

func (s *summary) table(out io.Writer) error {
	s.finish()
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "mode\tsteps/s\toverhead\tstep ms\thost\theld\thold ms\tload ms\tcrossings\tzeroed\tloaded\tcorrupted\tcorrupted\t")
	fmt.Fprintln(w, "\t\t%\tp50/p99\tblocked ms\tloads\tp50/p99\tp50/p99\ta step\tGB\tGB\tblocks\trequests\t")
	for _, r := range s.Modes {
		over := "-"
		if r.Overhead != nil {
			over = fmt.Sprintf("%.2f", *r.Overhead)
		}
		fmt.Fprintf(w, "%s\t%.1f\t%s\t%.2f/%.2f\t%.1f\t%d of %d\t%.2f/%.2f\t%.2f/%.2f\t%.1f+%.1f\t%.3f\t%.3f\t%d of %d\t%d of %d\t\n",
			r.Mode, r.StepsPerS, over, r.StepP50, r.StepP99, r.HostBlocked, r.HeldLoads, r.Loads, r.HoldP50, r.HoldP99, r.LoadP50, r.LoadP99,
			r.SubmitsPerStep, r.PollsPerStep, float64(r.ZeroedBytes)/1e9, float64(r.LoadedBytes)/1e9,
			r.CorruptedBlocks, r.Blocks, r.CorruptedRequests, r.Requests)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, "\ncrossings: submits and polls")
	return err
}

// line writes a mode's figures as a line of Go's benchmark format. Units of figures
// of a simulated device say so.
func (s *summary) line(out io.Writer, r *result, suffix string) error {
	label := ""
	if s.Device.Simulated {
		label = "simulated-"
	}
	text := fmt.Sprintf("BenchmarkLive/%s%s\t%d", r.Mode, suffix, max(r.Steps, 1))
	for _, m := range []struct {
		value float64
		unit  string
	}{
		{r.StepsPerS, label + "steps/s"}, {r.TokensPerS, label + "tokens/s"}, {r.StepP50, label + "step-p50-ms"},
		{r.StepP99, label + "step-p99-ms"}, {r.HostBlocked, label + "host-blocked-ms"}, {r.HoldP50, label + "hold-p50-ms"},
		{r.HoldP99, label + "hold-p99-ms"}, {r.LoadP50, label + "load-p50-ms"}, {r.LoadP99, label + "load-p99-ms"},
		{float64(r.Loads), "loads"}, {float64(r.HeldLoads), "held-loads"}, {float64(r.Blocks), "blocks"},
		{float64(r.CorruptedBlocks), "corrupted-blocks"},
	} {
		text += fmt.Sprintf("\t%.4g %s", m.value, m.unit)
	}
	if r.Overhead != nil {
		text += fmt.Sprintf("\t%.4g %soverhead-%%", *r.Overhead, label)
	}
	_, err := fmt.Fprintln(out, text)
	return err
}

// lines writes those of all rounds of each mode.
func (s *summary) lines(out io.Writer) error {
	s.finish()
	for i := range s.Modes {
		if s.Modes[i].Rounds > 0 {
			if err := s.line(out, &s.Modes[i], ""); err != nil {
				return err
			}
		}
	}
	return nil
}
