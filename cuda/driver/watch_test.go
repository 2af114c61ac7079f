//go:build cgo && linux

package driver_test

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
)

// A device may be found dead while it begins to be watched: the race detector
// looks on.
func TestDeathBesideWatch(t *testing.T) {
	for range 20 {
		d, err := openSoft(t, sim.Options{Real: true})
		require.NoError(t, err)
		var wg sync.WaitGroup
		wg.Go(func() {
			if err := d.Kill(cuda.ErrECC, "test"); err != nil {
				t.Error(err)
			}
		})
		if _, err := d.Watch(driver.WakeHelper); err != nil {
			require.ErrorIs(t, err, cuda.ErrECC)
		}
		wg.Wait()
	}
}
