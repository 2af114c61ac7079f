package memory_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/memory"
)

func TestBuffer(t *testing.T) {
	dev := noopdev.New(noopdev.Options{Memory: 1000})
	_, err := memory.NewBuffer(dev, 2000, cuda.AllocOptions{Name: "big"})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.ErrorContains(t, err, "big")
	b, err := memory.NewBuffer(dev, 1000, cuda.AllocOptions{Name: "kv"})
	require.NoError(t, err)
	p, err := b.At(1000, 0)
	require.NoError(t, err)
	require.Equal(t, b.Ptr()+1000, p)
	for _, c := range [][2]uint64{{1000, 1}, {1001, 0}, {1, 1000}, {math.MaxUint64, 2}, {2, math.MaxUint64}} {
		_, err := b.At(c[0], c[1])
		require.ErrorIs(t, err, memory.ErrOutOfRange)
	}
	require.ErrorIs(t, b.Read(make([]byte, 2), 999), memory.ErrOutOfRange)
	require.ErrorIs(t, b.Write(999, make([]byte, 2)), memory.ErrOutOfRange)
	require.NoError(t, b.Write(998, make([]byte, 2)))
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	require.Zero(t, b.Ptr())
	_, err = b.At(0, 1)
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.ErrorIs(t, b.Write(0, []byte{1}), cuda.ErrClosed)
	require.ErrorIs(t, b.Read([]byte{1}, 0), cuda.ErrClosed)
	require.Zero(t, dev.LiveBytes())
}

func TestPinned(t *testing.T) {
	dev := noopdev.New(noopdev.Options{})
	_, err := memory.NewPinned(dev, 0, cuda.AllocOptions{Name: "none"})
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	p, err := memory.NewPinned(dev, 100, cuda.AllocOptions{Name: "ids"})
	require.NoError(t, err)
	require.Len(t, p.Host(), 100)
	_, err = p.At(99, 1)
	require.NoError(t, err)
	_, err = p.At(99, 2)
	require.ErrorIs(t, err, memory.ErrOutOfRange)
	require.NoError(t, p.Close())
	require.NoError(t, p.Close())
	require.Nil(t, p.Host())
	_, err = p.At(0, 1)
	require.ErrorIs(t, err, cuda.ErrClosed)
	require.Zero(t, dev.LiveBytes())
}
