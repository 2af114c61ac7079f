//go:build cgo && linux

package softcuda_test

import (
	"runtime"
	"testing"
	"time"
	"weak"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/memory"
)

// abandoned is what is left of a device and its memory when the program has let
// go of them while work is pending.
type abandoned struct {
	device weak.Pointer[driver.Device]
	buffer weak.Pointer[memory.Buffer]
	pinned weak.Pointer[memory.Pinned]
	batch  weak.Pointer[cuda.Batch]
	host   []byte // of the pinned memory, which is not Go's
	start  func() // the work, which is pending until then
}

const abandonedBytes = 1 << 20

// abandon submits a fill and a copy of its end to pinned memory, held back by a
// word, and returns without a reference to what they use.
func abandon(t *testing.T, soft *softcuda.Device) (a abandoned) {
	d, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	buffer, err := memory.NewBuffer(d, abandonedBytes, cuda.AllocOptions{})
	require.NoError(t, err)
	pinned, err := memory.NewPinned(d, 4096, cuda.AllocOptions{})
	require.NoError(t, err)
	clear(pinned.Host())
	dst, err := pinned.At(0, 4096)
	require.NoError(t, err)
	word, err := d.AllocPinned(64, cuda.AllocOptions{})
	require.NoError(t, err)
	w := word.Word(0)
	w.Store(0)
	b := new(cuda.Batch)
	b.WaitWord(s, word.Device, 1)
	b.Fill8(s, buffer.Ptr(), 0x5a, abandonedBytes)
	b.Copy(s, dst, buffer.Ptr()+abandonedBytes-4096, 4096)
	require.NoError(t, d.Submit(b))
	return abandoned{weak.Make(d), weak.Make(buffer), weak.Make(pinned), weak.Make(b), pinned.Host(), func() { w.Store(1) }}
}

// The collector takes the Go side of a device, of its memory and of a batch, but
// never the memory itself: work that is pending finds it.
func TestCollectorFreesNoMemory(t *testing.T) {
	soft := add(t, sim.Options{Real: true})
	_, before := softcuda.Held()
	a := abandon(t, soft)
	_, allocated := softcuda.Held()
	require.Equal(t, before+4, allocated, "a buffer, a pinned one, the word, and what the device copies through")
	for range 5 {
		runtime.GC()
	}
	require.Zero(t, a.host[4095], "the work is pending still")
	require.Nil(t, a.device.Value())
	require.Nil(t, a.buffer.Value())
	require.Nil(t, a.pinned.Value())
	require.Nil(t, a.batch.Value())
	a.start()
	require.NoError(t, soft.Sim().Sync(bg))
	for _, v := range a.host {
		require.EqualValues(t, 0x5a, v)
	}
	runtime.GC()
	require.NoError(t, soft.Sim().Clock().Sleep(bg, time.Millisecond)) // cleanups, if there were any, run on their own
	_, left := softcuda.Held()
	require.Equal(t, allocated, left)
}
