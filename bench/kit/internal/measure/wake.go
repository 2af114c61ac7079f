package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

// Wakes is how late waiters are, by the way in which they wait.
type Wakes struct {
	Simulated bool   `json:"simulated"`
	Device    string `json:"device"`
	// Ps is GOMAXPROCS: fewer than there are CPUs where that can be, so that
	// threads of the system's have some to themselves.
	Ps   int       `json:"ps"`
	CPUs int       `json:"cpus"`
	Rows []WakeRow `json:"rows"`
}

// WakeRow is one way to wait: "poll", or a source of package driver's.
type WakeRow struct {
	Way string `json:"way"`
	// Busy: every P had a goroutine that never waits.
	Busy bool `json:"busy"`
	// Missing says why the device can not do so.
	Missing string `json:"missing,omitempty"`
	// Fence is until a goroutine that waits for the mark runs, Post until a load
	// that the gate held for it enters the transport, Native until C code runs
	// that a thread of the system's calls: nil where there is no such thread.
	Fence  *Late `json:"fence,omitempty"`
	Post   *Late `json:"post,omitempty"`
	Native *Late `json:"native,omitempty"`
	// Discarded are the rounds in which the thread that sees the mark was later
	// than those whose lateness it was to tell.
	Discarded int `json:"discarded"`
}

// WakeWays are the ways in each table.
var WakeWays = []string{"poll", driver.WakeHelper.String(), driver.WakeHostFunc.String(), driver.WakeWord.String()}

// wakeEffort is how much is done for a column.
type wakeEffort struct {
	rounds  int
	time    time.Duration // at most
	backlog uint64        // bytes that the stream fills before the mark
	part    uint64        // of it in one fill
}

// Wake measures all ways on the device that o names, idle and busy.
func Wake(ctx context.Context, w io.Writer, o driver.Options) (*Wakes, error) {
	cpus := runtime.NumCPU()
	ps := max(1, cpus-2) // the observer and the source's thread
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(ps))
	r := &Wakes{Ps: ps, CPUs: cpus}
	for _, busy := range []bool{false, true} {
		for way := range WakeWays {
			row, err := r.way(ctx, o, driver.Wake(way), busy)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", WakeWays[way], err)
			}
			if len(r.Rows) == 0 {
				r.head(w)
			}
			r.Rows = append(r.Rows, *row)
			row.text(w)
		}
	}
	return r, nil
}

// way measures one row on a device of its own; source 0 is to poll.
func (r *Wakes) way(ctx context.Context, o driver.Options, source driver.Wake, busy bool) (row *WakeRow, err error) {
	row = &WakeRow{Way: WakeWays[source], Busy: busy}
	d, err := driver.Open(o)
	if err != nil {
		return nil, err
	}
	s := newStamp()
	defer func() {
		err = errors.Join(err, d.Close())
		s.free() // only then nobody calls it
	}()
	i := d.Info()
	r.Simulated, r.Device = i.Simulated, i.Name
	x := &waker{effort: effortFor(i)}
	var dev cuda.Device = d
	if source != 0 {
		watched, err := d.Watch(source)
		if errors.Is(err, cuda.ErrNotSupported) {
			row.Missing = err.Error()
			return row, nil
		}
		if err != nil {
			return nil, err
		}
		if err := watched.Hook(s.fn(), s.arg()); err != nil {
			return nil, err
		}
		dev, x.stamp = watched, s
	}
	if x.engine, err = newEngine(dev, 4, false); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.engine.close()) }()
	if err = x.prepare(); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, x.end()) }()
	if busy {
		defer occupy(runtime.GOMAXPROCS(0), d.Clock())()
	}
	if err = x.fillIn(ctx, row); err == nil && !i.Simulated && (row.Fence.N == 0 || row.Post.N == 0) {
		err = errors.New("in every round the thread that sees the mark was later than the waiter: the CPUs are not free")
	}
	return row, err
}

