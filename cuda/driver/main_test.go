package driver_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kvgate/kvgate/cuda/cudatest"
)

func TestMain(m *testing.M) {
	// A driver reads them when it starts, once in a process.
	for name, value := range cudatest.Environment {
		if _, ok := os.LookupEnv(name); !ok {
			if err := os.Setenv(name, value); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
	goleak.VerifyTestMain(m)
}
