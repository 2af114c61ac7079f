//go:build cgo && linux

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// BenchmarkWakeOnGPU is how late a waiter is, by the way in which it waits: from the
// moment in which the stream reaches the mark until a goroutine that waits for its
// fence runs (fence), until a load that the gate holds for it enters the transport
// (post), and until a C function runs that a thread of the system's calls (native).
// The moment is seen by a thread that spins on a word of mapped memory, which the
// stream fills right before the mark. "busy" has every P occupied by a goroutine that
// never waits; there are two CPUs fewer of those than the machine has, where that can
// be, for the threads of the system's.
func BenchmarkWakeOnGPU(b *testing.B) {
	defer closeLast(b, openGPU(b)) // so that the context is not made anew for each
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(max(1, runtime.NumCPU()-2)))
	for _, load := range []string{"idle", "busy"} {
		for _, way := range []driver.Wake{0, driver.WakeHelper, driver.WakeHostFunc, driver.WakeWord} {
			name := "poll"
			if way != 0 {
				name = way.String()
			}
			b.Run(load+"/"+name, func(b *testing.B) { wakeOnGPU(b, way, load == "busy") })
		}
	}
}

func wakeOnGPU(b *testing.B, way driver.Wake, busy bool) {
	d := openGPU(b)
	stamp := engine.NewStamp(nil)
	b.Cleanup(func() {
		require.NoError(b, d.Close())
		stamp.Free() // only then nobody calls it
	})
	var dev cuda.Device = d
	if way != 0 {
		w, err := d.Watch(way)
		if errors.Is(err, cuda.ErrNotSupported) {
			b.Skipf("needs a GPU with another driver: %v", err)
		}
		require.NoError(b, err)
		require.NoError(b, w.Hook(stamp.Func(), stamp.Arg()))
		dev = w
	}
	x := newWaker(b, d, dev)
	x.stamp, x.native = stamp, way != 0
	if busy {
		occupy(b, d.Clock())
	}
	var late [3][]int64 // fence, post, native
	discarded := 0
	for b.Loop() {
		for held := range 2 {
			start := d.Clock().Now()
			// A busy Go runtime may take tens of milliseconds a round.
			for i := range rounds(d, 300) {
				if i >= 10 && d.Clock().Now()-start > 1200*time.Millisecond {
					break
				}
				at, woken, called := x.round(held == 1)
				if woken < at || x.native && called < at {
					discarded++ // the observer is a thread as any other, and was late
					continue
				}
				late[held] = append(late[held], woken-at)
				if x.native {
					late[2] = append(late[2], called-at)
				}
			}
		}
	}
	for i, what := range []string{"fence-", "post-", "native-"} {
		report(b, d, what, late[i])
	}
	b.ReportMetric(float64(discarded), "discarded")
	if !d.Info().Simulated && len(late[0])*len(late[1]) == 0 {
		b.Error("in every round the thread that sees the mark was later than the waiter: the CPUs are not free")
	}
}

// occupy keeps every P busy until the benchmark is over.
func occupy(b *testing.B, clk clock.Clock) {
	var stop atomic.Bool
	var left atomic.Int64
	for range runtime.GOMAXPROCS(0) {
		left.Add(1)
		clk.Go("busy", func() {
			for !stop.Load() {
				work()
			}
			left.Add(-1)
			clk.Notify()
		})
	}
	b.Cleanup(func() {
		stop.Store(true)
		ended := clock.Func("the end of the busy", func() bool { return left.Load() == 0 })
		require.NoError(b, clk.WaitUntil(context.Background(), ended, clock.Never))
	})
}

// work is a call at which a goroutine can be made to give way: its frame is not
// so small that the compiler leaves that out. Over a libcuda that is a Go program,
// too, the signal by which one stops a loop without such calls ends up with the
// other runtime.
//
//go:noinline
func work() {
	var frame [64]uint64
	for i := range frame {
		frame[i] = uint64(i)
	}
	rest(&frame)
}

//go:noinline
func rest(*[64]uint64) {}

// waker makes marks and sees who comes how late.
type waker struct {
	b        *testing.B
	d        *driver.Device
	gate     *loadgate.Gate
	compute  *stream.Stream
	holder   loadgate.Holder
	read     *instant
	word     cuda.PinnedBuffer
	backlog  cuda.DevicePtr
	observer engine.Observer
	stamp    engine.Stamp
	native   bool
	value    uint32
}

// backlogBytes keep a GPU busy for some 60 microseconds.
const backlogBytes = 256 << 20

