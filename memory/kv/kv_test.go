package kv

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestExpand(t *testing.T) {
	for _, c := range []struct {
		block Block
		ratio int
		want  KernelBlock
	}{
		{0, 1, 0}, {7, 1, 7}, {7, 4, 28}, {Pad, 4, -1}, {math.MinInt32, math.MaxInt, -1},
		{0, math.MaxInt32, 0}, {math.MaxInt32, 1, math.MaxInt32}, {1<<30 - 1, 2, 1<<31 - 2},
	} {
		got, err := c.block.Expand(c.ratio)
		require.NoError(t, err, c)
		require.Equal(t, c.want, got, c)
	}
	for _, c := range []struct {
		block Block
		ratio int
		says  string
	}{
		{7, 0, "block 7 of 0 kernel blocks"}, {Pad, 0, "at least 1"}, {7, -4, "at least 1"},
		{1 << 30, 2, "block 1073741824 of 2 kernel blocks: their ids go beyond 2147483647"},
		{math.MaxInt32, 2, "go beyond"}, {0, math.MaxInt32 + 1, "go beyond"}, {math.MaxInt32, math.MaxInt, "go beyond"},
		{1, 1 << 30 * 3 / 2, "go beyond"}, // the first fits, the last does not
	} {
		got, err := c.block.Expand(c.ratio)
		require.ErrorContains(t, err, c.says, c)
		require.Zero(t, got)
	}
}
