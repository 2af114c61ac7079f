package testutil

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// recorder stands in for a test and notes how it ends.
type recorder struct {
	testing.TB
	ended string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.ended = "failed: " + fmt.Sprintf(format, args...)
	panic(r)
}
func (r *recorder) Skipf(format string, args ...any) {
	r.ended = "skipped: " + fmt.Sprintf(format, args...)
	panic(r)
}

func end(fn func(testing.TB)) string {
	r := &recorder{}
	func() {
		defer func() { _ = recover() }()
		fn(r)
	}()
	return r.ended
}

func TestSharedMissing(t *testing.T) {
	missing := func(t testing.TB) { Shared(t, "no such file") }
	t.Setenv("CI", "")
	t.Setenv("KVGATE_REQUIRE", "")
	require.Contains(t, end(missing), "skipped: reference file missing")
	t.Setenv("KVGATE_REQUIRE", "1")
	require.Contains(t, end(missing), "failed: reference file missing")
	t.Setenv("KVGATE_REQUIRE", "")
	t.Setenv("CI", "true")
	require.Contains(t, end(missing), "failed: reference file missing")
	t.Setenv("CI", "false")
	require.Contains(t, end(missing), "skipped: ")
}

func TestRoot(t *testing.T) {
	_, err := os.Stat(filepath.Join(Root(t), "internal", "testutil"))
	require.NoError(t, err)
}
