// Package cudatest tests back ends of cuda.Device, as testing/fstest tests file
// systems. It is a table of behaviours that every back end shows alike, each with
// the page that states it. The tests of a back end run the whole table with [Run],
// and [RunPairs] where it has several devices. Where two back ends differ, one of
// them has a bug.
package cudatest

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

//go:embed testdata/behaviours.ptx
var image []byte

// behaviour is one rule, as a test of a device that nothing has been done to yet,
// or of two of one machine. The test leaves the devices open. It is skipped where
// a device lacks pinned memory and says so.
type behaviour struct {
	name string
	page string // which states it
	// kills: it leaves its device, or one of its two, dead. cuda.h says of the
	// errors that do so (700, 702, 714 to 719) that the process has to be ended
	// and started again, so that on hardware nothing else may come after them in
	// a process.
	kills bool

	one func(t *testing.T, d cuda.Device)
	two func(t *testing.T, a, b cuda.Device)
}

// behaviours is the table for one device. Those of waits come first.
var behaviours = slices.Concat(waits, memoryBehaviours, launchBehaviours, limitBehaviours,
	ipcBehaviours, hostMemoryBehaviours, graphBehaviours, captureBehaviours, randomBehaviours)

// Option changes how a table is run.
type Option uint8

// Apart runs each behaviour that kills its device in a process of its own:
// without it, a device that is opened after one has died has to be as good as
// new, which no hardware is.
const Apart Option = 1

// Waits runs the behaviours alone that have to do with marks, streams and waits
// for them: for a device of which another one, that is the same in all else, has
// shown the whole table.
const Waits Option = 2

var waits = slices.Concat(streamBehaviours, eventBehaviours, submitBehaviours, legacyBehaviours, wordBehaviours,
	signalBehaviours, blockingBehaviours, capturedBehaviours, stickyBehaviours)

// Environment is what a process has to have in its environment before it uses a
// driver, or some behaviours wait for what can't happen. Kernels are loaded with
// their module, not at their first launch, which waits for all streams; and streams
// have hardware queues of their own, so that one that is held by a word does not
// hold others (see [cuda.Batch.WaitWord]).
var Environment = map[string]string{"CUDA_MODULE_LOADING": "EAGER", "CUDA_DEVICE_MAX_CONNECTIONS": "32"}

// Run runs every behaviour on a device of its own. Some start the program of the
// test again, which has to come to the same Run. No behaviour waits for ever on a
// device in real time. What only hardware can answer is written down, beginning
// with [Observed].
func Run(t *testing.T, open func(t *testing.T) cuda.Device, options ...Option) {
	if name := os.Getenv(peerName); name != "" {
		runPeer(t, name, open)
		return
	}
	table := behaviours
	if slices.Contains(options, Waits) {
		table = waits
	}
	runTable(t, table, options, func(t *testing.T, b behaviour) {
		d := open(t)
		t.Cleanup(func() { require.NoError(t, closeInTime(t, d)) })
		b.one(t, d)
		b.judge(t, d)
	})
}

// runTable runs behaviours, each as a subtest, and those that kill last: what an
// error has done to the GPU spoils nothing that is found out before.
func runTable(t *testing.T, table []behaviour, options []Option, run func(t *testing.T, b behaviour)) {
	if name := os.Getenv(apartName); name != "" {
		i := slices.IndexFunc(table, func(b behaviour) bool { return b.name == name })
		require.GreaterOrEqual(t, i, 0, "no behaviour is called %q", name)
		runApart(t, func(t *testing.T) { run(t, table[i]) })
		return
	}
	living := slices.DeleteFunc(slices.Clone(table), func(b behaviour) bool { return b.kills })
	killing := slices.DeleteFunc(slices.Clone(table), func(b behaviour) bool { return !b.kills })
	for _, b := range slices.Concat(living, killing) {
		t.Run(b.name, func(t *testing.T) {
			if b.kills && slices.Contains(options, Apart) {
				startApart(t, b.name)
				return
			}
			run(t, b)
		})
	}
}

