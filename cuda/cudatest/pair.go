package cudatest

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// RunPairs runs every behaviour of two devices on devices of its own, which are
// of one machine.
func RunPairs(t *testing.T, open func(t *testing.T) (a, b cuda.Device), options ...Option) {
	runTable(t, pairBehaviours, options, func(t *testing.T, x behaviour) {
		a, b := open(t)
		for _, d := range []cuda.Device{a, b} {
			t.Cleanup(func() { require.NoError(t, closeInTime(t, d)) })
		}
		x.two(t, a, b)
		x.judge(t, a, b)
	})
}

var pairBehaviours = []behaviour{
	{name: "pair: memory is copied from one to the other", page: memoryPage, two: testPeerCopy},
	{name: "pair: a copy between them keeps its place", page: memoryPage, two: testPeerCopyOrder},
	{name: "pair: the host reads and writes memory of both", page: unifiedPage, two: testPeerReadWrite},
	{name: "pair: kernels reach the other's memory", page: peerPage, two: testPeerKernels},
	{name: "pair: without access a kernel may not", page: peerPage, kills: true, two: testPeerForbidden},
	{name: "pair: access ends", page: peerPage, kills: true, two: testPeerDisabled},
	{name: "pair: access is enabled once, and one way", page: peerPage, two: testPeerOnce},
	{name: "pair: a device is no peer of itself", page: peerPage, two: testPeerSelf},
	{name: "pair: pinned memory is reached from both", page: unifiedPage, two: testPeerPinned},
	{name: "pair: managed memory is reached from both", page: memoryPage, two: testPeerManaged},
	{name: "pair: a stream waits for the other's event", page: streamPage, two: testPeerWait},
	{name: "pair: a wait follows what is recorded", page: streamPage, two: testPeerRecords},
	{name: "pair: an imported event is not recorded", page: eventPage, two: testPeerNoRecord},
	{name: "pair: an imported event is destroyed by itself", page: ownPage, two: testPeerDestroyed},
	{name: "pair: handles of one are none of the other", page: ownPage, two: testPeerHandles},
	{name: "pair: each waits for its own work", page: contextPage, two: testPeerSync},
	{name: "pair: each frees its own memory", page: memoryPage, two: testPeerFree},
	{name: "pair: an error of one leaves the other alone", page: ownPage, kills: true, two: testPeerSticky},
	{name: "pair: one is closed, and the other goes on", page: ownPage, two: testPeerClosed},
	{name: "pair: a wait for one that dies ends with an error", page: ownPage, kills: true, two: testPeerDies},
	{name: "pair: who asks after one that died lives on", page: ownPage, kills: true, two: testPeerAsks},
	{name: "pair: words in pinned memory are both's", page: wordPage, two: testPeerWord},
}

// peers returns a's way with b, or skips.
func (x *bench) peers(b cuda.Device) cuda.Peers {
	x.t.Helper()
	d, ok := x.Device.(cuda.Peers)
	if !ok {
		x.t.Skipf("%s: knows no other devices", x.Info().Backend)
	}
	can, err := d.CanAccess(b)
	x.supported(err)
	if !can {
		x.t.Skipf("%s: the devices can not reach each other", x.Info().Backend)
	}
	// Contexts may be there longer than the devices of one behaviour.
	x.t.Cleanup(func() { _ = d.DisableAccess(b) })
	return d
}

// simulated says whether the device is a simulator, behind whatever back end:
// there a fault of one device is promised to leave the rest of the process alone.
func (x *bench) simulated() bool { return simulated(x.Device) }

func simulated(d cuda.Device) bool {
	i := d.Info()
	return i.Simulated || strings.HasPrefix(i.Name, "kvgate simulated")
}

// simulatedOnly skips a behaviour on hardware, which owes none of it.
func (x *bench) simulatedOnly(why string) {
	x.t.Helper()
	if !x.simulated() {
		x.t.Skipf("needs a GPU that is simulated: %s", why)
	}
}

func newPair(t *testing.T, a, b cuda.Device) (*bench, *bench) {
	x, y := newBench(t, a), newBench(t, b)
	y.byWord = x.byWord
	return x, y
}

