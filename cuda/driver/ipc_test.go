//go:build cgo && linux

package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

func TestIPCWithoutTheSymbols(t *testing.T) {
	d, err := openSoft(t, sim.Options{Real: true}, "cuIpcGetMemHandle", "cuIpcOpenMemHandle_v2")
	require.NoError(t, err)
	p, err := d.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	_, err = d.ExportMemory(p)
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuIpcGetMemHandle")
	_, err = d.OpenMemory(cuda.MemoryHandle{})
	require.ErrorIs(t, err, cuda.ErrNotSupported)
	require.ErrorContains(t, err, "cuIpcOpenMemHandle_v2")
	require.ErrorIs(t, d.CloseMemory(p), cuda.ErrInvalidValue, "nothing is open")
}
