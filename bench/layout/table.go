package main

import (
	"fmt"
	"io"
	"text/tabwriter"
)

func (r *report) table(out io.Writer) error {
	fmt.Fprintln(out, r.Layout)
	needed := "zeroing is not needed: "
	if r.NeedsZeroing {
		needed = "zeroing is needed: "
	}
	fmt.Fprintf(out, "%s%s\n\n", needed, r.Why)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "group\tkind\tdtype\tpages\theads\ttokens\tkernel\tpage bytes\tpadding %\tgroup bytes\tempty %\trequest's blocks\t")
	for g := range r.Groups {
		gr := &r.Groups[g]
		if len(gr.Pages) == 0 {
			fmt.Fprintf(w, "%d\t%s\t-\t0\t-\t%d\t%d\t-\t-\t0\t100.00\t%d\t\n", g, gr.Kind, gr.BlockTokens, gr.KernelTokens, gr.Blocks)
		}
		for i, p := range gr.Pages {
			name, tokens, kernel, rest := "", "", "", "\t\t\t"
			if i == 0 {
				name, tokens, kernel = fmt.Sprint(g), orDash(gr.BlockTokens), orDash(gr.KernelTokens)
				rest = fmt.Sprintf("%d\t%.2f\t%d\t", gr.Bytes, percent(gr.Empty, r.BlockBytes), gr.Blocks)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\t%s\t%d\t%.2f\t%s\n", name, p.Kind, p.DType, p.Pages, orDash(p.Heads), tokens, kernel,
				p.Bytes, percent(p.Bytes-p.Used, p.Used), rest)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(out, "\n%d bytes hold %d blocks, the null block among them, and leave %d bytes\n", r.Memory, r.Blocks, r.Unused)
	fmt.Fprintf(out, "a request of %d tokens holds %d blocks: %d such requests fit\n", r.Tokens, r.RequestBlocks, r.Requests)
	_, err := fmt.Fprintf(out, "for its blocks %d bytes are zeroed, and %d of states reset\n", r.Zeroed, r.Reset)
	return err
}

func orDash(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

func percent(part, of uint64) float64 {
	if of == 0 {
		return 0
	}
	return 100 * float64(part) / float64(of)
}

// diff prints what is different, line by line.
func diff(out io.Writer, a, b *report) error {
	fmt.Fprintf(out, "first:  %s\nsecond: %s\n\n", a.Layout, b.Layout)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "\tfirst\tsecond\t")
	changed := 0
	line := func(what string, x, y any) {
		if x != y {
			changed++
			fmt.Fprintf(w, "%s\t%v\t%v\t\n", what, x, y)
		}
	}
	line("tokens in a block", a.BlockTokens, b.BlockTokens)
	line("bytes of a block", a.BlockBytes, b.BlockBytes)
	line("zeroing is needed", a.NeedsZeroing, b.NeedsZeroing)
	line("groups", len(a.Groups), len(b.Groups))
	for g := range min(len(a.Groups), len(b.Groups)) {
		x, y := &a.Groups[g], &b.Groups[g]
		name := fmt.Sprintf("group %d: ", g)
		line(name+"kind", x.Kind, y.Kind)
		line(name+"layers", x.Layers, y.Layers)
		line(name+"tokens in a block", x.BlockTokens, y.BlockTokens)
		line(name+"tokens in a kernel block", x.KernelTokens, y.KernelTokens)
		line(name+"bytes", x.Bytes, y.Bytes)
		line(name+"padding", x.Padding, y.Padding)
		line(name+"empty bytes", x.Empty, y.Empty)
		line(name+"blocks of a request", x.Blocks, y.Blocks)
		line(name+"kinds of pages", len(x.Pages), len(y.Pages))
		for i := range min(len(x.Pages), len(y.Pages)) {
			p, q := x.Pages[i], y.Pages[i]
			page := fmt.Sprintf("%spage %d: ", name, i)
			line(page+"bytes", p.Bytes, q.Bytes)
			line(page+"heads", p.Heads, q.Heads)
			line(page+"dtype", p.DType, q.DType)
		}
	}
	line("blocks in the pool", a.Blocks, b.Blocks)
	line("blocks of a request", a.RequestBlocks, b.RequestBlocks)
	line("requests that fit", a.Requests, b.Requests)
	line("bytes zeroed for a request", a.Zeroed, b.Zeroed)
	line("bytes of states reset for it", a.Reset, b.Reset)
	if changed == 0 {
		fmt.Fprintln(out, "sizes are equal")
	} else if err := w.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\n%s\n", b.Moves)
	return err
}
