//go:build !cgo || !linux

package driver_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
)

func TestWithoutCgo(t *testing.T) {
	for name, open := range map[string]func() (*driver.Device, error){
		"open":  func() (*driver.Device, error) { return driver.Open(driver.Options{}) },
		"adopt": func() (*driver.Device, error) { return driver.Adopt(1, driver.Options{}) },
	} {
		d, err := open()
		require.Nil(t, d, name)
		require.ErrorIs(t, err, cuda.ErrNoDriver)
		require.ErrorContains(t, err, "built without cgo")
	}
}
