package cuda_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// TestBatchAppend: commands come over with copies of their arguments and their
// own streams, whatever is in the batch before.
func TestBatchAppend(t *testing.T) {
	var from, to, want cuda.Batch
	g := cuda.Geometry{Grid: [3]uint32{3, 2, 1}, Block: [3]uint16{32, 1, 1}, Shared: 64}
	fill := func(b *cuda.Batch) {
		copy(b.Launch(7, 11, g, 5), "first")
		b.Copy(9, 1, 2, 3)
		copy(b.Launch(7, 12, g, 6), "second")
		b.Launch(7, 13, g, cuda.MaxArgBytes+1) // refused when it is submitted
		b.Fill32(8, 4, 5, 6)
	}
	for _, b := range []*cuda.Batch{&to, &want} {
		copy(b.Launch(9, 10, g, 3), "old")
	}
	fill(&from)
	fill(&want)
	to.Append(&from, 0, 2)
	to.Append(&from, 2, from.Len())
	require.Equal(t, want.Commands(), to.Commands())
	require.Equal(t, want.Streams(), to.Streams())
	require.Equal(t, want.Arena(), to.Arena())
	from.Reset()
	copy(from.Launch(7, 11, g, 6), "others")
	require.Equal(t, want.Arena(), to.Arena(), "the arguments were not copied")
}
