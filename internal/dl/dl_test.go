package dl

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenErrorNamesEachTry(t *testing.T) {
	_, err := Open("libkvgate-not-there.so.1", "/nowhere/libkvgate.so")
	var e *OpenError
	require.ErrorAs(t, err, &e)
	require.ErrorContains(t, err, `"libkvgate-not-there.so.1"`)
	require.ErrorContains(t, err, `"/nowhere/libkvgate.so"`)
	require.True(t, errors.Is(err, ErrNoLibrary) || errors.Is(err, ErrNoCgo))
}

func TestOpenNothing(t *testing.T) {
	for _, names := range [][]string{nil, {""}, {"libm\x00.so"}} {
		_, err := Open(names...)
		require.Error(t, err)
	}
}
