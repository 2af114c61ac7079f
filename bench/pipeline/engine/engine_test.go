package engine

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/layout"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// config is the default run of bench/pipeline, with fewer requests.
func config(t testing.TB, requests int) Config {
	p, err := layout.NewPlan(Builtin(), layout.Options{})
	require.NoError(t, err)
	tr, err := trace.Generate(trace.GenerateOptions{Requests: requests})
	require.NoError(t, err)
	return Config{Plan: p, Trace: tr, Zero: p.NeedsZeroing, Weights: 6e9, Pool: 60e9, HBM: 4.8e12, NIC: 50e9,
		Latency: 10 * time.Microsecond, Host: 500 * time.Microsecond, Seed: 1}
}

func TestModes(t *testing.T) {
	for _, mode := range core.Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			t0 := time.Now()
			r, err := Run(context.Background(), config(t, 1000), mode)
			require.NoError(t, err)
			t.Logf("%v %+v", time.Since(t0), r)
		})
	}
}
