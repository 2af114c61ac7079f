package main

import (
	"math"
	"slices"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
)

// metric is a figure of a run, under its name in JSON.
type metric struct {
	name string
	of   func(*engine.Result) float64
}

// metrics are the figures in the order of the JSON object.
var metrics = []metric{
	{"requests", func(r *engine.Result) float64 { return float64(r.Requests) }},
	{"output_tokens", func(r *engine.Result) float64 { return float64(r.OutputTokens) }},
	{"tokens_per_s", func(r *engine.Result) float64 { return r.TokensPerS }},
	{"ttft_ms_p50", func(r *engine.Result) float64 { return r.TTFTP50 }},
	{"ttft_ms_p99", func(r *engine.Result) float64 { return r.TTFTP99 }},
	{"step_ms_p50", func(r *engine.Result) float64 { return r.StepP50 }},
	{"step_ms_p99", func(r *engine.Result) float64 { return r.StepP99 }},
	{"host_blocked_ms", func(r *engine.Result) float64 { return r.HostBlocked }},
	{"gate_idle_ms", func(r *engine.Result) float64 { return r.GateIdle }},
	{"held_share", func(r *engine.Result) float64 { return r.HeldShare }},
	{"hold_ms_p50", func(r *engine.Result) float64 { return r.HoldP50 }},
	{"hold_ms_p99", func(r *engine.Result) float64 { return r.HoldP99 }},
	{"gpu_idle_share", func(r *engine.Result) float64 { return r.GPUIdleShare }},
	{"zeroed_bytes", func(r *engine.Result) float64 { return r.ZeroedBytes }},
	{"loaded_bytes", func(r *engine.Result) float64 { return r.LoadedBytes }},
	{"corrupted_blocks", func(r *engine.Result) float64 { return float64(r.CorruptedBlocks) }},
	{"corrupted_requests", func(r *engine.Result) float64 { return float64(r.CorruptedRequests) }},
	{"peak_batch", func(r *engine.Result) float64 { return float64(r.PeakBatch) }},
	{"preemptions", func(r *engine.Result) float64 { return float64(r.Preemptions) }},
	{"reused_blocks", func(r *engine.Result) float64 { return r.ReusedBlocks }},
	{"ptx_launches", func(r *engine.Result) float64 { return float64(r.PTXLaunches) }},
	{"overhead_vs_ungated", func(r *engine.Result) float64 { return r.Overhead }},
}

// estimate is a mean over seeds and half the width of its 95 % interval, 0 with
// one seed.
type estimate struct{ mean, ci float64 }

// summary is what is printed.
type summary struct {
	job         *job
	outstanding int
	blocks      int
	seeds       int
	modes       []modeSummary
	late        float64
}

type modeSummary struct {
	mode          string
	values        []estimate // by metric
	later, strays float64
	checks        float64
}

func (m *modeSummary) value(name string) estimate {
	return m.values[slices.IndexFunc(metrics, func(x metric) bool { return x.name == name })]
}

func summarize(j *job, runs [][]engine.Result) *summary {
	s := &summary{job: j, seeds: len(runs)}
	c := j.seeded(0)
	s.blocks, _ = c.Fit() // prepare has looked at the errors
	s.outstanding, _ = c.Outstanding()
	for m := range runs[0] {
		out := modeSummary{mode: runs[0][m].Mode}
		over := func(of func(*engine.Result) float64) estimate {
			var v []float64
			for i := range runs {
				v = append(v, of(&runs[i][m]))
			}
			return estimateOf(v)
		}
		for _, x := range metrics {
			out.values = append(out.values, over(x.of))
		}
		out.later = over(func(r *engine.Result) float64 { return float64(r.Later) }).mean
		out.strays = over(func(r *engine.Result) float64 { return float64(r.Strays) }).mean
		out.checks = over(func(r *engine.Result) float64 { return float64(r.Checks) }).mean
		s.modes = append(s.modes, out)
	}
	for i := range runs {
		s.late += float64(runs[i][0].Late) / float64(len(runs))
	}
	return s
}

// estimateOf returns mean and interval by Student's t.
func estimateOf(v []float64) estimate {
	n := float64(len(v))
	e := estimate{}
	for _, x := range v {
		e.mean += x / n
	}
	if len(v) < 2 {
		return e
	}
	sum := 0.0
	for _, x := range v {
		sum += (x - e.mean) * (x - e.mean)
	}
	e.ci = student(len(v)-1) * math.Sqrt(sum/(n-1)/n)
	return e
}

// student returns the 97.5 % quantile of Student's distribution (Abramowitz and
// Stegun, table 26.10, and 26.7.5 beyond it).
func student(freedom int) float64 {
	table := []float64{12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
		2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086}
	if freedom <= len(table) {
		return table[freedom-1]
	}
	const z = 1.959964
	f := float64(freedom)
	return z + (z*z*z+z)/(4*f) + (5*z*z*z*z*z+16*z*z*z+3*z)/(96*f*f)
}