var bg = context.Background()

// bench is a device with the handles that most behaviours need.
type bench struct {
	cuda.Device
	t      *testing.T
	ctx    context.Context // ends when the behaviour has taken too long
	b      cuda.Batch
	byWord *bool // a stream was held by a word: see hold
}

func newBench(t *testing.T, d cuda.Device) *bench {
	return &bench{Device: d, t: t, ctx: inTime(t, d), byWord: new(bool)}
}

func (x *bench) alloc(size uint64) cuda.DevicePtr {
	x.t.Helper()
	p, err := x.Alloc(size, cuda.AllocOptions{Name: x.t.Name()})
	require.NoError(x.t, err)
	return p
}

func (x *bench) pinned(size uint64) cuda.PinnedBuffer {
	x.t.Helper()
	p, err := x.AllocPinned(size, cuda.AllocOptions{Name: x.t.Name()})
	if errors.Is(err, cuda.ErrNotSupported) {
		x.t.Skipf("%s: %v", x.Info().Backend, err)
	}
	require.NoError(x.t, err)
	return p
}

func (x *bench) stream() cuda.Stream {
	x.t.Helper()
	s, err := x.NewStream(cuda.StreamOptions{})
	require.NoError(x.t, err)
	return s
}

func (x *bench) event() cuda.Event {
	x.t.Helper()
	e, err := x.NewEvent()
	require.NoError(x.t, err)
	return e
}

// submit builds a batch and submits it.
func (x *bench) submit(build func(b *cuda.Batch)) {
	x.t.Helper()
	x.b.Reset()
	build(&x.b)
	require.NoError(x.t, x.Submit(&x.b))
}

func (x *bench) sync(s cuda.Stream) {
	x.t.Helper()
	err := x.SyncStream(x.ctx, s)
	if x.ctx.Err() != nil {
		err = context.Cause(x.ctx)
	}
	require.NoError(x.t, err)
}

func (x *bench) fired(e cuda.Event) bool {
	x.t.Helper()
	m := []cuda.Mark{{Event: e}}
	require.NoError(x.t, x.Poll(m))
	return m[0].State == cuda.MarkFired
}

func (x *bench) read(p cuda.DevicePtr, n int) []byte {
	x.t.Helper()
	b := make([]byte, n)
	require.NoError(x.t, x.Read(b, p))
	return b
}

func (x *bench) write(p cuda.DevicePtr, b []byte) {
	x.t.Helper()
	require.NoError(x.t, x.Write(p, b))
}

func (x *bench) kernel(name string) cuda.Function {
	x.t.Helper()
	m, err := x.LoadModule(image)
	require.NoError(x.t, err)
	f, err := x.Function(m, name)
	require.NoError(x.t, err)
	return f
}

// backlogBytes times backlogFills take some 60 microseconds longer on a device
// than the host takes to submit them, so that what is submitted behind them is
// pending when the host asks.
const (
	backlogBytes = 32 << 20
	backlogFills = 6
)

// busy keeps s busy for a while and returns the bytes that it works on.
func (x *bench) busy(s cuda.Stream) cuda.DevicePtr {
	x.t.Helper()
	p := x.alloc(backlogBytes)
	x.submit(func(b *cuda.Batch) { x.backlog(b, s, p) })
	return p
}

func (x *bench) backlog(b *cuda.Batch, s cuda.Stream, p cuda.DevicePtr) {
	for i := range backlogFills {
		b.Fill32(s, p, uint32(i), backlogBytes/4)
	}
}

func pattern(n int, seed byte) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i)*7 + byte(i>>8)*13 + seed
	}
	return b
}

func words(v ...uint32) []byte {
	var b []byte
	for _, x := range v {
		b = binary.LittleEndian.AppendUint32(b, x)
	}
	return b
}
