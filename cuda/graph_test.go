package cuda

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBatchOfGraphs(t *testing.T) {
	var b Batch
	b.Record(7, 1)
	b.LaunchGraph(9, 33)
	require.Equal(t, Command{Op: OpLaunchGraph, Stream: 1, A: 33}, b.Commands()[1])
	require.False(t, b.RefusesCapture())
	b.RefuseCapture()
	part := b.Part(1, 2)
	require.True(t, part.RefusesCapture())
	b.Reset()
	require.True(t, b.RefusesCapture(), "it stays over Reset")
}

func TestNamesOfCaptures(t *testing.T) {
	require.Equal(t, "thread-local", CaptureThreadLocal.String())
	require.Equal(t, "capture mode 9", CaptureMode(9).String())
	require.Equal(t, "capture invalidated", CaptureInvalidated.String())
	require.Equal(t, "capture status 9", CaptureStatus(9).String())
}
