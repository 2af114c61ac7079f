package main

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// format is the version of the JSON.
const format = 2

// Report is one run of the kit.
type Report struct {
	Format int `json:"format"`
	// Verdict is "running", "passed", "failed" or "no driver". Only a run in which
	// every part passed has passed.
	Verdict string `json:"verdict"`
	// Simulated says that no figure of this report is of hardware.
	Simulated bool `json:"simulated"`
	// Chosen: not all parts were asked for.
	Chosen  bool              `json:"chosen,omitempty"`
	Started time.Time         `json:"started"`
	Seconds float64           `json:"seconds"`
	Kit     Build             `json:"kit"`
	Host    Host              `json:"host"`
	Device  *Device           `json:"device,omitempty"` // nil: none could be opened
	GPU     map[string]string `json:"gpu,omitempty"`    // by nvidia-smi's names
	Notes   []string          `json:"notes,omitempty"`
	Parts   []Part            `json:"parts"`
}

// Build says what the kit was made from.
type Build struct {
	Revision string `json:"revision"` // of the repository; "unknown" where it was not built in one
	Modified bool   `json:"modified"` // the work tree held other changes
	Go       string `json:"go"`
	Target   string `json:"target"` // GOOS/GOARCH
}

// Host is the machine around the device.
type Host struct {
	Kernel    string `json:"kernel"`
	CPU       string `json:"cpu"`
	CPUs      int    `json:"cpus"` // that this process may use
	MemoryMiB int    `json:"memory_mib"`
}

// Device is what was opened, as TestProbeOnGPU of cuda/driver tells it.
type Device struct {
	Name       string `json:"name"`
	Simulated  bool   `json:"simulated"`
	Library    string `json:"library"`
	Driver     string `json:"driver"` // the CUDA version that the library supports
	Capability [2]int `json:"capability"`
	SMs        int    `json:"sms"`
	Memory     uint64 `json:"memory_bytes"`
	Bandwidth  uint64 `json:"bandwidth_bytes_per_s"` // of its memory, by clock and bus; 0 unknown
	PCI        string `json:"pci,omitempty"`
	UUID       string `json:"uuid,omitempty"`
	RDMA       string `json:"rdma"`
}

// What became of a part.
const (
	notRun  = "not run"
	running = "running" // in a report of a run that did not come to its end
	passed  = "passed"
	failed  = "failed"
	late    = "timed out"
)

// Part is one part of a run. Every part that was asked for is in the report.
type Part struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Status  string  `json:"status"`
	Reason  string  `json:"reason,omitempty"` // why it did not pass
	Seconds float64 `json:"seconds"`
	Limit   float64 `json:"limit_seconds"`
	Result
	Clocks *Clocks `json:"clocks,omitempty"`
	Text   string  `json:"text,omitempty"` // what a plain program wrote, or the end of what one did that did not pass
}

// judge sets the verdict from the parts.
func (r *Report) judge() {
	r.Verdict = "passed"
	for _, p := range r.Parts {
		if p.Status != passed {
			r.Verdict = "failed"
		}
	}
	if r.Device == nil {
		r.Verdict = "no driver"
	}
}

// exitCode is the exit status of a run with that verdict.
func (r *Report) exitCode() int {
	if code, ok := map[string]int{"passed": 0, "no driver": 3}[r.Verdict]; ok {
		return code
	}
	return 1
}

// readReport refuses what can't be one.
func readReport(text []byte) (*Report, error) {
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("report: %w", err)
	}
	if r.Format != format {
		return nil, fmt.Errorf("report: format %d, this program knows %d", r.Format, format)
	}
	return &r, nil
}

// part returns the part of that name, or nil.
func (r *Report) part(name string) *Part {
	i := slices.IndexFunc(r.Parts, func(p Part) bool { return p.Name == name })
	if i < 0 {
		return nil
	}
	return &r.Parts[i]
}

// write writes the report in both forms and packs the logs. At any moment there is
// a whole one in the folder.
func (r *Report) write(dir, logs string) error {
	text, err := json.MarshalIndent(r, "", "\t")
	if err == nil {
		err = replace(filepath.Join(dir, "report.json"), append(text, '\n'))
	}
	packed, bad := pack(logs)
	if bad == nil {
		bad = replace(filepath.Join(dir, "parts.tar.gz"), packed)
	}
	return errors.Join(err, bad, replace(filepath.Join(dir, "report.txt"), []byte(r.text())))
}

func replace(path string, text []byte) error {
	if err := os.WriteFile(path+".new", text, 0o666); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// pack returns the files of a folder as a compressed archive.
func pack(dir string) ([]byte, error) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	err := errors.Join(w.AddFS(os.DirFS(dir)), w.Close(), z.Close())
	return b.Bytes(), err
}

