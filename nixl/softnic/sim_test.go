package softnic_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

var _ softnic.Memory = (*sim.Memory)(nil)

// deviceRig is a device whose memory agent "gpu" reads into from p.
type deviceRig struct {
	*pair
	dev    *sim.Device
	gpu    nixl.Agent
	stream cuda.Stream
	peer   nixl.Peer
}

func newDeviceRig(t *testing.T, w *vtime.World, o softnic.Options) *deviceRig {
	dev, err := sim.New(sim.Options{World: w})
	require.NoError(t, err)
	r := &deviceRig{pair: newPair(t, w, o), dev: dev}
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	r.gpu, err = r.f.NewAgent("gpu", dev.Memory())
	require.NoError(t, err)
	r.peer = r.add(r.gpu, r.p)
	r.stream, err = dev.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	return r
}

func (r *deviceRig) alloc(n uint64, o cuda.AllocOptions) cuda.DevicePtr {
	r.t.Helper()
	p, err := r.dev.Alloc(n, o)
	require.NoError(r.t, err)
	_, err = r.gpu.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(p), Len: n}})
	require.NoError(r.t, err)
	return p
}

func (r *deviceRig) read(p cuda.DevicePtr, n uint64) nixl.Transfer {
	r.t.Helper()
	tr, err := r.gpu.NewTransfer(nixl.Spec{
		Op: nixl.Read, Peer: r.peer, LocalMemory: nixl.VRAM,
		Local:  []nixl.Descriptor{{Addr: uint64(p), Len: n}},
		Remote: []nixl.Descriptor{{Addr: r.pm.Addr(), Len: n}},
	})
	require.NoError(r.t, err)
	return tr
}

func (r *deviceRig) done(tr nixl.Transfer) error {
	return nixl.Wait(context.Background(), r.w, r.gpu, tr, r.w.Now()+10*time.Second)
}

func (r *deviceRig) content(p cuda.DevicePtr, n int) []byte {
	r.t.Helper()
	got := make([]byte, n)
	require.NoError(r.t, r.dev.Read(got, p))
	return got
}

// The race that all of this is about: zeroing behind a backlog, and a transfer
// that does not wait for it.
func TestTransferRacesWithZeroing(t *testing.T) {
	pacers(t, func(t *testing.T, w *vtime.World) {
		r := newDeviceRig(t, w, softnic.Options{})
		const n = 64 << 10
		block := r.alloc(n, cuda.AllocOptions{Name: "block"})
		backlog := r.alloc(4<<20, cuda.AllocOptions{Name: "backlog", CostScale: 16000})
		zero := func() {
			var b cuda.Batch
			b.Fill8(r.stream, backlog, 1, 4<<20)
			b.Fill8(r.stream, block, 0, n)
			require.NoError(t, r.dev.Submit(&b))
		}
		want := r.pm.Bytes()[:n]
		tr := r.read(block, n)

		zero()
		require.NoError(t, tr.Post())
		require.NoError(t, r.done(tr))
		require.NoError(t, r.dev.Sync(context.Background()))
		require.Equal(t, make([]byte, n), r.content(block, n), "arrived first, and was zeroed")

		zero()
		require.NoError(t, r.dev.Sync(context.Background()))
		require.NoError(t, tr.Post())
		require.NoError(t, r.done(tr))
		require.True(t, bytes.Equal(want, r.content(block, n)), "posted behind the zeroing, it stays")
	})
}

// What the fabric writes takes part in the device's memory bandwidth.
func TestSharesMemoryBandwidth(t *testing.T) {
	fill := func(beside bool) time.Duration {
		w := vtime.NewVirtual(vtime.Options{})
		r := newDeviceRig(t, w, softnic.Options{Bandwidth: 2e12, PostCost: softnic.None})
		p := r.alloc(1<<20, cuda.AllocOptions{CostScale: 1000})
		landing := r.alloc(1<<20, cuda.AllocOptions{CostScale: 4000})
		tr := r.read(landing, size)
		if beside {
			require.NoError(t, tr.Post())
		}
		var b cuda.Batch
		b.Fill8(r.stream, p, 0, 1<<20)
		d := took(w, func() {
			require.NoError(t, r.dev.Submit(&b))
			require.NoError(t, r.dev.Sync(context.Background()))
		})
		if beside {
			s, err := tr.Status()
			require.NoError(t, err)
			require.Equal(t, nixl.InProgress, s, "it was beside it all the while")
			require.NoError(t, r.done(tr))
		}
		return d
	}
	alone, shared := fill(false), fill(true)
	require.Greater(t, float64(shared), 1.5*float64(alone))
}

func TestDeviceMemoryFreedUnderATransfer(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	r := newDeviceRig(t, w, slowLink())
	p := r.alloc(size, cuda.AllocOptions{Name: "kv pool"})
	tr := r.read(p, size)
	require.NoError(t, tr.Post())
	r.sleep(time.Millisecond)
	require.NoError(t, r.dev.Free(p))
	err := r.done(tr)
	require.ErrorIs(t, err, nixl.ErrBackend)
	require.ErrorContains(t, err, "kv pool")
	// What spans two allocations is no memory.
	a, err := r.dev.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	b, err := r.dev.Alloc(4096, cuda.AllocOptions{})
	require.NoError(t, err)
	_, err = r.gpu.Register(nixl.VRAM, []nixl.Descriptor{{Addr: uint64(a), Len: uint64(b-a) + 1}})
	require.ErrorIs(t, err, nixl.ErrInvalid)
}
