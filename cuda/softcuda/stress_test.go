//go:build cgo && linux

package softcuda_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/stream"
)

const (
	stressWorkers = 64
	stressRounds  = 6
	stressWords   = 2000 // most of one launch
)

// TestStress has 64 goroutines call all of a device's methods, half of them on
// the primary context and half on one that was adopted, while the collector
// runs all the time. A goroutine goes from thread to thread, or keeps one for a
// while that has a context and a capture mode of somebody else's; after each
// call the thread has to be as it was. Once for each way to be told of marks.
func TestStress(t *testing.T) {
	t.Run("asked", func(t *testing.T) { stress(t, 0) })
	for _, source := range sources {
		t.Run(source.String(), func(t *testing.T) { stress(t, source) })
	}
}

// arena is a device that workers share.
type arena struct {
	cuda.Device
	drv *driver.Device
	reg *event.Registry
	raw driver.RawStream // of the engine's, on the adopted context; 0: none
}

func newArena(t *testing.T, d *driver.Device, source driver.Wake) *arena {
	a := &arena{Device: d, drv: d}
	if source != 0 {
		w, err := d.Watch(source)
		require.NoError(t, err)
		a.Device = w
	}
	a.reg = event.NewRegistry(a.Device)
	return a
}

func stress(t *testing.T, source driver.Wake) {
	defer debug.SetGCPercent(debug.SetGCPercent(2))
	image, err := os.ReadFile(filepath.Join(testutil.Root(t), "cuda/cudatest/testdata/behaviours.ptx"))
	require.NoError(t, err)

	// The engine: a context for its own threads, on another device, and one to
	// adopt; and somebody who holds the primary context, so that it outlives
	// the device.
	e, foreign := newEngine(t)
	soft := add(t, sim.Options{Real: true, Memory: 1 << 28})
	adopted, err := e.NewContext(soft.Ordinal())
	require.NoError(t, err)
	raw, err := e.NewStream(1)
	require.NoError(t, err)
	holder, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	defer func() { require.NoError(t, holder.Close()) }()
	require.NoError(t, e.SetCurrent(0)) // takes off the one that was made last
	require.NoError(t, e.SetCurrent(0))
	handles, allocations := softcuda.Held()

	primary, err := driver.Open(driver.Options{Library: softcuda.Library{}, Device: soft.Ordinal()})
	require.NoError(t, err)
	beside, err := driver.Adopt(driver.Context(adopted), driver.Options{Library: softcuda.Library{}})
	require.NoError(t, err)
	arenas := []*arena{newArena(t, primary, source), newArena(t, beside, source)}
	arenas[1].raw = driver.RawStream(raw)
	before, allocated := softcuda.Held()

	var wg sync.WaitGroup
	var wandered atomic.Int64
	var collections runtime.MemStats
	runtime.ReadMemStats(&collections)
	collected := collections.NumGC
	failed := make(chan error, stressWorkers)
	for i := range stressWorkers {
		w := &worker{arena: arenas[i%2], engine: e, foreign: foreign, image: image,
			number: uint32(i), rnd: rand.New(rand.NewPCG(uint64(i), uint64(source))), threads: map[int]bool{}}
		wg.Go(func() {
			if err := w.run(); err != nil {
				failed <- fmt.Errorf("worker %d: %w", i, err)
			}
			if len(w.threads) > 1 {
				wandered.Add(1)
			}
		})
	}
	wg.Wait()
	close(failed)
	var errs []error
	for err := range failed {
		errs = append(errs, err)
	}
	require.NoError(t, errors.Join(errs...))
	runtime.ReadMemStats(&collections)
	t.Logf("%d collections, %d of %d goroutines on more than one thread", collections.NumGC-collected, wandered.Load(), stressWorkers)
	require.Greater(t, collections.NumGC-collected, uint32(stressRounds), "collections")
	require.Greater(t, wandered.Load(), int64(stressWorkers/2), "goroutines that were on more than one thread")

	for _, a := range arenas {
		require.NoError(t, a.reg.Close())
	}
	after, left := softcuda.Held()
	require.Equal(t, allocated, left, "allocations")
	if source != driver.WakeHelper { // whose threads have events until the end
		// Events that waits took are kept for the next.
		require.LessOrEqual(t, after, before+stressWorkers, "handles")
	}
	require.NoError(t, primary.Close())
	require.NoError(t, beside.Close())
	after, left = softcuda.Held()
	require.Equal(t, handles, after, "handles, when the devices are closed")
	require.Equal(t, allocations, left, "allocations, when the devices are closed")
}

