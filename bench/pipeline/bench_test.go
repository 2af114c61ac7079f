package main

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/pipeline/engine"
	"github.com/kvgate/kvgate/loadgate/core"
)

// BenchmarkPipeline makes the default run in each mode, shortened with -short.
// Its metrics are simulated; ns/op is what the simulation takes.
func BenchmarkPipeline(b *testing.B) {
	o, err := parse(nil)
	require.NoError(b, err)
	if testing.Short() {
		o.requests = 200
	}
	j, err := o.prepare()
	require.NoError(b, err)
	ungated := 0.0
	for _, mode := range core.Modes() {
		b.Run(mode.String(), func(b *testing.B) {
			var r engine.Result
			for b.Loop() {
				if r, err = engine.Run(context.Background(), j.seeded(0), mode); err != nil {
					b.Fatal(err)
				}
			}
			if mode.Gated() && r.Corrupted() {
				b.Fatalf("%+v", r)
			}
			if mode != core.Ungated && ungated == 0 { // it was not asked for
				u, err := engine.Run(context.Background(), j.seeded(0), core.Ungated)
				require.NoError(b, err)
				ungated = u.TokensPerS
			} else if mode == core.Ungated {
				ungated = r.TokensPerS
			}
			b.ReportMetric(r.TokensPerS, "sim-tok/s")
			b.ReportMetric(100*(1-r.TokensPerS/ungated), "overhead-%")
			b.ReportMetric(r.HostBlocked, "host-blocked-ms")
		})
	}
}
