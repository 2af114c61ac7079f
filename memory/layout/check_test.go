package layout

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

func TestCheckIDs(t *testing.T) {
	kvPool := Table{Pool: 7, Blocks: 10}
	rows := Table{Blocks: 10, RealNull: true}
	for name, c := range map[string]struct {
		table Table
		ids   []kv.Block
		err   error
		says  string
	}{
		"none":            {kvPool, nil, nil, ""},
		"good":            {kvPool, []kv.Block{1, 9, 9, 5}, nil, ""},
		"padding":         {kvPool, []kv.Block{1, kv.Pad, math.MinInt32, 2}, nil, ""},
		"null":            {kvPool, []kv.Block{1, 0}, ErrNull, "pool 7: id 1"},
		"row 0 is real":   {rows, []kv.Block{0, 9}, nil, ""},
		"too high":        {kvPool, []kv.Block{3, -1, 10}, ErrRange, "id 2 of the list is block 10 of 10"},
		"much too high":   {rows, []kv.Block{math.MaxInt32}, ErrRange, "block 2147483647 of 10"},
		"only a null":     {Table{Blocks: 1}, []kv.Block{0}, ErrNull, "id 0"},
		"beyond the null": {Table{Blocks: 1}, []kv.Block{1}, ErrRange, "block 1 of 1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.table.CheckIDs(c.ids)
			require.ErrorIs(t, err, c.err)
			if c.err != nil {
				require.ErrorContains(t, err, c.says)
			}
		})
	}
}