// worker is one goroutine of the stress.
type worker struct {
	*arena
	engine  engine.Engine
	foreign uint64
	image   []byte
	number  uint32
	rnd     *rand.Rand

	context uint64 // that the thread has
	mode    int
	threads map[int]bool // where it was
	garbage [][]byte
}

// failure is what ends a worker.
type failure struct{ error }

func (w *worker) run() (err error) {
	defer func() {
		if r := recover(); r != nil {
			f, ok := r.(failure)
			if !ok {
				panic(r)
			}
			err = f.error
		}
	}()
	for i := range stressRounds {
		w.round(i)
	}
	return nil
}

// ok is said after each call: it went well, and the thread is as it was.
func (w *worker) ok(what string, err error) {
	if err != nil {
		panic(failure{fmt.Errorf("%s: %w", what, err)})
	}
	w.unchanged(what)
}

func (w *worker) unchanged(what string) {
	if got, err := w.engine.Current(); err != nil || got != w.context {
		panic(failure{fmt.Errorf("context after %s: %#x, was %#x (%w)", what, got, w.context, err)})
	}
	if got, err := w.engine.ExchangeMode(w.mode); err != nil || got != w.mode {
		panic(failure{fmt.Errorf("capture mode after %s: %d, was %d (%w)", what, got, w.mode, err)})
	}
	w.threads[unix.Gettid()] = true
	if w.rnd.IntN(4) == 0 {
		runtime.Gosched()
	}
}

// take keeps the thread, which gets somebody else's context and a capture
// mode. What it returns gives it back as it was.
func (w *worker) take() func() {
	if w.rnd.IntN(2) == 0 {
		return func() {}
	}
	runtime.LockOSThread()
	w.mode = w.rnd.IntN(3)
	if _, err := w.engine.ExchangeMode(w.mode); err != nil {
		panic(failure{err})
	}
	if w.rnd.IntN(4) != 0 {
		w.context = w.foreign
		if err := w.engine.SetCurrent(w.foreign); err != nil {
			panic(failure{err})
		}
	}
	return func() {
		w.context, w.mode = 0, 0
		if err := w.engine.SetCurrent(0); err != nil {
			panic(failure{err})
		}
		if _, err := w.engine.ExchangeMode(0); err != nil {
			panic(failure{err})
		}
		runtime.UnlockOSThread()
	}
}

