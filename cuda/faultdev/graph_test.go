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

// Each method of graphs asks under its own name, and says so where
// the device below lacks it.
func TestGraphsCanFail(t *testing.T) {
	d := open(t)
	boom := errors.New("boom")
	asked, fault := "", boom
	ask := func(c faultdev.Call) error { asked = c.Method; return fault }
	for _, below := range []cuda.Device{d, bare{d}} {
		x := faultdev.Wrap(below, ask)
		g := x.(cuda.Grapher)
		for name, call := range map[string]func() error{
			"BeginCapture":     func() error { return g.BeginCapture(0, 0) },
			"EndCapture":       func() error { _, err := g.EndCapture(0); return err },
			"CaptureStatus":    func() error { _, err := g.CaptureStatus(0); return err },
			"GraphSize":        func() error { _, err := g.GraphSize(0); return err },
			"Instantiate":      func() error { _, err := g.Instantiate(0); return err },
			"DestroyGraph":     func() error { return g.DestroyGraph(0) },
			"DestroyGraphExec": func() error { return g.DestroyGraphExec(0) },
		} {
			fault = boom
			require.Equal(t, boom, call(), name)
			require.Equal(t, name, asked)
			fault = nil
			if err := call(); below != cuda.Device(d) {
				require.ErrorIs(t, err, cuda.ErrNotSupported, name)
			} else {
				require.ErrorIs(t, err, cuda.ErrInvalidHandle, name)
			}
		}
	}
}
