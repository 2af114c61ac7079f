package sim

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// twoRigs returns two devices of one world on virtual time.
func twoRigs(t *testing.T) (a, b *rig) {
	t.Helper()
	w := vtime.NewVirtual(vtime.Options{})
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	return newRig(t, Options{Name: "a", World: w}), newRig(t, Options{Name: "b", World: w})
}

func TestCopiesBetweenDevicesShareALink(t *testing.T) {
	a, b := twoRigs(t)
	const n, scale = 1 << 20, 64
	mem := func(r *rig, name string) cuda.DevicePtr { return r.allocScaled(name, n, scale) }
	p, p2, q, q2 := mem(a, "p"), mem(a, "p2"), mem(b, "q"), mem(b, "q2")
	s, s2 := a.stream("s"), a.stream("s2")
	link := time.Duration(n * scale / a.costs.PeerLink * 1e9)
	near := func(want, got time.Duration) {
		t.Helper()
		require.InDelta(t, float64(want), float64(got), float64(want)/50+20e3)
	}
	near(link, a.took(func(c *cuda.Batch) { c.Copy(s, q, p, n) }))
	near(2*link, a.took(func(c *cuda.Batch) { c.Copy(s, q, p, n); c.Copy(s2, q2, p2, n) }))
	near(link, a.took(func(c *cuda.Batch) { c.Copy(s, q, p, n); c.Copy(s2, p2, q2, n) }))
	require.Less(t, a.took(func(c *cuda.Batch) { c.Copy(s, p2, p, n) }), link/2, "within a device")
}

func TestAccessToAPeerIsNamed(t *testing.T) {
	a, b := twoRigs(t)
	q := uint64(b.alloc("pool of b", 64))
	a.locked(func() {
		var e *AccessError
		require.ErrorAs(t, a.mem.Write(q+8, make([]byte, 4)), &e)
		require.Contains(t, e.Error(), `access to device b is not enabled: offset 0x8 of "pool of b"`)
	})
	s, f := a.stream("s"), a.storeKernel()
	a.submit(func(c *cuda.Batch) { store(c, s, f, cuda.DevicePtr(q), 4, 1) })
	err := a.SyncStream(bg, s)
	require.ErrorIs(t, err, cuda.ErrIllegalAddress)
	require.ErrorContains(t, err, `access to device b is not enabled`)
}

func TestAFillOfAPeersMemoryNeedsAccess(t *testing.T) {
	a, b := twoRigs(t)
	q, s := b.alloc("q", 64), a.stream("s")
	var c cuda.Batch
	c.Fill8(s, q, 1, 64)
	require.ErrorIs(t, a.Submit(&c), cuda.ErrInvalidValue)
	require.NoError(t, a.EnableAccess(b))
	require.NoError(t, a.Submit(&c))
	require.NoError(t, a.Sync(bg))
	require.Equal(t, byte(1), b.read(q, 1)[0])
}

// What waits for a device that is closed or killed never happens: who waits for
// it is told, and so are those that wait for who waits.
func TestWaitsForADeviceThatGoes(t *testing.T) {
	for what, end := range map[string]func(b *rig){
		"killed": func(b *rig) { require.NoError(b.t, b.Kill(cuda.ErrECC, "test")) },
		"closed": func(b *rig) { require.NoError(b.t, b.Close()) },
	} {
		t.Run(what, func(t *testing.T) {
			a, b := twoRigs(t)
			c := newRig(t, Options{Name: "c", World: a.world})
			sa, sb, sc, eb, ea := a.stream("sa"), b.stream("sb"), c.stream("sc"), b.event(), a.event()
			big := b.allocScaled("big", 1<<20, 1024)
			b.submit(func(x *cuda.Batch) { x.Fill8(sb, big, 1, 1<<20); x.Record(sb, eb) })
			h, err := a.ImportEvent(b, eb)
			require.NoError(t, err)
			a.submit(func(x *cuda.Batch) { x.WaitEvent(sa, h); x.Record(sa, ea) })
			h2, err := c.ImportEvent(a, ea)
			require.NoError(t, err)
			c.submit(func(x *cuda.Batch) { x.WaitEvent(sc, h2) })
			b.world.Go("end", func() {
				_ = b.world.Sleep(bg, time.Microsecond)
				if what == "killed" {
					end(b)
				}
			})
			if what == "closed" {
				end(b)
			}
			err = c.Sync(bg)
			require.ErrorIs(t, err, cuda.ErrLaunchFailed)
			require.ErrorContains(t, err, "sc waits for sa of device a, which is dead or closed")
			require.ErrorContains(t, a.Sync(bg), "sa waits for sb of device b, which is dead or closed")
		})
	}
}

func TestWaitForADeviceThatHasGone(t *testing.T) {
	a, b := twoRigs(t)
	sa, sb, e := a.stream("sa"), b.stream("sb"), b.event()
	big := b.allocScaled("big", 1<<20, 1024)
	b.submit(func(x *cuda.Batch) { x.Fill8(sb, big, 1, 1<<20); x.Record(sb, e) })
	h, err := a.ImportEvent(b, e)
	require.NoError(t, err)
	require.NoError(t, b.Kill(cuda.ErrECC, "test"))
	a.submit(func(x *cuda.Batch) { x.WaitEvent(sa, h) })
	require.ErrorIs(t, a.Sync(bg), cuda.ErrLaunchFailed)
}

func TestNoPeers(t *testing.T) {
	a, b := newRig(t, Options{}), newRig(t, Options{})
	can, err := a.CanAccess(b.Device)
	require.NoError(t, err)
	require.False(t, can, "another world")
	require.ErrorIs(t, a.EnableAccess(b.Device), cuda.ErrPeerUnsupported)
	require.ErrorIs(t, a.EnableAccess(nil), cuda.ErrInvalidDevice)
	_, err = a.ImportEvent(b.Device, b.event())
	require.ErrorIs(t, err, cuda.ErrPeerUnsupported)
	c, d := twoRigs(t)
	require.NoError(t, d.Close())
	require.ErrorIs(t, c.EnableAccess(d.Device), cuda.ErrInvalidContext)
	groups.Lock()
	defer groups.Unlock()
	require.Len(t, *groups.m[c.world].devices.Load(), 1)
}

// A capture stays within its device.
func TestCaptureOverDevicesIsRefused(t *testing.T) {
	a, b := twoRigs(t)
	sa, sb, e := a.stream("sa"), b.stream("sb"), b.event()
	h, err := a.ImportEvent(b, e)
	require.NoError(t, err)
	require.NoError(t, b.BeginCapture(sb, cuda.CaptureGlobal))
	b.submit(func(x *cuda.Batch) { x.Record(sb, e) })
	var c cuda.Batch
	c.WaitEvent(sa, h)
	require.ErrorIs(t, a.Submit(&c), cuda.ErrNotSupported)
	g, err := b.EndCapture(sb)
	require.NoError(t, err)
	require.NoError(t, b.DestroyGraph(g))
}
