package report

import (
	"fmt"
	"strings"
)

// Queries are what is asked of nvidia-smi, which comes with the driver. Source:
// nvidia-smi --help-query-gpu.
var Queries = []string{"driver_version", "pstate", "clocks.sm", "clocks.mem", "clocks.max.sm", "clocks.max.mem",
	"temperature.gpu", "power.draw", "power.limit", "ecc.mode.current", "mig.mode.current", "utilization.gpu", "memory.used"}

// ParseGPUState reads nvidia-smi --query-gpu of [Queries] with
// --format=csv,noheader: one line of a device.
func ParseGPUState(line string) (*GPUState, error) {
	fields := strings.Split(strings.TrimSpace(line), ",")
	if len(fields) != len(Queries) {
		return nil, fmt.Errorf("nvidia-smi answered %d values instead of %d: %q", len(fields), len(Queries), line)
	}
	s := &GPUState{Values: map[string]string{}}
	for i, f := range fields {
		s.Values[Queries[i]] = strings.TrimSpace(f)
	}
	return s, nil
}

func (s *GPUState) String() string {
	if s.Missing != "" {
		return "clocks unknown: " + s.Missing
	}
	v := s.Values
	return fmt.Sprintf("%s, SM clock %s of %s, memory clock %s of %s, %s, %s of %s, ECC %s, MIG %s", v["pstate"],
		v["clocks.sm"], v["clocks.max.sm"], v["clocks.mem"], v["clocks.max.mem"], v["temperature.gpu"]+" C",
		v["power.draw"], v["power.limit"], v["ecc.mode.current"], v["mig.mode.current"])
}