func testPeerCopy(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	const n = 1 << 20
	p, q, back := x.alloc(n), y.alloc(n), x.alloc(n)
	sa, sb := x.stream(), y.stream()
	x.write(p, pattern(n, 1))
	x.submit(func(c *cuda.Batch) { c.Copy(sa, q, p, n) })
	x.sync(sa)
	require.Equal(t, pattern(n, 1), y.read(q, n))
	y.submit(func(c *cuda.Batch) {
		c.Fill8(sb, q, 9, 100)
		c.Copy(sb, back, q, n)
	})
	y.sync(sb)
	want := pattern(n, 1)
	for i := range 100 {
		want[i] = 9
	}
	require.Equal(t, want, x.read(back, n))
	var batch cuda.Batch
	batch.Copy(sa, q+n-10, p, 20)
	require.ErrorIs(t, a.Submit(&batch), cuda.ErrInvalidValue, "over the end of the other's memory")
}

func testPeerCopyOrder(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	p, q := x.alloc(4096), y.alloc(4096)
	s := x.stream()
	y.write(q, pattern(4096, 1))
	_, release := x.held(s)
	x.submit(func(c *cuda.Batch) {
		c.Fill8(s, p, 1, 4096)
		c.Copy(s, q, p, 4096)
		c.Fill8(s, p, 2, 4096)
	})
	require.Equal(t, pattern(4096, 1)[0], y.read(q, 1)[0], "the copy is behind the backlog")
	release()
	x.sync(s)
	require.Equal(t, byte(1), y.read(q, 4096)[4095])
	require.Equal(t, byte(2), x.read(p, 1)[0])
}

func testPeerReadWrite(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	q := y.alloc(4096)
	x.write(q, pattern(4096, 3))
	require.Equal(t, pattern(4096, 3), y.read(q, 4096))
	require.Equal(t, pattern(4096, 3), x.read(q, 4096))
}

func testPeerKernels(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	d := x.peers(b)
	require.NoError(t, d.EnableAccess(b))
	s, f, p, q := x.stream(), x.kernel("fill_index"), x.alloc(4000), y.alloc(8000)
	copied := x.kernel("copy_words")
	y.write(q, counted(2000, 0))
	x.submit(func(c *cuda.Batch) {
		copyWords(c, s, copied, p, q+4000, 1000)
		fillIndex(c, s, f, q, 1000, 77)
		c.Fill32(s, q+4000, 5, 2)
	})
	x.sync(s)
	require.Equal(t, counted(1000, 1000), x.read(p, 4000))
	require.Equal(t, append(counted(1000, 77), words(5, 5, 1002)...), y.read(q, 4012))
}

func testPeerForbidden(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	x.peers(b)
	s, f, q := x.stream(), x.kernel("fill_index"), y.alloc(4000)
	y.write(q, make([]byte, 4000))
	x.submit(func(c *cuda.Batch) { fillIndex(c, s, f, q, 1000, 1) })
	require.ErrorIs(t, a.SyncStream(x.ctx, s), cuda.ErrIllegalAddress)
	if x.simulated() { // elsewhere this process is done with
		require.Equal(t, make([]byte, 4000), y.read(q, 4000))
	}
}

func testPeerDisabled(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	d := x.peers(b)
	s, f, q := x.stream(), x.kernel("fill_index"), y.alloc(4000)
	require.NoError(t, d.EnableAccess(b))
	x.submit(func(c *cuda.Batch) { fillIndex(c, s, f, q, 1000, 1) })
	x.sync(s)
	require.NoError(t, d.DisableAccess(b))
	require.Equal(t, counted(1000, 1), y.read(q, 4000))
	x.submit(func(c *cuda.Batch) { fillIndex(c, s, f, q, 1000, 2) })
	require.ErrorIs(t, a.SyncStream(x.ctx, s), cuda.ErrIllegalAddress)
	if x.simulated() {
		require.Equal(t, counted(1000, 1), y.read(q, 4000))
	}
}

func testPeerOnce(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	d, back := x.peers(b), y.peers(a)
	require.ErrorIs(t, d.DisableAccess(b), cuda.ErrPeerNotEnabled)
	require.NoError(t, d.EnableAccess(b))
	require.ErrorIs(t, d.EnableAccess(b), cuda.ErrPeerEnabled)
	require.ErrorIs(t, back.DisableAccess(a), cuda.ErrPeerNotEnabled, "the other way is another")
	require.NoError(t, back.EnableAccess(a))
	require.NoError(t, d.DisableAccess(b))
	require.ErrorIs(t, d.DisableAccess(b), cuda.ErrPeerNotEnabled)
	require.NoError(t, d.EnableAccess(b))
}

