package main

import (
	"bytes"
	"encoding/xml"
	"fmt"

	"github.com/kvgate/kvgate/memory/layout"
)

// The picture, in pixels.
const (
	barWidth  = 1000
	barHeight = 22
	rowHeight = 34
	labels    = 240 // left of the bars
	top       = 54
)

// colours of what a page is of.
var colours = map[layout.Kind]string{
	layout.FullAttention: "#3b6ea5", layout.SlidingWindow: "#5fa3c7", layout.ChunkedLocal: "#8fb8d9", layout.LatentAttention: "#6a4c93",
	layout.LatentWindow: "#9d7fc1", layout.SparseIndex: "#c58b2a", layout.CompressorState: "#4f8a5b", layout.IndexCompressorState: "#8ab58f",
	layout.Recurrent: "#b5504a",
}

// picture draws one block: a bar for each group, of its pages and their padding.
// All bars are as long as a block, since groups share its bytes.
func (r *report) picture() []byte {
	var b bytes.Buffer
	p := r.plan
	height := top + rowHeight*len(p.Groups) + 30
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="12">`+"\n",
		labels+barWidth+20, height)
	text := func(x, y int, s string) {
		fmt.Fprintf(&b, `<text x="%d" y="%d">`, x, y)
		_ = xml.EscapeText(&b, []byte(s)) // a Buffer takes everything
		b.WriteString("</text>\n")
	}
	text(10, 20, r.Layout)
	text(10, 38, fmt.Sprintf("one block of %d bytes; light: padding; grey: not used by the group", r.BlockBytes))
	at := func(offset uint64) float64 { return labels + barWidth*float64(offset)/float64(r.BlockBytes) }
	for g := range p.Groups {
		gr := &p.Groups[g]
		y := top + rowHeight*g
		text(10, y+15, fmt.Sprintf("%d: %d %v", g, len(gr.Pages), gr.Kind))
		box(&b, at(0), at(r.BlockBytes), y, "#dddddd", 1)
		var off uint64
		for i := range gr.Pages {
			pg := &gr.Pages[i]
			colour := colours[p.Model.Layers[pg.Layer].Kind]
			box(&b, at(off), at(off+pg.Bytes), y, colour, 0.35)
			box(&b, at(off), at(off+pg.Used), y, colour, 1)
			off += pg.Bytes
		}
	}
	b.WriteString("</svg>\n")
	return b.Bytes()
}

func box(b *bytes.Buffer, from, to float64, y int, colour string, opacity float64) {
	fmt.Fprintf(b, `<rect x="%.2f" y="%d" width="%.2f" height="%d" fill="%s" fill-opacity="%g" stroke="white" stroke-width="0.4"/>`+"\n",
		from, y, to-from, barHeight, colour, opacity)
}
