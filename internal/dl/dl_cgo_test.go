//go:build cgo && linux

package dl

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestOpenTakesTheFirstThatLoads(t *testing.T) {
	l, err := Open("libkvgate-not-there.so.1", "libm.so.6", "libc.so.6")
	require.NoError(t, err)
	defer l.Close()
	require.Equal(t, "libm.so.6", l.Name())
	require.True(t, filepath.IsAbs(l.Path()), l.Path())
	_, err = os.Stat(l.Path())
	require.NoError(t, err)
}

func TestOpenSaysWhyAFileIsNoLibrary(t *testing.T) {
	p := filepath.Join(t.TempDir(), "libtext.so")
	require.NoError(t, os.WriteFile(p, bytes.Repeat([]byte("text"), 1024), 0o644))
	_, err := Open("libkvgate-not-there.so.1", p)
	require.ErrorIs(t, err, ErrBadLibrary)
	require.NotErrorIs(t, err, ErrNoLibrary)
	require.ErrorContains(t, err, "dl: library can not be loaded: ")
	require.ErrorContains(t, err, "invalid ELF header")

	require.NoError(t, os.Truncate(p, 0))
	_, err = Open(p)
	require.ErrorIs(t, err, ErrBadLibrary)
	require.ErrorContains(t, err, "file too short")

	require.NoError(t, os.Remove(p))
	_, err = Open(p, "libkvgate-not-there.so.1")
	require.ErrorIs(t, err, ErrNoLibrary)
	require.NotErrorIs(t, err, ErrBadLibrary)
}

func TestMissingIsToldFromBroken(t *testing.T) {
	for reason, want := range map[string]bool{
		"libx.so.1: cannot open shared object file: No such file or directory":                         true,
		"libneeded.so.2: cannot open shared object file: No such file or directory":                    false,
		"libx.so.1: cannot open shared object file: Permission denied":                                 false,
		"/usr/lib/libx.so.1: file too short":                                                           false,
		"Error loading shared library libx.so.1: No such file or directory":                            true,
		"Error loading shared library libneeded.so.2: No such file or directory (needed by libx.so.1)": false,
	} {
		require.Equal(t, want, missing("libx.so.1", reason), reason)
	}
}

func TestSymbol(t *testing.T) {
	l, err := Open("libm.so.6")
	require.NoError(t, err)
	p, err := l.Symbol("cos")
	require.NoError(t, err)
	require.NotNil(t, p)
	q, err := l.Symbol("cos")
	require.NoError(t, err)
	require.Equal(t, p, q)

	_, err = l.Symbol("kvgate_has_no_such_symbol")
	require.ErrorIs(t, err, ErrNoSymbol)
	require.ErrorContains(t, err, "kvgate_has_no_such_symbol")
	require.ErrorContains(t, err, l.Path())
	_, err = l.Symbol("cos\x00sin")
	require.ErrorIs(t, err, ErrNoSymbol)

	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.Symbol("cos")
	require.ErrorIs(t, err, ErrClosed)
}

// Messages of the loader belong to a thread: goroutines that fail side by side
// must each get their own.
func TestReasonsAreNotMixedUp(t *testing.T) {
	l, err := Open("libc.so.6")
	require.NoError(t, err)
	defer l.Close()
	var wg sync.WaitGroup
	for g := range 8 {
		name := string(rune('a'+g)) + "_kvgate_missing"
		wg.Go(func() {
			for range 200 {
				if _, err := l.Symbol(name); err == nil || !strings.Contains(err.Error(), "undefined symbol: "+name) {
					t.Errorf("asked for %s: %v", name, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
