package ptx

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestEmbeddedKernels loads every PTX file that the module embeds for the GPU.
func TestEmbeddedKernels(t *testing.T) {
	var files []string
	for _, folder := range []string{"kernels", "kernels/writeback", "bench/live/standin"} {
		found, err := filepath.Glob("../../../" + folder + "/*.ptx")
		require.NoError(t, err)
		require.NotEmpty(t, found, folder)
		files = append(files, found...)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		require.NoError(t, err)
		m, err := Parse(filepath.Base(f), src)
		require.NoError(t, err)
		require.NotEmpty(t, m.Kernels())
	}
}
