//go:build cgo && linux

package softcuda

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/kernels"
)

// The legacy default stream is made when it is first used: the driver and the
// kernels never use it, nor a stream that has an order with it.
func TestNobodyUsesTheLegacyStream(t *testing.T) {
	soft, err := Add(sim.Options{Real: true})
	require.NoError(t, err)
	defer func() { require.NoError(t, soft.Remove()) }()
	for source := driver.Wake(0); source <= driver.WakeWord; source++ {
		d, err := driver.Open(driver.Options{Library: Library{}, Device: soft.Ordinal()})
		require.NoError(t, err)
		if source != 0 {
			_, err := d.Watch(source)
			require.NoError(t, err)
		}
		set, err := kernels.Load(d)
		require.NoError(t, err)
		s, err := d.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
		e, err := d.NewEvent()
		require.NoError(t, err)
		p, err := d.Alloc(64, cuda.AllocOptions{})
		require.NoError(t, err)
		var b cuda.Batch
		b.Fill8(s, p, 1, 64)
		b.Copy(s, p, p+32, 32)
		b.Record(s, e)
		require.NoError(t, d.Submit(&b))
		require.NoError(t, d.Poll([]cuda.Mark{{Event: e}}))
		require.NoError(t, d.SyncStream(context.Background(), s))
		require.NoError(t, d.Sync(context.Background()))
		require.NoError(t, d.Write(p, make([]byte, 64)))
		require.NoError(t, d.Read(make([]byte, 64), p))
		soft.primary.mu.Lock()
		legacy, blocking, streams := soft.primary.legacy, len(soft.primary.blocking), len(soft.primary.streams)
		soft.primary.mu.Unlock() // Remove takes it, however the test ends
		require.Nil(t, legacy, "%v", source)
		require.Zero(t, blocking, "%v", source)
		require.NotZero(t, streams)
		require.NoError(t, set.Close())
		require.NoError(t, d.Close())
	}
}