func newWaker(b *testing.B, d *driver.Device, dev cuda.Device) *waker {
	x := &waker{b: b, d: d}
	reg := event.NewRegistry(dev)
	set, err := kernels.Load(dev)
	require.NoError(b, err)
	x.compute, err = stream.New(reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(b, err)
	const page = 4096
	base, err := dev.Alloc(2*page, cuda.AllocOptions{Name: "blocks"})
	require.NoError(b, err)
	size := uint64(backlogBytes)
	if d.Info().Simulated {
		size = 4 << 20
	}
	x.backlog, err = dev.Alloc(size, cuda.AllocOptions{Name: "backlog"})
	require.NoError(b, err)
	x.word, err = dev.AllocPinned(4096, cuda.AllocOptions{Name: "moments"})
	require.NoError(b, err)
	clear(x.word.Host)
	table := layout.Table{Blocks: 2, Segments: []layout.Segment{{Base: uint64(base), Stride: page, Page: page}}}
	x.read = &instant{}
	x.read.spec = nixl.Spec{Op: nixl.Read, Local: []nixl.Descriptor{{Addr: table.Segments[0].Address(1), Len: page}}}
	x.gate, err = loadgate.New(reg, set, loadgate.Options{Compute: x.compute, Agent: &x.read.agent,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: table}}})
	require.NoError(b, err)
	pool, err := x.gate.Pool(0)
	require.NoError(b, err)
	block, err := pool.Alloc(1, nil)
	require.NoError(b, err)
	x.holder, err = x.gate.Hold(0, block)
	require.NoError(b, err)
	x.observer, err = engine.NewObserver(x.word.Host)
	require.NoError(b, err)
	b.Cleanup(func() {
		ctx := context.Background()
		require.NoError(b, dev.Sync(ctx))
		x.observer.Close()
		require.NoError(b, x.gate.Drop(x.holder))
		require.NoError(b, pool.Free(block))
		require.NoError(b, x.gate.Close(ctx))
		require.NoError(b, x.compute.Close())
		require.NoError(b, set.Close())
		require.NoError(b, reg.Close())
	})
	return x
}

// step is a step's work: for some 300 microseconds nothing of interest, longer than
// the host takes to wait for it, and then the word.
func (x *waker) step(c *loadgate.Commands) error {
	size, n := uint64(backlogBytes), max(1, int(float64(x.d.Info().Bandwidth)*300e-6/backlogBytes))
	if x.d.Info().Simulated {
		size, n = 4<<20, 1
	}
	for range n {
		c.Fill32(x.compute, x.backlog, x.value, size/4)
	}
	c.Fill32(x.compute, x.word.Device, x.value, 1)
	return nil
}

// round is one step with its mark: at is when the stream came to it, woken when
// the waiter ran or the held load was posted, called when C code was.
func (x *waker) round(held bool) (at, woken, called int64) {
	b, ctx := x.b, x.b.Context()
	if x.value++; x.value == 0 {
		x.value++
	}
	x.observer.Arm(x.value)
	calls := x.stamp.Calls()
	plan, err := x.gate.Plan([]loadgate.Holder{x.holder})
	require.NoError(b, err)
	fence, err := plan.Launch(x.step)
	require.NoError(b, err)
	if held {
		x.read.done.Store(false)
		ticket, err := x.gate.Load(x.holder, x.read)
		require.NoError(b, err)
		require.NoError(b, ticket.Wait(ctx))
		woken = x.read.posted.Load()
		x.gate.Ended(nil)
	} else {
		require.NoError(b, x.gate.Wait(ctx, fence))
		woken = engine.Now()
	}
	clk := x.d.Clock()
	until := func(what string, done func() bool) {
		err := clk.WaitUntil(ctx, clock.Func(what, done), clk.Now()+5*time.Second)
		if err != nil {
			b.Fatal(fmt.Errorf("%s: %w", what, err))
		}
	}
	until("the stream's word is seen", func() bool { at = x.observer.At(x.value); return at != 0 })
	if x.native {
		until("the native waiter is called", func() bool { return x.stamp.Calls() > calls })
		called = x.stamp.Last()
	}
	require.NoError(b, x.gate.EndStep())
	return at, woken, called
}

// instant is a transfer that is over as soon as it is posted, and keeps when that
// was.
type instant struct {
	agent  instantAgent
	spec   nixl.Spec
	done   atomic.Bool
	posted atomic.Int64
}

type instantAgent struct {
	nixl.Agent
	posts atomic.Uint64
}

func (a *instantAgent) Activity() uint64 { return a.posts.Load() }

func (t *instant) Spec() *nixl.Spec { return &t.spec }
func (t *instant) Cancel()          {}
func (t *instant) Close() error     { return nil }

func (t *instant) Post() error {
	t.posted.Store(engine.Now())
	t.done.Store(true)
	t.agent.posts.Add(1)
	return nil
}

func (t *instant) Status() (nixl.Status, error) {
	if !t.done.Load() {
		return nixl.Idle, nil
	}
	return nixl.Done, nil
}