func testPeerSelf(t *testing.T, a, b cuda.Device) {
	x, _ := newPair(t, a, b)
	d := x.peers(b)
	can, err := d.CanAccess(a)
	require.NoError(t, err)
	require.False(t, can)
	require.ErrorIs(t, d.EnableAccess(a), cuda.ErrInvalidDevice)
}

func testPeerPinned(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	h := x.pinned(8000)
	s, f, q := y.stream(), y.kernel("fill_index"), y.alloc(4000)
	copy(h.Host, counted(1000, 3))
	y.submit(func(c *cuda.Batch) {
		c.Copy(s, q, h.Device, 4000)
		fillIndex(c, s, f, h.Device+4000, 1000, 8)
	})
	y.sync(s)
	require.Equal(t, counted(1000, 3), y.read(q, 4000))
	require.Equal(t, counted(1000, 8), h.Host[4000:])
}

func testPeerManaged(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	_, m := x.managed(4000)
	for _, d := range []*bench{x, y} {
		s, f := d.stream(), d.kernel("fill_index")
		for i := range uint32(2) {
			d.submit(func(c *cuda.Batch) { fillIndex(c, s, f, m.Device, 1000, i) })
			d.sync(s)
			require.Equal(t, counted(1000, i), m.Host)
		}
	}
}

// imported imports an event of b's, or skips.
func (x *bench) imported(b cuda.Device, e cuda.Event) cuda.Event {
	x.t.Helper()
	h, err := x.peers(b).ImportEvent(b, e)
	x.supported(err)
	return h
}

func testPeerWait(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	sa, sb, e := x.stream(), y.stream(), y.event()
	p, q := x.alloc(4096), y.alloc(4096)
	h := x.imported(b, e)
	require.True(t, x.fired(h), "never recorded")
	y.write(q, make([]byte, 4096))
	_, release := y.held(sb)
	y.submit(func(c *cuda.Batch) {
		c.Fill8(sb, q, 7, 4096)
		c.Record(sb, e)
	})
	x.unfired(h, "the stream is held")
	x.submit(func(c *cuda.Batch) {
		c.WaitEvent(sa, h)
		c.Copy(sa, p, q, 4096)
	})
	release()
	x.sync(sa)
	require.Equal(t, byte(7), x.read(p, 4096)[4095])
	require.True(t, x.fired(h))
	require.True(t, y.fired(e))
}

func testPeerRecords(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	sa, sb, e := x.stream(), y.stream(), y.event()
	h, mine := x.imported(b, e), x.event()
	y.submit(func(c *cuda.Batch) { c.Record(sb, e) })
	y.sync(sb)
	require.True(t, x.fired(h))
	x.submit(func(c *cuda.Batch) {
		c.WaitEvent(sa, h)
		c.Record(sa, mine)
	})
	_, release := y.held(sb)
	y.submit(func(c *cuda.Batch) { c.Record(sb, e) })
	x.sync(sa) // what it waits for is the record before
	require.True(t, x.fired(mine))
	x.unfired(h, "recorded again")
	release()
	y.sync(sb)
	require.True(t, x.fired(h))
}

func testPeerNoRecord(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	s, e := x.stream(), y.event()
	h := x.imported(b, e)
	var c cuda.Batch
	c.Record(s, h)
	require.ErrorIs(t, a.Submit(&c), cuda.ErrInvalidHandle)
	_, err := x.peers(b).ImportEvent(b, 0xdead)
	require.ErrorIs(t, err, cuda.ErrInvalidHandle)
}

func testPeerDestroyed(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	s, e := y.stream(), y.event()
	h := x.imported(b, e)
	require.NoError(t, a.DestroyEvent(h))
	require.ErrorIs(t, a.DestroyEvent(h), cuda.ErrInvalidHandle)
	y.submit(func(c *cuda.Batch) { c.Record(s, e) })
	y.sync(s)
	require.True(t, y.fired(e), "the event is there still")
	require.NoError(t, b.DestroyEvent(e))
}