// effortFor has the stream busy for some 300 microseconds before a mark, longer
// than the host takes to wait for it.
func effortFor(i cuda.Info) wakeEffort {
	if i.Simulated {
		return wakeEffort{rounds: 20, time: 300 * time.Millisecond, backlog: 4 << 20, part: 4 << 20}
	}
	return wakeEffort{rounds: 300, time: 1200 * time.Millisecond, part: 256 << 20,
		backlog: max(256<<20, uint64(float64(i.Bandwidth)*300e-6))}
}

// occupy keeps n Ps busy until the function that it returns is called.
func occupy(n int, clk cuda.Clock) (release func()) {
	var stop atomic.Bool
	var left atomic.Int64
	left.Store(int64(n))
	for range n {
		clk.Go("busy", func() {
			for !stop.Load() {
				work()
			}
			left.Add(-1)
			clk.Notify()
		})
	}
	return func() {
		stop.Store(true)
		ended := clock.Func("the end of the busy", func() bool { return left.Load() == 0 })
		_ = clk.WaitUntil(context.Background(), ended, clock.Never)
	}
}

// work is a call at which a goroutine can be made to give way: its frame is not
// so small that the compiler leaves that out. In a rehearsal there are two Go
// runtimes in this process, and the signal by which one stops a loop without
// such calls ends up with the other.
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

// waker makes marks and measures who comes how late.
type waker struct {
	*engine
	effort wakeEffort
	stamp  *stamp // nil: no thread calls it
	word   cuda.PinnedBuffer
	busy   cuda.DevicePtr
	watch  *observer
	value  uint32
	block  kv.Tenancy
	holder loadgate.Holder
	read   *transfer
}

func (x *waker) prepare() (err error) {
	if x.word, err = x.dev.AllocPinned(4096, cuda.AllocOptions{Name: "moments"}); err != nil {
		return err
	}
	clear(x.word.Host)
	if x.busy, err = x.dev.Alloc(x.effort.part, cuda.AllocOptions{Name: "busy"}); err != nil {
		return err
	}
	ts, err := x.pool.Alloc(1, nil)
	if err != nil {
		return err
	}
	x.block = ts[0]
	if x.holder, err = x.gate.Hold(0, ts); err != nil {
		return err
	}
	x.read = x.transfer(x.block)
	x.watch, err = newObserver(x.word)
	return err
}

func (x *waker) end() error {
	errs := []error{x.dev.Sync(context.Background())}
	if x.watch != nil {
		x.watch.close()
	}
	if x.holder != 0 {
		errs = append(errs, x.gate.Drop(x.holder), x.pool.Free([]kv.Tenancy{x.block}))
	}
	if x.busy != 0 {
		errs = append(errs, x.dev.Free(x.busy))
	}
	if x.word.Host != nil {
		errs = append(errs, x.dev.FreePinned(x.word))
	}
	return errors.Join(errs...)
}

// step adds a step's work: for a while nothing of interest, then the word.
func (x *waker) step(b *stream.Batch) error {
	for left := x.effort.backlog; left > 0; left -= min(left, x.effort.part) {
		b.Fill32(x.compute, x.busy, x.value, min(left, x.effort.part)/4)
	}
	b.Fill32(x.compute, x.word.Device, x.value, 1)
	return nil
}

func (x *waker) fillIn(ctx context.Context, row *WakeRow) error {
	var fence, post, native []int64
	clk := x.dev.Clock()
	for _, held := range []bool{false, true} {
		start := clk.Now()
		for i := range x.effort.rounds {
			if i >= 10 && clk.Now()-start > x.effort.time {
				break
			}
			at, woken, called, err := x.round(ctx, held)
			if err != nil {
				return err
			}
			if woken < at || called == 0 && x.stamp != nil {
				row.Discarded++ // the observer is a thread as any other, and was late
				continue
			}
			if held {
				post = append(post, woken-at)
			} else {
				fence = append(fence, woken-at)
			}
			if called != 0 {
				native = append(native, called-at)
			}
		}
	}
	f, p := lateOf(fence), lateOf(post)
	row.Fence, row.Post = &f, &p
	if x.stamp != nil {
		n := lateOf(native)
		row.Native = &n
	}
	return nil
}

