package faultdev_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
)

// bare is a device without anything optional.
type bare struct{ cuda.Device }

// Each method of graphs and pools asks under its own name, and says so where
// the device below lacks it.
func TestGraphsAndPoolsCanFail(t *testing.T) {
	d := open(t)
	boom := errors.New("boom")
	asked, fault := "", boom
	ask := func(c faultdev.Call) error { asked = c.Method; return fault }
	for _, below := range []cuda.Device{d, bare{d}} {
		x := faultdev.Wrap(below, ask)
		g, a := x.(cuda.Grapher), x.(cuda.StreamAllocator)
		for name, call := range map[string]func() error{
			"BeginCapture":     func() error { return g.BeginCapture(0, 0) },
			"EndCapture":       func() error { _, err := g.EndCapture(0); return err },
			"CaptureStatus":    func() error { _, err := g.CaptureStatus(0); return err },
			"GraphSize":        func() error { _, err := g.GraphSize(0); return err },
			"Instantiate":      func() error { _, err := g.Instantiate(0); return err },
			"DestroyGraph":     func() error { return g.DestroyGraph(0) },
			"DestroyGraphExec": func() error { return g.DestroyGraphExec(0) },
			"AllocAsync":       func() error { _, err := a.AllocAsync(0, 1, 0, cuda.AllocOptions{}); return err },
			"FreeAsync":        func() error { return a.FreeAsync(0, 0) },
			"NewPool":          func() error { _, err := a.NewPool(""); return err },
			"DestroyPool":      func() error { return a.DestroyPool(1) },
			"PoolAttribute":    func() error { _, err := a.PoolAttribute(1, 1); return err },
			"SetPoolAttribute": func() error { return a.SetPoolAttribute(1, 1, 1) },
			"TrimPool":         func() error { return a.TrimPool(1, 0) },
		} {
			fault = boom
			require.Equal(t, boom, call(), name)
			require.Equal(t, name, asked)
			fault = nil
			if err := call(); below != cuda.Device(d) {
				require.ErrorIs(t, err, cuda.ErrNotSupported, name)
			} else if name != "NewPool" {
				require.ErrorIs(t, err, cuda.ErrInvalidHandle, name)
			}
		}
	}
}