func testPeerHandles(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	sa, sb, ea, eb := x.stream(), y.stream(), x.event(), y.event()
	fa, fb, p := x.kernel("fill_index"), y.kernel("fill_index"), x.alloc(4)
	require.NotEqual(t, sa, sb)
	require.NotEqual(t, ea, eb)
	require.NotEqual(t, fa, fb)
	for what, add := range map[string]func(c *cuda.Batch){
		"a stream":   func(c *cuda.Batch) { c.Fill8(sb, p, 1, 4) },
		"an event":   func(c *cuda.Batch) { c.Record(sa, eb) },
		"a function": func(c *cuda.Batch) { fillIndex(c, sa, fb, p, 1, 1) },
	} {
		var c cuda.Batch
		add(&c)
		require.ErrorIs(t, a.Submit(&c), cuda.ErrInvalidHandle, what)
	}
	require.ErrorIs(t, a.SyncStream(x.ctx, sb), cuda.ErrInvalidHandle)
	require.ErrorIs(t, a.Poll([]cuda.Mark{{Event: eb}}), cuda.ErrInvalidHandle)
	require.ErrorIs(t, a.DestroyStream(sb), cuda.ErrInvalidHandle)
	require.ErrorIs(t, a.DestroyEvent(eb), cuda.ErrInvalidHandle)
}

func testPeerSync(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	s, e := y.stream(), y.event()
	_, release := y.held(s)
	y.submit(func(c *cuda.Batch) { c.Record(s, e) })
	require.NoError(t, a.Sync(x.ctx))
	y.unfired(e, "the stream is held")
	release()
	require.NoError(t, b.Sync(x.ctx))
	require.True(t, y.fired(e))
	x.alloc(64)
}

func testPeerFree(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	p, q := x.alloc(64), y.alloc(64)
	require.ErrorIs(t, a.Free(q), cuda.ErrInvalidValue)
	require.ErrorIs(t, b.Free(p), cuda.ErrInvalidValue)
	require.ErrorIs(t, b.FreePinned(x.pinned(64)), cuda.ErrInvalidValue)
	require.NoError(t, a.Free(p))
	require.NoError(t, b.Free(q))
}

func testPeerSticky(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	x.simulatedOnly("the process of one that died is to be ended")
	s, f := x.stream(), x.kernel("fill_index")
	q, sb := y.alloc(64), y.stream()
	x.submit(func(c *cuda.Batch) { fillIndex(c, s, f, 0x1000, 1, 1) })
	require.ErrorIs(t, a.SyncStream(x.ctx, s), cuda.ErrIllegalAddress)
	y.submit(func(c *cuda.Batch) { c.Fill8(sb, q, 4, 64) })
	y.sync(sb)
	require.Equal(t, byte(4), y.read(q, 1)[0])
}

func testPeerClosed(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	p, q := x.alloc(64), y.alloc(64)
	s := x.stream()
	x.submit(func(c *cuda.Batch) { c.Copy(s, q, p, 64) })
	x.sync(s)
	require.NoError(t, b.Close())
	var c cuda.Batch
	c.Copy(s, p, q, 64)
	require.ErrorIs(t, a.Submit(&c), cuda.ErrInvalidValue, "its memory has gone")
	x.submit(func(c *cuda.Batch) { c.Fill8(s, p, 3, 64) })
	x.sync(s)
	require.Equal(t, byte(3), x.read(p, 1)[0])
}

func testPeerDies(t *testing.T, a, b cuda.Device) {
	x, y := newPair(t, a, b)
	x.simulatedOnly("no page says what hardware does")
	sa, sb, e, f := x.stream(), y.stream(), y.event(), y.kernel("fill_index")
	h := x.imported(b, e)
	release := y.hold(sb)
	y.submit(func(c *cuda.Batch) {
		fillIndex(c, sb, f, 0x1000, 1, 1)
		c.Record(sb, e)
	})
	x.submit(func(c *cuda.Batch) { c.WaitEvent(sa, h) })
	release()
	err := a.SyncStream(x.ctx, sa)
	require.Error(t, err, "not left waiting, nor told that all is well")
	require.True(t, cuda.Sticky(err), "%v", err)
	var want *cuda.Error
	require.True(t, errors.As(err, &want))
}
