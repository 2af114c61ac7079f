package main

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/bench/kit/internal/measure"
	"github.com/kvgate/kvgate/bench/kit/internal/report"
	"github.com/kvgate/kvgate/loadgate/core"
)

// checkFigures says what the figures of the measuring parts lack.
func checkFigures(r *report.Report) error {
	for name, look := range map[string]func(data []byte, simulated bool) error{
		bandwidthPart: checkBandwidth, wakePart: checkWake, stepPart: checkStep, livePart: checkLive,
	} {
		if err := look(r.Part(name).Data, r.Simulated); err != nil {
			return fmt.Errorf("part %s: %w", name, err)
		}
	}
	return nil
}

// label refuses figures that do not say what they are of.
func label(got, want bool) error {
	if got != want {
		return fmt.Errorf("its figures say that the device is simulated: %t, the report %t", got, want)
	}
	return nil
}

func checkBandwidth(data []byte, simulated bool) error {
	var b measure.Bandwidths
	if err := json.Unmarshal(data, &b); err != nil {
		return err
	}
	if err := label(b.Simulated, simulated); err != nil {
		return err
	}
	for _, k := range measure.Kernels {
		if !slices.ContainsFunc(b.Rows, func(r measure.BandwidthRow) bool { return r.Kernel == k }) {
			return fmt.Errorf("no figures of %s", k)
		}
	}
	rows := 0
	for _, r := range b.Rows {
		if r.Rate <= 0 || r.Peak <= 0 || r.Memset.Rate <= 0 || r.Seconds.N == 0 {
			return fmt.Errorf("figures are missing: %+v", r)
		}
		if r.Rows != nil && r.Rows.Rate > 0 {
			rows++
		}
	}
	if rows == 0 {
		return fmt.Errorf("nothing is compared with a fill of rows")
	}
	return nil
}

// checkWake lets a device lack a way to wait. Beside a simulated one the
// machine may be so busy that no round counts.
func checkWake(data []byte, simulated bool) error {
	var w measure.Wakes
	if err := json.Unmarshal(data, &w); err != nil {
		return err
	}
	if err := label(w.Simulated, simulated); err != nil {
		return err
	}
	for _, busy := range []bool{false, true} {
		for _, way := range measure.WakeWays {
			i := slices.IndexFunc(w.Rows, func(r measure.WakeRow) bool { return r.Way == way && r.Busy == busy })
			if i < 0 {
				return fmt.Errorf("no figures of %s, busy: %t", way, busy)
			}
			r := w.Rows[i]
			if r.Missing == "" && (r.Fence == nil || r.Post == nil || !simulated && (r.Fence.N == 0 || r.Post.N == 0)) {
				return fmt.Errorf("figures of %s, busy: %t, are missing: %+v", way, busy, r)
			}
		}
	}
	return nil
}

func checkStep(data []byte, simulated bool) error {
	var s measure.Steps
	if err := json.Unmarshal(data, &s); err != nil {
		return err
	}
	if err := label(s.Simulated, simulated); err != nil {
		return err
	}
	for _, what := range measure.StepRows {
		i := slices.IndexFunc(s.Rows, func(r measure.StepRow) bool { return r.What == what })
		if i < 0 || s.Rows[i].Host.N == 0 || s.Rows[i].Crossings <= 0 {
			return fmt.Errorf("no figures of %s", what)
		}
	}
	if c := s.Rows[0].Crossings; c != 1 {
		return fmt.Errorf("%s takes %g crossings, want 1", s.Rows[0].What, c)
	}
	return nil
}

func checkLive(data []byte, simulated bool) error {
	var f liveFigures
	if err := json.Unmarshal(data, &f); err != nil {
		return err
	}
	if err := label(f.Device.Simulated, simulated); err != nil {
		return err
	}
	for _, mode := range core.Modes() {
		found := false
		for _, m := range f.Modes {
			found = found || m.Mode == mode.String() && m.Steps > 0 && m.Blocks > 0
			if m.Gated && m.CorruptedBlocks > 0 {
				return fmt.Errorf("%s corrupted %d blocks", m.Mode, m.CorruptedBlocks)
			}
		}
		if !found {
			return fmt.Errorf("no figures of mode %s", mode)
		}
	}
	if f.Failure != "" {
		return fmt.Errorf("failure: %s", f.Failure)
	}
	return nil
}