func (w *worker) round(i int) {
	give := w.take()
	if w.number%8 == 0 {
		runtime.GC()
	}
	w.garbage = append(w.garbage[:0], make([]byte, 1<<16), make([]byte, 1<<w.rnd.IntN(18)))

	m, err := w.LoadModule(w.image)
	w.ok("LoadModule", err)
	f, err := w.Function(m, "fill_index")
	w.ok("Function", err)
	s := w.stream(i)
	ev, err := w.NewEvent()
	w.ok("NewEvent", err)
	n := uint32(1 + w.rnd.IntN(stressWords))
	p, err := w.Alloc(4*stressWords, cuda.AllocOptions{Name: "stress"})
	w.ok("Alloc", err)
	h, err := w.AllocPinned(4*stressWords, cuda.AllocOptions{Name: "stress"})
	w.ok("AllocPinned", err)
	_, _, err = w.AllocRange(p + 4)
	w.ok("AllocRange", err)

	first := w.number*stressRounds + uint32(i)
	give = w.wait(i, s, ev, give, func(b *cuda.Batch) {
		args := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{(n + 127) / 128, 1, 1}, Block: [3]uint16{128, 1, 1}}, 16)
		binary.LittleEndian.PutUint64(args, uint64(p))
		binary.LittleEndian.PutUint32(args[8:], n)
		binary.LittleEndian.PutUint32(args[12:], first)
		b.Copy(s, h.Device, p, 4*uint64(n))
	})
	got := make([]byte, 4*n)
	w.ok("Read", w.Read(got, p))
	for k := range n {
		device, host := binary.LittleEndian.Uint32(got[4*k:]), binary.LittleEndian.Uint32(h.Host[4*k:])
		if device != first+k || host != first+k {
			panic(failure{fmt.Errorf("word %d of %d: %d on the device, %d in pinned memory, not %d", k, n, device, host, first+k)})
		}
	}
	w.refused(s, ev)

	w.ok("DestroyStream", w.DestroyStream(s))
	w.ok("DestroyEvent", w.DestroyEvent(ev))
	w.ok("UnloadModule", w.UnloadModule(m))
	w.ok("Free", w.Free(p))
	w.ok("FreePinned", w.FreePinned(h))
	give()
}

// stream returns a new stream, or the engine's.
func (w *worker) stream(i int) (s cuda.Stream) {
	var err error
	if w.raw != 0 && i%3 == 2 {
		s, err = w.drv.AdoptStream(w.raw)
		w.ok("AdoptStream", err)
	} else {
		s, err = w.NewStream(cuda.StreamOptions{HighPriority: i%2 == 0})
		w.ok("NewStream", err)
	}
	return s
}

// refused makes calls that fail.
func (w *worker) refused(s cuda.Stream, ev cuda.Event) {
	var b cuda.Batch
	b.Record(s, ev)
	b.Record(s, 0xdead)
	if err := w.Submit(&b); !errors.Is(err, cuda.ErrInvalidHandle) {
		panic(failure{fmt.Errorf("a batch with a bad handle: %w", err)})
	}
	w.unchanged("Submit that fails")
	if err := w.SyncStream(bg, 0xdead); !errors.Is(err, cuda.ErrInvalidHandle) {
		panic(failure{fmt.Errorf("a bad stream: %w", err)})
	}
	w.unchanged("SyncStream that fails")
	w.ok("SyncStream", w.SyncStream(bg, s))
}

// wait submits and waits in one of four ways. A thread that waits is not always
// the one that has submitted: it may be given back in between, with give.
func (w *worker) wait(i int, s cuda.Stream, ev cuda.Event, give func(), add func(*cuda.Batch)) func() {
	move := func() {
		if w.rnd.IntN(3) == 0 {
			give()
			runtime.Gosched()
			give = w.take()
		}
	}
	if way := (i + int(w.number)/2) % 4; way < 3 {
		b := new(cuda.Batch)
		add(b)
		b.Record(s, ev)
		w.ok("Submit", w.Submit(b))
		b = nil // the collector may have it
		move()
		switch way {
		case 0:
			w.ok("SyncStream", w.SyncStream(bg, s))
		case 1:
			w.ok("Sync", w.Sync(bg))
		case 2:
			for marks := []cuda.Mark{{Event: ev}}; marks[0].State != cuda.MarkFired; {
				w.ok("Poll", w.Poll(marks))
				w.ok("Sleep", w.Clock().Sleep(bg, 100*time.Microsecond))
			}
		}
		return give
	}
	joined, err := stream.Adopt(w.reg, s, "stress")
	w.ok("Adopt", err)
	b := stream.NewBatch(w.reg)
	add(b.Raw())
	fence := b.Record(joined)
	w.ok("Submit", b.Submit())
	move()
	w.ok("Wait", fence.Wait(bg))
	b.Reset()
	w.ok("Close", joined.Close())
	return give
}
