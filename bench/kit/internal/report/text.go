package report

import (
	"fmt"
	"sort"
	"strings"
	"time"
)

// Text returns the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "kvgate GPU kit: %s\n", strings.ToUpper(string(r.Verdict)))
	if r.Simulated {
		b.WriteString("\nSIMULATED DEVICE: a rehearsal. No figure below is of any hardware.\n")
	}
	fmt.Fprintf(&b, "\nstarted  %s, took %.0f s\n", r.Started.UTC().Format(time.RFC3339), r.Seconds)
	modified := ""
	if r.Kit.Modified {
		modified = " with other changes"
	}
	fmt.Fprintf(&b, "kit      revision %s%s, %s, %s, needs glibc %s\n", r.Kit.Revision, modified, r.Kit.Go, r.Kit.Target, r.Kit.Glibc)
	fmt.Fprintf(&b, "host     %s, %d CPUs, %d MiB, Linux %s\n", r.Host.CPU, r.Host.CPUs, r.Host.MemoryMiB, r.Host.Kernel)
	if d := r.Device; d != nil {
		fmt.Fprintf(&b, "device   %s, compute capability %s, %d SMs, %d MiB\n", d.Name, d.Capability, d.SMs, d.Memory>>20)
		bandwidth := "unknown"
		if d.Bandwidth > 0 {
			bandwidth = fmt.Sprintf("%.0f GB/s", float64(d.Bandwidth)/1e9)
		}
		fmt.Fprintf(&b, "         memory bandwidth by clock and bus %s; PCI %s; UUID %s\n", bandwidth, orUnknown(d.PCI), orUnknown(d.UUID))
		fmt.Fprintf(&b, "         RDMA: %s\n", d.RDMA)
		fmt.Fprintf(&b, "driver   CUDA %s, kernel driver %s, %s\n", d.Driver, orUnknown(d.Kernel), d.Library)
	} else {
		b.WriteString("device   none\n")
	}
	b.WriteString("\npart          status     seconds  limit  what\n")
	for _, p := range r.Parts {
		fmt.Fprintf(&b, "%-13s %-9s %8.1f %6.0f  %s\n", p.Name, p.Status, p.Seconds, p.Limit, p.What)
	}
	for _, p := range r.Parts {
		p.text(&b)
	}
	return b.String()
}

func orUnknown(s string) string {
	if s == "" {
		return "unknown"
	}
	return s
}

func (p *Part) text(b *strings.Builder) {
	fmt.Fprintf(b, "\n== %s: %s", p.Name, p.Status)
	if p.Reason != "" {
		fmt.Fprintf(b, ": %s", p.Reason)
	}
	b.WriteString("\n")
	for _, n := range p.Notes {
		fmt.Fprintf(b, "%s\n", n)
	}
	if t := p.Tests; t != nil {
		fmt.Fprintf(b, "tests and subtests: %d passed, %d failed, %d skipped, %d unfinished\n",
			t.Passed, len(t.Failed), len(t.Skipped), len(t.Unfinished))
		for _, x := range t.Failed {
			fmt.Fprintf(b, "FAIL %s (%.2f s)\n%s", x.Name, x.Seconds, indent(x.Output))
		}
		for _, x := range t.Skipped {
			fmt.Fprintf(b, "skip %s\n%s", x.Name, indent(x.Output))
		}
		for _, x := range t.Unfinished {
			fmt.Fprintf(b, "unfinished %s\n", x)
		}
		if t.Panic != "" {
			fmt.Fprintf(b, "%s\n", t.Panic)
		}
		for _, x := range t.Benchmarks {
			var units []string
			for u := range x.Metrics {
				units = append(units, u)
			}
			sort.Strings(units)
			fmt.Fprintf(b, "%s", x.Name)
			for _, u := range units {
				fmt.Fprintf(b, "  %.4g %s", x.Metrics[u], u)
			}
			b.WriteString("\n")
		}
	}
	if p.Text != "" {
		b.WriteString(strings.TrimRight(p.Text, "\n") + "\n")
	}
	for _, s := range []struct {
		when  string
		state *GPUState
	}{{"before", p.Before}, {"after", p.After}} {
		if s.state != nil {
			fmt.Fprintf(b, "%s: %s\n", s.when, s.state)
		}
	}
	if p.Tail != "" {
		fmt.Fprintf(b, "the end of %s:\n%s", p.Log, indent(p.Tail))
	}
}

func indent(s string) string {
	if s == "" {
		return ""
	}
	return "    " + strings.ReplaceAll(strings.TrimRight(s, "\n"), "\n", "\n    ") + "\n"
}
