package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// shown is how many rows of the table are printed.
const shown = 12

func (r *result) write(out io.Writer) error {
	switch {
	case r.Counts:
		fmt.Fprintln(out, "simulated device: ranked by instructions of warps and sectors of memory; it says nothing of any GPU's time")
	case r.Device.Simulated:
		fmt.Fprintln(out, "simulated device behind the driver's interface: a rehearsal, ranked by what simulating takes; it says nothing of any GPU's time")
	default:
		fmt.Fprintf(out, "%s, compute capability %d.%d, %d SMs: ranked by time\n", r.Device.Name, r.Device.Capability[0],
			r.Device.Capability[1], r.Device.SMs)
	}
	fmt.Fprintln(out, "layout:", r.Plan)
	fmt.Fprintf(out, "compiled at run time: %s\n\n", r.Compiler)
	for i, f := range r.Figures {
		unit := "GB/s"
		switch {
		case r.Counts && f.n == 1:
			unit = "instructions of the warp that has most to do"
		case r.Counts:
			unit = "instructions and sectors for a KiB"
		case f.hot:
			unit = "us"
		}
		fmt.Fprintf(out, "(%d) %s: %s, %d bytes: %s\n", i+1, f.group, f.name, f.bytes, unit)
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "cost\ttile KiB\tblocks/SM\tkernels")
	for i := range r.Figures {
		fmt.Fprintf(w, "\t(%d)", i+1)
	}
	fmt.Fprintln(w)
	d := defaults()
	for i := range r.Rows {
		c := &r.Rows[i]
		if i >= shown && c.candidate != d {
			continue
		}
		if c.Err != nil {
			continue
		}
		mark := ""
		if c.candidate == d {
			mark = " (default)"
		}
		fmt.Fprintf(w, "%.3f\t%d\t%d\t%v%s", c.Cost, c.Tile>>10, c.BlocksPerSM, c.Variant, mark)
		for k, v := range c.Figures {
			fmt.Fprintf(w, "\t%.2f", r.shownAs(k, v))
		}
		fmt.Fprintln(w)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := len(r.Rows) - shown; n > 0 {
		fmt.Fprintf(out, "and %d more\n", n)
	}
	told := map[string]bool{}
	for i := range r.Rows {
		if c := &r.Rows[i]; c.Err != nil && !told[c.Variant.String()] {
			told[c.Variant.String()] = true
			fmt.Fprintf(out, "not to be had: %v: %v\n", c.Variant, c.Err)
		}
	}
	what := ""
	switch {
	case r.Counts:
		what = "simulated time, bytes alone: "
	case r.Device.Simulated:
		what = "what simulating takes: "
	}
	fmt.Fprintf(out, "\n%srate of a step's blocks with thread blocks for fewer SMs\n", what)
	for _, b := range r.Budget {
		fmt.Fprintf(out, "  %4d SMs, %5d thread blocks  %5.1f %%\n", b.SMs, b.SMs*r.Tuning.BlocksPerSM, 100*b.Share)
	}
	kept := ""
	if r.Kept {
		kept = fmt.Sprintf("; nothing is better by more than %g %%, so the defaults stay", 100*r.noise())
	}
	_, err := fmt.Fprintf(out, "\nbest: %v%s\n", candidate{r.Tuning.Variant, r.Tuning.Tile, r.Tuning.BlocksPerSM}, kept)
	return err
}

// shownAs is a figure as the table has it.
func (r *result) shownAs(k int, v float64) float64 {
	switch f := r.Figures[k]; {
	case r.Counts:
		return v
	case f.hot:
		return v / 1000
	default:
		return float64(f.bytes) / v
	}
}
