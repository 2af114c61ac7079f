package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/memory/layout"
)

// column is a column of the table: a metric, or two beside each other.
type column struct {
	head    [2]string
	format  string
	scale   float64
	metrics []string
}

// counts is the format of a mean of counts.
const counts = "count"

// format writes a value; a count that is large is a whole number.
func format(f string, v float64) string {
	switch {
	case f != counts:
		return fmt.Sprintf(f, v)
	case v >= 1000:
		return fmt.Sprintf("%.0f", v)
	}
	return fmt.Sprintf("%.4g", v)
}

var columns = []column{
	{[2]string{"tokens/s", ""}, "%.0f", 1, []string{"tokens_per_s"}},
	{[2]string{"overhead", "%"}, "%.2f", 100, []string{"overhead_vs_ungated"}},
	{[2]string{"TTFT ms", "p50/p99"}, "%.1f", 1, []string{"ttft_ms_p50", "ttft_ms_p99"}},
	{[2]string{"step ms", "p50/p99"}, "%.2f", 1, []string{"step_ms_p50", "step_ms_p99"}},
	{[2]string{"host", "blocked ms"}, "%.1f", 1, []string{"host_blocked_ms"}},
	{[2]string{"gate", "idle ms"}, "%.2f", 1, []string{"gate_idle_ms"}},
	{[2]string{"held", "%"}, "%.1f", 100, []string{"held_share"}},
	{[2]string{"hold ms", "p50/p99"}, "%.1f", 1, []string{"hold_ms_p50", "hold_ms_p99"}},
	{[2]string{"zeroed", "GB"}, "%.1f", 1e-9, []string{"zeroed_bytes"}},
	{[2]string{"loaded", "GB"}, "%.1f", 1e-9, []string{"loaded_bytes"}},
	{[2]string{"corrupted", "blocks"}, counts, 1, []string{"corrupted_blocks"}},
	{[2]string{"corrupted", "requests"}, counts, 1, []string{"corrupted_requests"}},
}

func (s *summary) writeTable(w io.Writer) error {
	var b strings.Builder
	s.writeHead(&b)
	rows := [][]string{{"mode"}, {""}}
	for _, c := range columns {
		rows[0], rows[1] = append(rows[0], c.head[0]), append(rows[1], c.head[1])
	}
	for i := range s.modes {
		row := []string{s.modes[i].mode}
		for _, c := range columns {
			row = append(row, s.cell(&s.modes[i], &c))
		}
		rows = append(rows, row)
	}
	align(&b, rows)
	s.writeFoot(&b)
	_, err := io.WriteString(w, b.String())
	return err
}

// align writes rows in columns: the first to the left, the others to the right.
func align(w io.Writer, rows [][]string) {
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r {
			widths[i] = max(widths[i], utf8.RuneCountInString(c))
		}
	}
	for _, r := range rows {
		line := r[0] + strings.Repeat(" ", widths[0]-len(r[0]))
		for i, c := range r[1:] {
			line += strings.Repeat(" ", 2+widths[i+1]-utf8.RuneCountInString(c)) + c
		}
		fmt.Fprintln(w, strings.TrimRight(line, " "))
	}
}

func (s *summary) cell(m *modeSummary, c *column) string {
	var parts []string
	for _, name := range c.metrics {
		v := m.value(name)
		text := format(c.format, v.mean*c.scale)
		if s.seeds > 1 && v.ci > 0 {
			text += "±" + format(c.format, v.ci*c.scale)
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "/")
}

func (s *summary) writeHead(w io.Writer) {
	j := s.job
	c := j.seeded(0)
	zero := "zeroing is needed: "
	switch {
	case !j.plan.NeedsZeroing && j.config.Zero:
		zero = "zeroing is not needed, but was asked for: "
	case !j.plan.NeedsZeroing:
		zero = "zeroing is not needed, and nothing is zeroed: "
	}
	fmt.Fprintf(w, "simulated device, fabric and host; virtual time; %s\n", s.seedText())
	fmt.Fprintf(w, "model: %s, %d layers, blocks of %d tokens and %d bytes, %d in the pool\n",
		j.model.Name, len(j.model.Layers), j.plan.BlockTokens, j.plan.BlockBytes, s.blocks)
	if j.model.DType == layout.DefaultDType {
		fmt.Fprintf(w, "the model names no dtype: activations are taken as %v\n", layout.BFloat16)
	}
	if j.model.MaxTokens == 0 {
		fmt.Fprintln(w, "the model names no longest sequence: no limit known, none applied")
	}
	fmt.Fprintf(w, "%s%s\n", zero, j.plan.Why)
	fmt.Fprintf(w, "trace: %s: %v\n", j.trace.Name, c.Trace.Stats())
	if j.limited.Prompts+j.limited.Outputs > 0 {
		fmt.Fprintf(w, "at most %d tokens: %d prompts are shortened, %d answers end early\n", j.model.MaxTokens, j.limited.Prompts, j.limited.Outputs)
	}
	load := fmt.Sprintf("closed loop of %d requests", s.outstanding)
	if j.rate > 0 {
		load = fmt.Sprintf("arrivals %g times as fast", j.rate)
	}
	fmt.Fprintf(w, "load: %s; defer %s; late %g; host %g us and weights %g bytes a step; HBM %g bytes/s; NIC %g bytes/s, %g us\n\n",
		load, j.deferral, j.late, j.hostUS, j.weights, j.hbm, j.nic, j.nicUS)
}

func (s *summary) seedText() string {
	if s.seeds == 1 {
		return fmt.Sprintf("seed %d", s.job.seed)
	}
	return fmt.Sprintf("means over seeds %d to %d, ± half a 95 %% interval", s.job.seed, s.job.seed+uint64(s.seeds)-1)
}

func (s *summary) writeFoot(w io.Writer) {
	u := &s.modes[0]
	fmt.Fprintf(w, "\nutilisation %.3f in %s, blocks reused %.1f times, batches of up to %.0f, %.0f preemptions\n",
		1-u.value("gpu_idle_share").mean, u.mode, u.value("reused_blocks").mean, u.value("peak_batch").mean, u.value("preemptions").mean)
	size := "a reduced size, with stamps in head, tail and interior"
	if s.job.content == "full" {
		size = "their full size"
	}
	fmt.Fprintf(w, "content: pages are held at %s; %.0f checks in %s\n", size, u.checks, u.mode)
	fmt.Fprintf(w, "beside the columns: %s\n", s.wrongLater())
	if s.job.late > 0 {
		fmt.Fprintf(w, "late: %s requests were canceled before their first step\n", format(counts, s.late))
	}
	for i := range s.modes {
		if m := &s.modes[i]; m.value("requests").mean == 0 {
			fmt.Fprintf(w, "no request completed in %s\n", m.mode)
		}
	}
	fmt.Fprintln(w, "simulated costs: "+engine.CostModel())
}

// wrongLater names what the columns don't count.
func (s *summary) wrongLater() string {
	var parts []string
	for i := range s.modes {
		if m := &s.modes[i]; m.later > 0 || m.strays > 0 {
			parts = append(parts, fmt.Sprintf("%s %s and %s", m.mode, format(counts, m.later), format(counts, m.strays)))
		}
	}
	if parts == nil {
		return "no block went wrong after its first use, no write was out of place"
	}
	return "blocks that went wrong after their first use, and writes out of place: " + strings.Join(parts, "; ")
}
