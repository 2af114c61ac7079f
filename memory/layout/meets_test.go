package layout

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// TestMeets compares with marking every byte.
func TestMeets(t *testing.T) {
	met, apart := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		table := func(name string, id kv.PoolID) (*Map, map[uint64]bool) {
			stride := rapid.Uint64Range(4, 24).Draw(t, name+" stride")
			tb := Table{Pool: id, Blocks: rapid.IntRange(1, 5).Draw(t, name+" blocks"), RealNull: true}
			tb.Segments = []Segment{{Base: rapid.Uint64Range(100, 260).Draw(t, name+" base"), Stride: stride,
				Page: rapid.Uint64Range(1, stride).Draw(t, name+" page")}}
			m, err := NewMap(tb)
			if err != nil {
				t.Fatal(err)
			}
			bytes := map[uint64]bool{}
			for b := range kv.Block(tb.Blocks) {
				for i := range tb.Segments[0].Page {
					bytes[tb.Segments[0].Address(b)+i] = true
				}
			}
			return m, bytes
		}
		a, ab := table("a", 0)
		b, bb := table("b", 1)
		want := false
		for at := range ab {
			want = want || bb[at]
		}
		block, got := a.Meets(b)
		require.Equal(t, want, got)
		if got {
			met++
			shares := false
			for i := range a.table.Segments[0].Page {
				shares = shares || bb[a.table.Segments[0].Address(block)+i]
			}
			require.True(t, shares, "block %d shares nothing", block)
		} else {
			apart++
		}
	})
	require.Positive(t, met)
	require.Positive(t, apart)
}