// round is one step with its mark: at is when the stream came to it, woken when
// the waiter ran or the held load was posted, called when C code was, or 0.
func (x *waker) round(ctx context.Context, held bool) (at, woken, called int64, err error) {
	if x.value++; x.value == 0 {
		x.value++
	}
	x.watch.arm(x.value)
	begin := now()
	plan, err := x.gate.Plan([]loadgate.Holder{x.holder})
	if err != nil {
		return 0, 0, 0, err
	}
	fence, err := x.gate.Submit(plan, x.step)
	if err != nil {
		return 0, 0, 0, err
	}
	if held {
		x.read.done.Store(false)
		ticket, err := x.gate.Load(x.holder, x.read)
		if err != nil {
			return 0, 0, 0, err
		}
		if err := x.gate.WaitTicket(ctx, ticket); err != nil {
			return 0, 0, 0, err
		}
		woken = x.nic.posted.Load()
		if err := ticket.Release(); err != nil {
			return 0, 0, 0, err
		}
	} else {
		if err := x.gate.WaitFence(ctx, fence); err != nil {
			return 0, 0, 0, err
		}
		woken = now()
	}
	if at, err = x.seen(); err != nil {
		return 0, 0, 0, err
	}
	if x.stamp != nil {
		if called, err = x.calledSince(begin, at); err != nil {
			return 0, 0, 0, err
		}
	}
	return at, woken, called, x.gate.EndStep()
}

// seen returns when the observer saw the word, which it may take a moment to do
// where the CPUs are busy.
func (x *waker) seen() (at int64, err error) {
	clk := x.dev.Clock()
	saw := clock.Func("the observer", func() bool { at = x.watch.at(x.value); return at != 0 })
	if err := clk.WaitUntil(context.Background(), saw, clk.Now()+2*time.Second); err != nil {
		return 0, fmt.Errorf("the stream's word was not seen: %w", err)
	}
	return at, nil
}

// calledSince returns when C code was called for the mark that was seen at that
// time, or 0 where that was before, so that the observer was late. No call since
// the round's begin is an error. A call of the round before may have been late,
// too, but it can't be after this mark.
func (x *waker) calledSince(begin, at int64) (called int64, err error) {
	clk := x.dev.Clock()
	done := clock.Func("the native waiter", func() bool { called = x.stamp.since(at); return called != 0 })
	if clk.WaitUntil(context.Background(), done, clk.Now()+20*time.Millisecond) == nil {
		return called, nil
	}
	done = clock.Func("the native waiter", func() bool { return x.stamp.since(begin) != 0 })
	if err := clk.WaitUntil(context.Background(), done, clk.Now()+2*time.Second); err != nil {
		return 0, fmt.Errorf("the native waiter was not called: %w", err)
	}
	return x.stamp.since(at), nil
}

func (r *Wakes) head(w io.Writer) {
	label(w, r.Device, r.Simulated)
	fmt.Fprintf(w, "from the mark, in microseconds, p50/p99 (n); GOMAXPROCS %d of %d CPUs\n", r.Ps, r.CPUs)
	fmt.Fprintf(w, "%-16s %-5s %26s %26s %26s %10s\n", "way", "", "waiter runs", "held load is posted", "native code runs", "discarded")
}

func (r *WakeRow) text(w io.Writer) {
	load := "idle"
	if r.Busy {
		load = "busy"
	}
	if r.Missing != "" {
		fmt.Fprintf(w, "%-16s %-5s %s\n", r.Way, load, r.Missing)
		return
	}
	column := func(l *Late) string {
		if l == nil || l.N == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f/%.1f (%d)", l.P50, l.P99, l.N)
	}
	fmt.Fprintf(w, "%-16s %-5s %26s %26s %26s %10d\n", r.Way, load, column(r.Fence), column(r.Post), column(r.Native), r.Discarded)
}
