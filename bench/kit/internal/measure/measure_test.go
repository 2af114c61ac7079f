//go:build cgo && linux

package measure

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/kernels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var bg = context.Background()

// simulatedDevice is a device for one test, behind the driver's own interface.
func simulatedDevice(t *testing.T, slow float64) driver.Options {
	d, err := softcuda.Add(sim.Options{Real: true, Slow: slow, SMs: 4})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Remove()) })
	return driver.Options{Library: softcuda.Library{}, Device: d.Ordinal()}
}

func TestBandwidth(t *testing.T) {
	d, err := open(simulatedDevice(t, 0))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	cases := []bandwidthCase{
		{kernel: zeroKernel, shape: strided, blocks: 8, run: true},
		{kernel: resetKernel, shape: odd, blocks: 2, template: true, inMemory: true},
		{kernel: checksumKernel, shape: odd, blocks: 2},
	}
	var text strings.Builder
	r, err := bandwidth(bg, d, &text, cases)
	require.NoError(t, err)
	require.True(t, r.Simulated)
	require.Contains(t, text.String(), "SIMULATED: ")
	require.Len(t, r.Rows, 3)
	for i, row := range r.Rows {
		require.Equal(t, cases[i].kernel, row.Kernel)
		require.Positive(t, row.Rate)
		require.Positive(t, row.Memset.Rate)
		require.InDelta(t, row.Rate/row.Memset.Rate, row.Memset.Ratio, 1e-9)
		require.Equal(t, simulated.samples, row.Seconds.N)
		require.LessOrEqual(t, row.Seconds.Min, row.Seconds.Median)
		require.LessOrEqual(t, row.Seconds.Median, row.Seconds.Max)
		require.InDelta(t, float64(row.Bytes)/row.Seconds.Median, row.Rate, 1)
	}
	require.Equal(t, uint64(4*8<<10), r.Rows[0].Bytes, "at a rehearsal's size")
	require.Positive(t, r.Rows[0].Rows.Rate)
	require.Nil(t, r.Rows[1].Rows)
	require.Equal(t, "memory", r.Rows[1].IDs)
	require.Equal(t, "template", r.Rows[1].To)

	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err = bandwidth(ctx, d, &text, cases)
	require.ErrorIs(t, err, context.Canceled)
}

// A kernel that leaves a byte as it was is no fast one.
func TestWrongBytesAreNoticed(t *testing.T) {
	d, err := open(simulatedDevice(t, 0))
	require.NoError(t, err)
	defer func() { require.NoError(t, d.Close()) }()
	set, err := kernels.Load(d.Device)
	require.NoError(t, err)
	m := &meter{device: d, set: set, effort: simulated, rand: rand.New(rand.NewPCG(1, 2))}
	m.base, m.size, err = d.pool(4 << 20)
	require.NoError(t, err)
	for _, c := range []bandwidthCase{
		{kernel: zeroKernel, shape: odd, blocks: 3},
		{kernel: resetKernel, shape: odd, blocks: 3, template: true},
		{kernel: checksumKernel, shape: odd, blocks: 3, inMemory: true},
	} {
		j, err := m.prepare(c)
		require.NoError(t, err)
		require.NoError(t, j.check())
		last := cuda.DevicePtr(j.table.Layout().Segments[5].Address(j.used[2])) + 77
		b := make([]byte, 1)
		require.NoError(t, d.Read(b, last))
		b[0]++
		require.NoError(t, d.Write(last, b))
		require.Error(t, j.verify(), c.kernel)
		require.NoError(t, j.close())
	}
	_, err = m.prepare(bandwidthCase{kernel: zeroKernel, shape: merged, blocks: 1})
	require.ErrorContains(t, err, "no room for two blocks")
}

// Every case has room on hardware and in a rehearsal.
func TestCasesFit(t *testing.T) {
	for _, e := range []effort{onHardware, simulated} {
		for _, c := range bandwidthCases {
			s := c.shape
			s.page = min(s.page, e.page)
			l, err := s.table(1<<40, e.pool)
			require.NoError(t, err)
			require.GreaterOrEqual(t, l.Blocks/2, min(c.blocks, e.blocks), c.shape.name)
			for _, seg := range l.Segments {
				require.LessOrEqual(t, seg.Base+uint64(l.Blocks-1)*seg.Stride+seg.Page, uint64(1<<40)+e.pool)
			}
		}
	}
}

func TestWake(t *testing.T) {
	o := simulatedDevice(t, 50)
	r := &Wakes{}
	for _, source := range []driver.Wake{0, driver.WakeWord} {
		row, err := r.way(bg, o, source, source != 0)
		require.NoError(t, err)
		require.Equal(t, WakeWays[source], row.Way)
		rounds := row.Fence.N + row.Post.N + row.Discarded
		require.GreaterOrEqual(t, rounds, 20)
		require.Equal(t, source != 0, row.Native != nil)
		if source != 0 {
			require.Equal(t, row.Fence.N+row.Post.N, row.Native.N)
		}
	}
	require.True(t, r.Simulated)
}

func TestStep(t *testing.T) {
	var text strings.Builder
	r, err := Step(bg, &text, simulatedDevice(t, 0))
	require.NoError(t, err)
	require.Contains(t, text.String(), "SIMULATED: ")
	require.Len(t, r.Rows, len(StepRows))
	for i, row := range r.Rows {
		require.Equal(t, StepRows[i], row.What)
		require.Positive(t, row.Host.N)
		require.GreaterOrEqual(t, row.Crossings, 1.0) // the simulator, in this process, has some of its own
	}
}

func TestSummaries(t *testing.T) {
	require.Equal(t, Spread{Median: 2, Min: 1, Max: 9, N: 3}, spreadOf([]float64{9, 1, 2}))
	require.Zero(t, spreadOf(nil))
	require.Equal(t, Late{P50: 2, P99: 3, Max: 3, N: 3}, lateOf([]int64{3000, 1000, 2000}))
	require.Zero(t, lateOf(nil))
}
