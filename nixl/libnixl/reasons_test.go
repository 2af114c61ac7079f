//go:build linux

package libnixl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// Errors name what is wrong, and not a peer where none was asked for.
func TestReasons(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	_, err := p.a.PartialMetadata(99, nil)
	quiet(t, err, nixl.ErrInvalid)
	err = failed("prepare local", "", statusNotFound, nil)
	require.ErrorIs(t, err, nixl.ErrInvalid)
	require.False(t, errors.Is(err, nixl.ErrNoPeer))
	for _, backends := range [][]BackendConfig{{}, {{Plugin: "POSIX"}}} {
		a := agent(t, "alone", Config{Backends: backends})
		_, err := a.Metadata()
		quiet(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "agent alone has no backend that peers could reach it by")
	}
}
