package cudatest

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var ipcBehaviours = []behaviour{
	{name: "ipc: another process copies, fills and launches", page: memoryPage, one: testIPCWork},
	{name: "ipc: opened twice, closed twice", page: memoryPage, one: testIPCTwice},
	{name: "ipc: what is open can only be closed", page: memoryPage, one: testIPCOnlyClosed},
	{name: "ipc: closing leaves the memory alone", page: memoryPage, one: testIPCClose},
	{name: "ipc: a device is closed with memory open", page: ownPage, one: testIPCLeftOpen},
	{name: "ipc: not opened in the process that exports", page: memoryPage, one: testIPCOwn},
	{name: "ipc: what is no handle", page: memoryPage, one: testIPCNoHandle},
	{name: "ipc: allocations alone are exported", page: memoryPage, one: testIPCExport},
	{name: "ipc: what was not opened is not closed", page: memoryPage, one: testIPCNotOpened},
	{name: "ipc: exported again after being freed", page: memoryPage, one: testIPCAgain},
}

var peers = map[string]peer{
	"work":   peerWork,
	"twice":  peerTwice,
	"only":   peerOnly,
	"close":  peerClose,
	"forget": peerForget,
}

// ipc returns the device's way of sharing memory, or skips.
func (x *bench) ipc() cuda.IPC {
	x.t.Helper()
	d, ok := x.Device.(cuda.IPC)
	if !ok {
		x.t.Skipf("%s: shares no memory with other processes", x.Info().Backend)
	}
	return d
}

// export exports memory, or skips where the device can not.
func (x *bench) export(p cuda.DevicePtr) cuda.MemoryHandle {
	x.t.Helper()
	h, err := x.ipc().ExportMemory(p)
	if errors.Is(err, cuda.ErrNotSupported) {
		x.t.Skipf("%s: %v", x.Info().Backend, err)
	}
	require.NoError(x.t, err)
	return h
}

func (x *bench) open(h cuda.MemoryHandle) cuda.DevicePtr {
	x.t.Helper()
	p, err := x.ipc().OpenMemory(h)
	require.NoError(x.t, err)
	return p
}

const ipcBytes = 2 << 20 // an allocation of its own on hardware, too

func testIPCWork(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	x.write(p, pattern(ipcBytes, 3))
	startPeer(t, "work", x.export(p))
	want := pattern(ipcBytes, 3)
	copy(want[4096:], want[:4096])
	for i := range 100 {
		want[8192+i] = 0xa5
	}
	copy(want[16384:], counted(1000, 77))
	require.Equal(t, want, x.read(p, ipcBytes))
}

func peerWork(t *testing.T, d cuda.Device, h cuda.MemoryHandle) {
	x := newBench(t, d)
	s, f := x.stream(), x.kernel("fill_index")
	p := x.open(h)
	require.Equal(t, pattern(ipcBytes, 3), x.read(p, ipcBytes))
	base, size, err := d.AllocRange(p + 4711)
	require.NoError(t, err)
	require.Equal(t, p, base)
	require.Equal(t, uint64(ipcBytes), size)
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, p+4096, p, 4096)
		b.Fill8(s, p+8192, 0xa5, 100)
		fillIndex(b, s, f, p+16384, 1000, 77)
	})
	x.sync(s)
	require.NoError(t, x.ipc().CloseMemory(p))
}

func testIPCTwice(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	h := x.export(p)
	again := x.export(p)
	require.Equal(t, h, again)
	startPeer(t, "twice", h)
	require.Equal(t, []byte("still open"), x.read(p, 10))
}

func peerTwice(t *testing.T, d cuda.Device, h cuda.MemoryHandle) {
	x := newBench(t, d)
	p := x.open(h)
	require.Equal(t, p, x.open(h))
	require.NoError(t, x.ipc().CloseMemory(p))
	x.write(p, []byte("still open"))
	require.NoError(t, x.ipc().CloseMemory(p))
	require.Error(t, x.ipc().CloseMemory(p))
	_, _, err := d.AllocRange(p)
	require.ErrorIs(t, err, cuda.ErrNotFound)
	require.ErrorIs(t, d.Write(p, []byte("no more")), cuda.ErrInvalidValue)
}

