package sim

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// nic calls a method of the NIC's memory as a fabric does.
func (r *rig) nic(fn func(n *NIC) error) {
	r.t.Helper()
	r.world.Enter(0)
	defer r.world.Exit()
	require.NoError(r.t, fn(r.NIC()))
}

func (r *rig) get(p cuda.DevicePtr, n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	require.NoError(r.t, r.Read(b, p))
	return b
}

func TestWritesOfANICAreLate(t *testing.T) {
	r := newRig(t, Options{NICWritesLate: true})
	require.Equal(t, cuda.RDMA{Supported: true, NeedsFlush: true, CanFlush: true}, r.RDMA())
	p, q, s := r.alloc("p", 16), r.alloc("q", 16), r.stream("s")
	require.NoError(t, r.Write(p, bytes.Repeat([]byte{1}, 16)))
	write := func(at cuda.DevicePtr, b ...byte) {
		t.Helper()
		r.nic(func(n *NIC) error { return n.Write(uint64(at), b) })
	}
	write(p+2, 7, 7, 7, 7)
	write(p+4, 8)
	require.Equal(t, bytes.Repeat([]byte{1}, 16), r.get(p, 16), "the host")
	r.submit(func(b *cuda.Batch) { b.Copy(s, q, p, 16) })
	require.NoError(t, r.Sync(bg))
	require.Equal(t, bytes.Repeat([]byte{1}, 16), r.get(q, 16), "the device")
	seen := make([]byte, 4)
	r.nic(func(n *NIC) error { return n.Read(uint64(p)+3, seen) })
	require.Equal(t, []byte{7, 8, 7, 1}, seen, "the NIC")
	r.nic(func(n *NIC) error { return n.Read(uint64(p), seen) })
	require.Equal(t, []byte{1, 1, 7, 7}, seen)

	gone := r.alloc("gone", 16)
	write(gone, 9)
	require.NoError(t, r.Free(gone))
	require.NoError(t, r.FlushRDMA())
	require.Equal(t, []byte{1, 1, 7, 7, 8, 7, 1}, r.get(p, 7))
	r.submit(func(b *cuda.Batch) { b.Copy(s, q, p, 16) })
	require.NoError(t, r.Sync(bg))
	require.Equal(t, []byte{1, 1, 7, 7, 8, 7, 1}, r.get(q, 7))

	r.world.Enter(0)
	require.ErrorIs(t, r.NIC().Write(uint64(p)+15, []byte{1, 1}), cuda.ErrIllegalAddress)
	require.True(t, r.NIC().Owns(uint64(p), 16))
	require.False(t, r.NIC().Owns(uint64(p), 17))
	r.world.Exit()
}

func TestWritesOfANICAreSeenAtOnce(t *testing.T) {
	r := newRig(t, Options{})
	require.Equal(t, cuda.RDMA{Supported: true, CanFlush: true}, r.RDMA())
	p := r.alloc("p", 16)
	r.nic(func(n *NIC) error { return n.Write(uint64(p), []byte{3}) })
	require.Equal(t, []byte{3}, r.get(p, 1))
	require.NoError(t, r.FlushRDMA())
}

func TestPrepareRDMA(t *testing.T) {
	r := newRig(t, Options{})
	p, h := r.alloc("p", 256), r.pinned("h", 64)
	for _, c := range []struct {
		what string
		at   cuda.DevicePtr
		size uint64
		want cuda.MemorySync
		is   error
	}{
		{"device memory", p, 256, cuda.SyncRange, nil},
		{"a part", p + 255, 1, cuda.SyncRange, nil},
		{"host memory", h.Device, 64, cuda.SyncNotNeeded, nil},
		{"over the end", p, 257, 0, cuda.ErrInvalidValue},
		{"nothing", p, 0, 0, nil},
		{"nowhere", 4096, 1, 0, cuda.ErrInvalidValue},
	} {
		before := r.world.Now()
		got, err := r.PrepareRDMA(c.at, c.size)
		require.ErrorIs(t, err, c.is, c.what)
		require.Equal(t, c.want, got, c.what)
		require.Equal(t, before, r.world.Now(), "no time passes")
	}
	require.NoError(t, r.Kill(cuda.ErrECC, "a test"))
	_, err := r.PrepareRDMA(p, 1)
	require.ErrorIs(t, err, cuda.ErrECC)
	require.ErrorIs(t, r.FlushRDMA(), cuda.ErrECC)
}
