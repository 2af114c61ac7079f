package memory_test

import (
	"os"
	"testing"

	"github.com/kvgate/kvgate/internal/testutil"
)

func TestMain(m *testing.M) { os.Exit(testutil.Run(m)) }