func testIPCOnlyClosed(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	startPeer(t, "only", x.export(x.alloc(ipcBytes)))
}

func peerOnly(t *testing.T, d cuda.Device, h cuda.MemoryHandle) {
	x := newBench(t, d)
	p := x.open(h)
	require.ErrorIs(t, d.Free(p), cuda.ErrInvalidValue)
	_, err := x.ipc().ExportMemory(p)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.ErrorIs(t, x.ipc().CloseMemory(p+256), cuda.ErrInvalidValue)
	x.read(p, ipcBytes)
	require.NoError(t, x.ipc().CloseMemory(p))
}

func testIPCClose(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	x.write(p, pattern(ipcBytes, 9))
	h := x.export(p)
	startPeer(t, "close", h)
	require.Equal(t, pattern(ipcBytes, 9), x.read(p, ipcBytes))
	startPeer(t, "close", h)
	require.NoError(t, d.Free(p))
}

// Closing waits for the work on the memory.
func peerClose(t *testing.T, d cuda.Device, h cuda.MemoryHandle) {
	x := newBench(t, d)
	s, e, p, q := x.stream(), x.event(), x.open(h), x.alloc(ipcBytes)
	x.busy(s)
	x.submit(func(b *cuda.Batch) {
		b.Copy(s, q, p, ipcBytes)
		b.Record(s, e)
	})
	require.NoError(t, x.ipc().CloseMemory(p))
	require.True(t, x.fired(e))
	require.Equal(t, pattern(ipcBytes, 9), x.read(q, ipcBytes))
}

func testIPCLeftOpen(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	startPeer(t, "forget", x.export(p))
	require.Equal(t, []byte("left open"), x.read(p, 9))
}

func peerForget(t *testing.T, d cuda.Device, h cuda.MemoryHandle) {
	x := newBench(t, d)
	x.write(x.open(h), []byte("left open"))
}

func testIPCOwn(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	_, err := x.ipc().OpenMemory(x.export(x.alloc(ipcBytes)))
	x.answers("open memory of one's own by its handle", err, cuda.ErrInvalidContext)
}

func testIPCNoHandle(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	h := x.export(x.alloc(ipcBytes))
	for what, bad := range map[string]cuda.MemoryHandle{
		"zeros":   {},
		"garbage": cuda.MemoryHandle(pattern(64, 1)),
		"text":    cuda.MemoryHandle(append([]byte("kvgate-mem/1"), make([]byte, 52)...)),
	} {
		require.NotEqual(t, h, bad, what)
		_, err := x.ipc().OpenMemory(bad)
		require.Error(t, err, what)
		// The vendor's page has a list of codes, and does not say which is for what.
		x.answers("open what is no handle: "+what, err, cuda.ErrInvalidValue, cuda.ErrInvalidHandle)
	}
}

func testIPCExport(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	x.export(p)
	for what, at := range map[string]cuda.DevicePtr{
		"nothing": 0, "the middle": p + 4096, "no allocation": 0x10, "pinned memory": x.pinned(4096).Device,
	} {
		_, err := x.ipc().ExportMemory(at)
		require.ErrorIs(t, err, cuda.ErrInvalidValue, what)
	}
	require.NoError(t, d.Free(p))
	_, err := x.ipc().ExportMemory(p)
	require.ErrorIs(t, err, cuda.ErrInvalidValue, "freed")
}

func testIPCNotOpened(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	x.export(p)
	require.ErrorIs(t, x.ipc().CloseMemory(p), cuda.ErrInvalidValue)
	require.ErrorIs(t, x.ipc().CloseMemory(0), cuda.ErrInvalidValue)
	x.write(p, []byte("there still"))
}

func testIPCAgain(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(ipcBytes)
	h := x.export(p)
	require.NoError(t, d.Free(p))
	require.NotEqual(t, h, x.export(x.alloc(ipcBytes)))
}
