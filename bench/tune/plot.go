package main

import (
	"fmt"
	"math"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"

	"github.com/kvgate/kvgate/kernels"
)

func defaults() candidate {
	d := kernels.DefaultTuning()
	return candidate{d.Variant, d.Tile, d.BlocksPerSM}
}

// plot draws the cost against the size of tiles: a line for each number of thread
// blocks, of the best variant, and one for each other variant, of the best number.
func (r *result) plot(path string) error {
	p := plot.New()
	p.Title.Text = "Zeroing on " + r.Device.Name
	p.Y.Label.Text = "time, the defaults being 1"
	if r.Device.Simulated {
		p.Title.Text = "Zeroing on a simulated device"
		p.Y.Label.Text = "what simulating takes, the defaults being 1"
	}
	if r.Counts {
		p.Y.Label.Text = "instructions and sectors, the defaults being 1"
	}
	p.X.Label.Text = "tile, KiB"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = plot.TickerFunc(func(lo, hi float64) (ticks []plot.Tick) {
		for v := 1.0; v <= hi; v *= 2 {
			if v >= lo {
				ticks = append(ticks, plot.Tick{Value: v, Label: fmt.Sprint(v)})
			}
		}
		return ticks
	})
	p.Legend.Top, p.Legend.Left = true, true
	best := r.Rows[0].candidate
	lines := map[string]plotter.XYs{}
	var names []string
	for i := range r.Rows {
		c := &r.Rows[i]
		var name string
		switch {
		case c.Err != nil || math.IsInf(c.Cost, 0):
			continue
		case c.Variant == best.Variant:
			name = fmt.Sprintf("%v, %d blocks an SM", c.Variant, c.BlocksPerSM)
		case c.BlocksPerSM == best.BlocksPerSM:
			name = fmt.Sprintf("%v, %d blocks an SM", c.Variant, c.BlocksPerSM)
		default:
			continue
		}
		if lines[name] == nil {
			names = append(names, name)
		}
		lines[name] = append(lines[name], plotter.XY{X: float64(c.Tile) / 1024, Y: c.Cost})
	}
	slices.Sort(names)
	var args []any
	for _, n := range names {
		slices.SortFunc(lines[n], func(a, b plotter.XY) int { return int(a.X - b.X) })
		args = append(args, n, lines[n])
	}
	if err := plotutil.AddLinePoints(p, args...); err != nil {
		return err
	}
	return p.Save(9*vg.Inch, 6*vg.Inch, path)
}
