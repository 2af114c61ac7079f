package main

import (
	"encoding/json"
	"fmt"
	"strings"
)

// liveFigures is what of bench/live's JSON the text of the report shows, and
// the check looks at. Its documentation says what each is.
type liveFigures struct {
	Device struct {
		Name      string `json:"name"`
		Simulated bool   `json:"simulated"`
	} `json:"device"`
	NIC struct {
		Kind    string `json:"kind"`
		What    string `json:"what"`
		Skipped []struct {
			Kind string `json:"kind"`
			Why  string `json:"why"`
		} `json:"skipped"`
	} `json:"nic"`
	Modes []struct {
		Mode            string   `json:"mode"`
		Gated           bool     `json:"gated"`
		Steps           int      `json:"steps"`
		StepsPerS       float64  `json:"steps_per_s"`
		Overhead        *float64 `json:"overhead_percent"`
		StepP50         float64  `json:"step_p50_ms"`
		StepP99         float64  `json:"step_p99_ms"`
		HostBlocked     float64  `json:"host_blocked_ms"`
		Loads           int      `json:"loads"`
		HeldLoads       int      `json:"held_loads"`
		HoldP50         float64  `json:"hold_p50_ms"`
		HoldP99         float64  `json:"hold_p99_ms"`
		Blocks          int      `json:"blocks"`
		CorruptedBlocks int      `json:"corrupted_blocks"`
	} `json:"modes"`
	Failure string `json:"failure"`
}

// liveText is the table of the modes.
func liveText(data []byte) string {
	var f liveFigures
	if err := json.Unmarshal(data, &f); err != nil {
		return "its figures are not as they should be: " + err.Error() + "\n"
	}
	var b strings.Builder
	if f.Device.Simulated {
		fmt.Fprintf(&b, "SIMULATED: %s; the figures below are of its model and of this machine's CPU\n", f.Device.Name)
	}
	for _, s := range f.NIC.Skipped {
		fmt.Fprintf(&b, "NIC: not %s: %s\n", s.Kind, s.Why)
	}
	fmt.Fprintf(&b, "NIC: %s: %s\n", f.NIC.Kind, f.NIC.What)
	fmt.Fprintf(&b, "%-20s %8s %9s %15s %12s %15s %15s %15s\n", "mode", "steps/s", "overhead%", "step ms p50/p99",
		"host blocked", "held loads", "hold ms p50/p99", "corrupted")
	for _, m := range f.Modes {
		over := "-"
		if m.Overhead != nil {
			over = fmt.Sprintf("%.2f", *m.Overhead)
		}
		fmt.Fprintf(&b, "%-20s %8.1f %9s %15s %9.1f ms %15s %15s %15s\n", m.Mode, m.StepsPerS, over,
			fmt.Sprintf("%.2f/%.2f", m.StepP50, m.StepP99), m.HostBlocked, fmt.Sprintf("%d of %d", m.HeldLoads, m.Loads),
			fmt.Sprintf("%.2f/%.2f", m.HoldP50, m.HoldP99), fmt.Sprintf("%d of %d", m.CorruptedBlocks, m.Blocks))
	}
	if f.Failure != "" {
		fmt.Fprintf(&b, "failure: %s\n", f.Failure)
	}
	return b.String()
}
