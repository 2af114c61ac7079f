// Package report holds what a run of the kit found, as JSON and as text.
package report

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/bench/kit/internal/gotest"
)

// Format is the version of the JSON; a change that a reader would stumble over
// has the next.
const Format = 1

// Report is one run of the kit.
type Report struct {
	Format int `json:"format"`
	// Verdict is "passed", "failed" or "no driver". Only a run in which every
	// part passed has passed.
	Verdict Verdict `json:"verdict"`
	// Simulated says that no figure of this report is of hardware.
	Simulated bool      `json:"simulated"`
	Started   time.Time `json:"started"`
	Seconds   float64   `json:"seconds"`
	Kit       Build     `json:"kit"`
	Host      Host      `json:"host"`
	Device    *Device   `json:"device,omitempty"` // nil: none could be opened
	Parts     []Part    `json:"parts"`
}

// Verdict is what a run came to.
type Verdict string

const (
	Passed   Verdict = "passed"
	Failed   Verdict = "failed"
	NoDriver Verdict = "no driver"
)

// ExitCode is the exit status of a run with that verdict.
func (v Verdict) ExitCode() int {
	switch v {
	case Passed:
		return 0
	case NoDriver:
		return 3
	}
	return 1
}

// Build says what the kit was made from.
type Build struct {
	Revision string `json:"revision"` // of the repository; "unknown" where it was not built in one
	Modified bool   `json:"modified"` // the work tree held other changes
	Go       string `json:"go"`
	Target   string `json:"target"` // GOOS/GOARCH
	Glibc    string `json:"glibc"`  // the oldest that the programs start with
}

// Host is the machine around the device.
type Host struct {
	Kernel     string `json:"kernel"`
	CPU        string `json:"cpu"`
	CPUs       int    `json:"cpus"` // that this process may use
	MemoryMiB  int    `json:"memory_mib"`
	GOMAXPROCS int    `json:"gomaxprocs"`
}

// Device is what was opened.
type Device struct {
	Name       string `json:"name"`
	Simulated  bool   `json:"simulated"`
	Library    string `json:"library"`
	Driver     string `json:"driver"` // the CUDA version that the library supports
	Kernel     string `json:"kernel_driver,omitempty"`
	Capability string `json:"capability"`
	SMs        int    `json:"sms"`
	Memory     uint64 `json:"memory_bytes"`
	Bandwidth  uint64 `json:"bandwidth_bytes_per_s"` // of its memory, by clock and bus; 0 unknown
	PCI        string `json:"pci,omitempty"`
	UUID       string `json:"uuid,omitempty"`
	RDMA       string `json:"rdma"`
}

// Status is what became of a part.
type Status string

const (
	PartPassed   Status = "passed"
	PartFailed   Status = "failed"
	PartTimedOut Status = "timed out"
	PartNotRun   Status = "not run"
)

// Part is one part of a run. Every part of the kit is in every report.
type Part struct {
	Name   string `json:"name"`
	What   string `json:"what"`
	Status Status `json:"status"`
	// Reason says why a part did not pass.
	Reason  string  `json:"reason,omitempty"`
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit_seconds"`
	// Notes are what a reader has to know of a part that passed, too.
	Notes []string `json:"notes,omitempty"`
	// Tests are there where the part is a test binary.
	Tests *gotest.Result `json:"tests,omitempty"`
	// Data is what a measuring part found, and Text the same for people.
	Data json.RawMessage `json:"data,omitempty"`
	Text string          `json:"-"`
	// Before and After are the device's clocks around a measuring part.
	Before *GPUState `json:"gpu_before,omitempty"`
	After  *GPUState `json:"gpu_after,omitempty"`
	// Log is the file of what the part wrote, beside the report; Tail is the
	// end of it where the part did not pass.
	Log  string `json:"log,omitempty"`
	Tail string `json:"tail,omitempty"`
}

// GPUState is the device's state as nvidia-smi tells it, by the names of its
// queries; Missing says why there is none.
type GPUState struct {
	Values  map[string]string `json:"values,omitempty"`
	Missing string            `json:"missing,omitempty"`
}

// Judge sets the verdict from the parts.
func (r *Report) Judge() {
	r.Verdict = Passed
	for _, p := range r.Parts {
		if p.Status != PartPassed {
			r.Verdict = Failed
		}
	}
	if len(r.Parts) == 0 {
		r.Verdict = Failed
	}
	if r.Device == nil {
		r.Verdict = NoDriver
	}
}

// Read reads a report and refuses what can't be one.
func Read(text []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if r.Format != Format {
		return nil, fmt.Errorf("report: format %d, this program knows %d", r.Format, Format)
	}
	return &r, nil
}

// Part returns the part of that name, or nil.
func (r *Report) Part(name string) *Part {
	for i := range r.Parts {
		if r.Parts[i].Name == name {
			return &r.Parts[i]
		}
	}
	return nil
}
