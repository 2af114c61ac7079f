package cudatest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// testPeerAsks: a device dies while another waits for its event, and is asked
// after again.
func testPeerAsks(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	x.simulatedOnly("no page says what hardware does")
	sa, sb, p, e, f := x.stream(), y.stream(), x.alloc(64), y.event(), y.kernel("fill_index")
	h := x.imported(b, e)
	release := y.hold(sb)
	y.submit(func(c *cuda.Batch) {
		fillIndex(c, sb, f, 0x1000, 1, 1)
		c.Record(sb, e)
	})
	release()
	for what, err := range map[string]error{
		"a wait under way": a.SyncEvent(x.ctx, h),
		"a wait after":     a.SyncEvent(x.ctx, h),
		"a poll":           a.Poll([]cuda.Mark{{Event: h}}),
	} {
		require.ErrorIs(t, err, cuda.ErrInvalidContext, what)
		require.False(t, cuda.Sticky(err), "%s: %v", what, err)
		require.ErrorContains(t, err, b.Info().Name, what)
		require.ErrorContains(t, err, "dead", what)
	}
	require.ErrorIs(t, b.SyncStream(x.ctx, sb), cuda.ErrIllegalAddress)
	x.submit(func(c *cuda.Batch) { c.Fill8(sa, p, 5, 64) })
	x.sync(sa)
	require.Equal(t, byte(5), x.read(p, 64)[63])
}
