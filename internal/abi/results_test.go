package abi_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var (
	results = regexp.MustCompile(`(?s)typedef enum cudaError_enum \{(.*?)\} CUresult;`)
	result  = regexp.MustCompile(`(?s)/\*\*((?:[^*]|\*[^/])*)\*/\s*(CUDA_\w+)\s*=\s*(\d+)`)
)

// A code is sticky where NVIDIA's cuda.h says that the process or context is over, and
// where that is named here.
func TestStickyResultsAgainstVendor(t *testing.T) {
	also := map[cuda.Code]bool{
		cuda.ErrECC:              true, // memory can not be trusted any more
		cuda.ErrNVLink:           true, // the same
		cuda.ErrContextDestroyed: true, // no call will do any more
	}
	src, err := os.ReadFile(filepath.Join(vendorHeaders(t), "cuda.h"))
	require.NoError(t, err)
	list := results.FindSubmatch(src)
	require.NotNil(t, list)
	found, over := map[cuda.Code]string{}, 0
	for _, m := range result.FindAllStringSubmatch(string(list[1]), -1) {
		n, err := strconv.Atoi(m[3])
		require.NoError(t, err)
		c := cuda.Code(n)
		found[c] = m[2]
		says := strings.Join(strings.Fields(strings.ReplaceAll(m[1], "*", " ")), " ")
		fatal := strings.Contains(says, "process must be terminated and relaunched") || strings.Contains(says, "context cannot be used anymore")
		if fatal {
			over++
			require.Equal(t, m[2], c.String())
		}
		require.Equal(t, fatal || also[c], c.Sticky(), "%s (%d): %s", m[2], n, says)
		if name := c.String(); !strings.HasPrefix(name, "CUDA_ERROR(") {
			require.Equal(t, m[2], name)
		}
	}
	require.Greater(t, len(found), 90)
	require.Greater(t, over, 10)
	for c := range also {
		require.Contains(t, found, c)
	}
	for c := cuda.Code(0); c < 2000; c++ {
		if c.Sticky() {
			require.Contains(t, found, c)
		}
	}
}
