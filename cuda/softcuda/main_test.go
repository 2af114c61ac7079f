package softcuda_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

// built is the folder of what tests have built for each other, if any.
var built string

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if built != "" {
			os.RemoveAll(built)
		}
		os.Exit(code)
	}))
}
