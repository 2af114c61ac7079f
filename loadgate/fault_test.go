package loadgate

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFault: a result that the core refuses is not passed over. The first one
// is returned from then on.
func TestFault(t *testing.T) {
	first := errors.New("first")
	g := &Gate{}
	g.must(nil)
	require.NoError(t, g.fault)
	g.must(first)
	g.must(errors.New("second"))
	require.ErrorIs(t, g.catchUp(), first)
	require.ErrorIs(t, g.ready("zero"), first)
}
