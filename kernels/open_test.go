package kernels

import (
	"testing"

	"github.com/kvgate/kvgate/cuda"
)

func openDevice(testing.TB) cuda.Device { return newMachine() }
