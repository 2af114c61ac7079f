// Package testutil has what tests of several packages share.
package testutil

import (
	"os"
	"path/filepath"
	"testing"
)

// Required reports whether what a test needs from outside has to be there:
// KVGATE_REQUIRE is set, or CI is true.
func Required() bool {
	return os.Getenv("KVGATE_REQUIRE") != "" || os.Getenv("CI") == "true"
}

// SkipOrFail ends the test: it fails where [Required] holds, else it is
// skipped.
func SkipOrFail(t testing.TB, format string, args ...any) {
	t.Helper()
	if Required() {
		t.Fatalf(format, args...)
	}
	t.Skipf(format, args...)
}

// Root returns the root of the module that the test runs in.
func Root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the working folder")
		}
		dir = up
	}
}

// Shared returns the path of a reference file in the folder shared beside the
// repository. Where it is missing the test is skipped, or fails if it is
// [Required].
func Shared(t testing.TB, elem ...string) string {
	t.Helper()
	p := filepath.Join(append([]string{filepath.Dir(Root(t)), "shared"}, elem...)...)
	if _, err := os.Stat(p); err != nil {
		SkipOrFail(t, "reference file missing: %v", err)
	}
	return p
}