// text is the report for people.
func (r *Report) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kvgate GPU kit: %s\n", strings.ToUpper(r.Verdict))
	if r.Simulated {
		b.WriteString("\nSIMULATED DEVICE: a rehearsal. No figure below is of any hardware.\n")
	}
	if r.Chosen {
		b.WriteString("\nNot all parts were asked for.\n")
	}
	modified := ""
	if r.Kit.Modified {
		modified = " with other changes"
	}
	fmt.Fprintf(&b, "\nstarted  %s, took %.0f s\nkit      revision %s%s, %s, %s\nhost     %s, %d CPUs, %d MiB, Linux %s\n",
		r.Started.UTC().Format(time.RFC3339), r.Seconds, r.Kit.Revision, modified, r.Kit.Go, r.Kit.Target,
		r.Host.CPU, r.Host.CPUs, r.Host.MemoryMiB, r.Host.Kernel)
	if d := r.Device; d != nil {
		fmt.Fprintf(&b, "device   %s, compute capability %d.%d, %d SMs, %d MiB, PCI %s, UUID %s\n", d.Name, d.Capability[0], d.Capability[1], d.SMs,
			d.Memory>>20, cmp.Or(d.PCI, "unknown"), cmp.Or(d.UUID, "unknown"))
		bandwidth := "unknown"
		if d.Bandwidth > 0 {
			bandwidth = fmt.Sprintf("%.0f GB/s", float64(d.Bandwidth)/1e9)
		}
		fmt.Fprintf(&b, "         memory bandwidth by clock and bus %s; RDMA: %s\ndriver   CUDA %s, %s\n", bandwidth, d.RDMA, d.Driver, d.Library)
	} else {
		b.WriteString("device   none\n")
	}
	for _, k := range slices.Sorted(maps.Keys(r.GPU)) {
		fmt.Fprintf(&b, "         %s: %s\n", k, r.GPU[k])
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note     %s\n", n)
	}
	b.WriteString("\npart         status     seconds  limit  what\n")
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "%-12s %-9s %8.1f %6.0f  %s\n", p.Name, p.Status, p.Seconds, p.Limit, p.What)
	}
	for i := range r.Parts {
		r.Parts[i].write(&b)
	}
	return b.String()
}

func (p *Part) write(b *strings.Builder) {
	fmt.Fprintf(b, "\n== %s: %s", p.Name, p.Status)
	if p.Reason != "" {
		fmt.Fprintf(b, ": %s", p.Reason)
	}
	b.WriteString("\n")
	if p.Clocks != nil {
		fmt.Fprintf(b, "%s\n", p.Clocks)
	}
	if n := p.Passed + len(p.Failed) + len(p.Skipped) + len(p.Unfinished); n > 0 {
		fmt.Fprintf(b, "tests and subtests: %d passed, %d failed, %d skipped, %d unfinished\n", p.Passed, len(p.Failed), len(p.Skipped), len(p.Unfinished))
	}
	for _, x := range p.Failed {
		if strings.HasPrefix(x.Name, "Benchmark") {
			continue // it is among the rows
		}
		fmt.Fprintf(b, "FAIL %s\n%s", x.Name, indent(x.Output))
	}
	for _, x := range p.Skipped {
		fmt.Fprintf(b, "skip %s\n%s", x.Name, indent(x.Output))
	}
	for _, x := range p.Unfinished {
		fmt.Fprintf(b, "unfinished %s\n", x)
	}
	if p.Panic != "" {
		fmt.Fprintf(b, "%s\n", p.Panic)
	}
	writeRows(b, p.Rows)
	for _, o := range p.Observations {
		fmt.Fprintf(b, "observed: %s\n", o)
	}
	if p.Text != "" {
		b.WriteString(indent(p.Text))
	}
}

// writeRows writes figures as tables, one for each benchmark.
func writeRows(b *strings.Builder, rows []Row) {
	family := func(r Row) string { f, _, _ := strings.Cut(r.Name, "/"); return f }
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && family(rows[n]) == family(rows[0]) {
			n++
		}
		units := map[string]bool{}
		for _, r := range rows[:n] {
			for u := range r.Metrics {
				units[u] = true
			}
		}
		if len(units) > 1 { // what a benchmark counts itself is what it is for
			delete(units, "ns/op")
		}
		w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
		fmt.Fprintf(w, "\t%s\n", strings.Join(slices.Sorted(maps.Keys(units)), "\t"))
		var errs []Row
		for _, r := range rows[:n] {
			if r.Error != "" {
				errs = append(errs, r)
				continue
			}
			fmt.Fprint(w, strings.TrimPrefix(r.Name, "Benchmark"))
			for _, u := range slices.Sorted(maps.Keys(units)) {
				if v, ok := r.Metrics[u]; ok {
					fmt.Fprintf(w, "\t%.4g", v)
				} else {
					fmt.Fprint(w, "\t-")
				}
			}
			fmt.Fprintln(w)
		}
		w.Flush()
		for _, r := range errs {
			fmt.Fprintf(b, "%s: no figures: %s\n", strings.TrimPrefix(r.Name, "Benchmark"), r.Error)
		}
		rows = rows[n:]
	}
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}
