package testutil

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/internal/leak"
)

// Run runs a package's tests and then fails them for goroutines, streams,
// buffers and registries that they left behind, naming each with the stack that
// made it. Use it as os.Exit(testutil.Run(m)).
func Run(m *testing.M) int {
	leak.Enable()
	code := m.Run()
	if code != 0 {
		return code // a failed test leaves things open
	}
	for _, line := range leak.Report() {
		fmt.Fprintln(os.Stderr, "leak:", line)
		code = 1
	}
	if err := goleak.Find(); err != nil {
		fmt.Fprintln(os.Stderr, "leak:", err)
		code = 1
	}
	return code
}
