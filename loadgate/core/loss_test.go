package core

import (
	"errors"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

// TestHolesOfALoad: what is missing of a block are exactly the bytes that did not
// arrive. Two holes are mended by a load each, and what lies between can be sent.
func TestHolesOfALoad(t *testing.T) {
	c := newCore(t, PerBlock, Pool{Name: "kv", Blocks: 4, BlockBytes: 100})
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	cause := errors.New("link down")
	transfer := func(kind Kind, off, n uint64) (Transfer, error) {
		return c.Transfer(TransferRequest{Kind: kind, Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.Range{Off: off, Len: n}}}})
	}
	load := func(off, n uint64, cause error) {
		id, err := transfer(Load, off, n)
		require.NoError(t, err)
		require.NoError(t, c.Posted(id))
		require.NoError(t, c.Finished(id, cause, true))
		c.Actions(nil)
	}
	load(0, 10, cause)
	load(50, 10, cause)
	_, err = transfer(Store, 5, 20)
	require.ErrorIs(t, err, ErrLost)
	require.ErrorIs(t, err, cause, "the cause is told")
	good, err := transfer(Store, 10, 40)
	require.NoError(t, err, "the bytes between the holes are good")
	require.NoError(t, c.Posted(good))
	require.NoError(t, c.Finished(good, nil, true))

	p, err := c.Plan(nil, []Access{{Tenancy: ten(1, 1), Range: kv.Range{Off: 55, Len: 1}}})
	require.NoError(t, err)
	require.ErrorIs(t, c.Prepare(p), cause)
	late, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	q, err := c.Plan([]Holder{late}, nil)
	require.NoError(t, err)
	require.ErrorIs(t, c.Prepare(q), cause, "a holder made after the failure is told the cause")

	load(50, 5, nil)
	load(0, 10, nil)
	require.ErrorIs(t, c.Prepare(q), ErrLost, "five bytes are still missing")
	load(40, 30, nil)
	require.NoError(t, c.Prepare(q))
	require.NoError(t, c.Prepare(p))
	require.Empty(t, c.losses)
}

// TestRanges holds the lists of missing bytes against a plain set.
func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []kv.Range
		var set [64]bool
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			r := kv.Range{Off: rapid.Uint64Range(0, 60).Draw(t, "off"), Len: rapid.Uint64Range(1, 20).Draw(t, "len")}
			r.Len = min(r.Len, 64-r.Off)
			add := rapid.Bool().Draw(t, "add")
			if add {
				list = addRange(list, r)
			} else {
				list = subtractRange(list, r)
			}
			for i := r.Off; i < r.End(); i++ {
				set[i] = add
			}
			var have [64]bool
			for k, x := range list {
				require.NotZero(t, x.Len)
				require.True(t, k == 0 || list[k-1].End() <= x.Off, "%v", list)
				for i := x.Off; i < x.End(); i++ {
					have[i] = true
				}
			}
			require.Equal(t, set, have)
		}
	})
}

// TestLongestLimit: a limit that no clock reaches is never due.
func TestLongestLimit(t *testing.T) {
	c, err := New([]Pool{{Blocks: 4, BlockBytes: 1, NeedsZero: true, Foreign: true}}, Options{HoldLimit: math.MaxInt64})
	require.NoError(t, err)
	require.NoError(t, c.Tick(1000))
	h, err := c.Hold(0, []kv.Tenancy{ten(1, 1)})
	require.NoError(t, err)
	_, err = c.Transfer(TransferRequest{Holder: h, Pieces: []Piece{{Tenancy: ten(1, 1), Bytes: kv.WholeBlock}}})
	require.NoError(t, err)
	require.Equal(t, kv.Never, c.Deadline())
	require.NoError(t, c.Tick(math.MaxInt64))
}

// TestLinesThatCanNotBeMarked: they are refused before anything is launched.
func TestLinesThatCanNotBeMarked(t *testing.T) {
	c := newCore(t, PerBlock)
	require.NoError(t, c.CheckLine(1<<lineBits-1))
	require.ErrorIs(t, c.CheckLine(0), ErrInvalid)
	require.ErrorIs(t, c.CheckLine(1<<lineBits), ErrInvalid)
	require.NoError(t, c.Fired(3, 1<<seqBits-maxOpenMarks-1))
	require.NoError(t, c.CheckLine(3))
	require.NoError(t, c.Fired(3, 1<<seqBits-maxOpenMarks))
	require.ErrorIs(t, c.CheckLine(3), ErrInvalid)
}
