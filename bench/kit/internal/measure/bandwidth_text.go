package measure

import (
	"fmt"
	"io"
)

// label begins each table: figures of a simulated device are never without it.
func label(w io.Writer, device string, simulated bool) {
	if simulated {
		fmt.Fprintf(w, "SIMULATED: %s; the figures below are of its model and of this machine's CPU, at a rehearsal's sizes\n", device)
	} else {
		fmt.Fprintf(w, "%s\n", device)
	}
}

func (r *Bandwidths) head(w io.Writer) {
	label(w, r.Device, r.Simulated)
	peak := "unknown"
	if r.Peak > 0 {
		peak = fmt.Sprintf("%.0f GB/s", float64(r.Peak)/1e9)
	}
	fmt.Fprintf(w, "memory bandwidth by clock and bus %s; blocks scattered over %d MiB\n", peak, r.Pool>>20)
	fmt.Fprintf(w, "%-15s %-35s %-9s %6s %9s %9s %17s %8s %6s %8s %8s\n", "", "", "", "", "MB", "", "us a launch", "", "% of", "over", "over")
	fmt.Fprintf(w, "%-15s %-35s %-9s %6s %9s %9s %8s %8s %8s %6s %8s %8s\n", "kernel", "layout", "ids in", "blocks", "a launch",
		"median", "min", "max", "GB/s", "peak", "memset", "2-D")
}

func (r *BandwidthRow) text(w io.Writer) {
	layout := fmt.Sprintf("%s, %d x %d B", r.Layout, r.Segments, r.Page)
	if r.To != "" {
		layout += " to " + r.To
	}
	peak, rows := "-", "-"
	if r.Peak > 0 {
		peak = fmt.Sprintf("%.1f", 100*r.Peak)
	}
	if r.Rows != nil {
		rows = fmt.Sprintf("%.2f", r.Rows.Ratio)
	}
	fmt.Fprintf(w, "%-15s %-35s %-9s %6d %9.3f %9.2f %8.2f %8.2f %8.1f %6s %8.2f %8s\n", r.Kernel, layout, r.IDs, r.Blocks,
		float64(r.Bytes)/1e6, 1e6*r.Seconds.Median, 1e6*r.Seconds.Min, 1e6*r.Seconds.Max, r.Rate/1e9, peak, r.Memset.Ratio, rows)
}
