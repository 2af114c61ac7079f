package softnic_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// took runs fn and returns how much model time it took.
func took(w *vtime.World, fn func()) time.Duration {
	t := w.Now()
	fn()
	return w.Now() - t
}

func near(t *testing.T, want, got time.Duration) {
	t.Helper()
	require.InEpsilon(t, float64(want), float64(got), 0.02, "want %v, took %v", want, got)
}

// moved posts the specs at once and returns how long until all are done.
func (x *pair) moved(specs ...nixl.Spec) time.Duration {
	x.t.Helper()
	var ts []nixl.Transfer
	for _, s := range specs {
		ts = append(ts, x.transfer(s))
	}
	return took(x.w, func() {
		for _, tr := range ts {
			require.NoError(x.t, tr.Post())
		}
		for _, tr := range ts {
			require.NoError(x.t, x.wait(tr))
		}
	})
}

func TestCostsOfCalls(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	x := newPair(t, w, softnic.Options{})
	s := x.spec(nixl.Read, 0, 100, 64)
	var tr nixl.Transfer
	require.Equal(t, softnic.DefaultMakeCost+100*softnic.DefaultMakePerDescriptor, took(w, func() { tr = x.transfer(s) }))
	require.Equal(t, softnic.DefaultPostCost+100*softnic.DefaultPostPerDescriptor, took(w, func() { require.NoError(t, tr.Post()) }))
	require.Equal(t, softnic.DefaultStatusCost, took(w, func() { _, _ = tr.Status() }))
	require.NoError(t, x.wait(tr))
	require.Equal(t, softnic.DefaultStatusCost, took(w, func() { _, _ = x.p.Notifications(nil) }))
}

// While later entries are still being posted the earlier ones land.
func TestEntriesLandDuringThePost(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	x := newPair(t, w, softnic.Options{})
	tr := x.transfer(x.spec(nixl.Write, 0, 512, 64))
	clear(x.pm.Bytes())
	for i := range x.dm.Bytes() {
		x.dm.Bytes()[i] = 5
	}
	require.NoError(t, tr.Post())
	n := present(x.pm.Bytes())
	require.Greater(t, n, 64*400)
	require.Less(t, n, 64*512)
	require.NoError(t, x.wait(tr))
}

func TestBandwidth(t *testing.T) {
	o := slowLink()
	o.PostCost = softnic.None
	one := time.Duration(float64(size) / 1e8 * 1e9)
	t.Run("alone", func(t *testing.T) {
		x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
		near(t, one, x.moved(x.spec(nixl.Read, 0, 1, size)))
		near(t, one, x.moved(x.spec(nixl.Write, 0, 1, size)))
	})
	t.Run("shared", func(t *testing.T) {
		x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
		near(t, one, x.moved(x.spec(nixl.Read, 0, 1, size/2), x.spec(nixl.Read, size/2, 1, size/2)))
	})
	t.Run("both directions", func(t *testing.T) {
		x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
		near(t, one/2, x.moved(x.spec(nixl.Read, 0, 1, size/2), x.spec(nixl.Write, size/2, 1, size/2)))
	})
	t.Run("slowed world", func(t *testing.T) {
		w := vtime.NewReal(vtime.Options{}, 5)
		x := newPair(t, w, o)
		require.GreaterOrEqual(t, x.moved(x.spec(nixl.Read, 0, 1, size)), 5*one)
	})
	t.Run("memory is the bottleneck", func(t *testing.T) {
		w := vtime.NewVirtual(vtime.Options{})
		x := newPair(t, w, o)
		m := &foreign{base: 1 << 40, data: make([]byte, size), shared: vtime.NewShared(w, "memory", 1e7)}
		x.foreign(m)
		near(t, 10*one, x.moved(x.spec(nixl.Read, 0, 1, size)))
		require.Zero(t, m.shared.Busy())
	})
	t.Run("scale", func(t *testing.T) {
		// A thousandth of the bytes at a thousand times the cost: the same time
		// and the same number of chunks.
		w := vtime.NewVirtual(vtime.Options{})
		chunks := 0
		o := o
		o.Bandwidth, o.Listener.Landed = 1e11, func(softnic.ChunkInfo) { chunks++ }
		x := newPair(t, w, o)
		m := &foreign{base: 1 << 40, data: make([]byte, size), scale: 1000}
		x.foreign(m)
		d := x.moved(x.spec(nixl.Read, 0, 1, size))
		near(t, one, d)
		require.Equal(t, size/64, chunks, "no finer than a cache line")
		require.True(t, bytes.Equal(m.data, x.pm.Bytes()))
	})
}

// foreign gives d other memory, at the place of its first.
func (x *pair) foreign(m *foreign) {
	x.t.Helper()
	var err error
	require.NoError(x.t, x.d.Close())
	x.d, err = x.f.NewAgent("d", m)
	require.NoError(x.t, err)
	x.dr, err = x.d.Register(nixl.DRAM, []nixl.Descriptor{{Addr: m.base, Len: uint64(len(m.data))}})
	require.NoError(x.t, err)
	x.connect()
	x.dmBase = m.base
}

func TestStatusDoesNotAllocate(t *testing.T) {
	pacers(t, func(t *testing.T, w *vtime.World) {
		o := slowLink()
		o.Bandwidth = 1e5 // nothing ends meanwhile
		o.Chunk = size
		o.MinChunks = 1
		x := newPair(t, w, o)
		flying, done := x.transfer(x.spec(nixl.Read, 0, 1, size)), x.transfer(x.spec(nixl.Read, 0, 1, 64))
		require.NoError(t, done.Post())
		require.NoError(t, x.wait(done))
		require.NoError(t, flying.Post())
		for _, tr := range []nixl.Transfer{flying, done} {
			require.Zero(t, testing.AllocsPerRun(100, func() { _, _ = tr.Status() }))
		}
	})
}
