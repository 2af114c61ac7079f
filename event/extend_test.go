package event_test

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/event"
)

func TestExtend32(t *testing.T) {
	var e event.Extend32
	steps := []struct {
		word uint32
		want uint64
		err  error
	}{
		{0, 0, nil}, {5, 5, nil}, {5, 5, nil}, {4, 5, event.ErrBackwards},
		{1<<31 + 4, 1<<31 + 4, nil},
	}
	for _, s := range steps {
		got, err := e.Next(s.word)
		require.ErrorIs(t, err, s.err)
		require.Equal(t, s.want, got)
	}
	for _, s := range []struct {
		word uint32
		want uint64
	}{{0xffff_ffff, 0xffff_ffff}, {0, 1 << 32}, {7, 1<<32 + 7}} {
		got, err := e.Next(s.word)
		require.NoError(t, err)
		require.Equal(t, s.want, got)
	}
	_, err := e.Next(0xffff_ffff)
	require.ErrorIs(t, err, event.ErrBackwards, "back across the wrap")
	require.Equal(t, uint64(1<<32+7), e.Last())
}

// Against a plain 64-bit counter, over several wraps.
func TestExtend32Twin(t *testing.T) {
	var e event.Extend32
	rnd := rand.New(rand.NewPCG(1, 2))
	count := uint64(0)
	for count < 1<<36 {
		count += rnd.Uint64N(1 << 31)
		got, err := e.Next(uint32(count))
		require.NoError(t, err)
		require.Equal(t, count, got)
	}
}
