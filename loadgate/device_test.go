package loadgate_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// The tests of this file run on the device at hand: a GPU where there is one,
// else the simulator on the wall clock. The NIC is a copy engine, on a stream
// that the gate knows as little of as of a NIC.

const (
	deviceBlocks   = 24
	deviceSegments = 4
	devicePage     = 8 << 10
	deviceSource   = 2 << 20 // bytes that loads come from
)

// deviceRig is a gate on that device.
type deviceRig struct {
	dev     cuda.Device
	reg     *event.Registry
	compute *stream.Stream
	gate    *loadgate.Gate
	pool    loadgate.Pool
	table   layout.Table
	source  cuda.PinnedBuffer
	busy    cuda.DevicePtr
	nic     *copyEngine
	rand    *rand.Rand
}

const busyBytes = 32 << 20

func newDeviceRig(t *testing.T, mode loadgate.Mode) *deviceRig {
	dev, err := auto.Open(t.Output(), auto.Options{Sim: sim.Options{Real: true, Slow: 100}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	r := &deviceRig{dev: dev, reg: event.NewRegistry(dev), rand: rand.New(rand.NewPCG(1, 2))}
	t.Cleanup(func() { require.NoError(t, r.reg.Close()) })
	set, err := kernels.Load(dev)
	require.NoError(t, err)
	r.compute, err = stream.New(r.reg, cuda.StreamOptions{Name: "compute"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, r.compute.Close()) })
	base, err := dev.Alloc(deviceBlocks*deviceSegments*devicePage, cuda.AllocOptions{Name: "kv"})
	require.NoError(t, err)
	r.busy, err = dev.Alloc(busyBytes, cuda.AllocOptions{Name: "busy"})
	require.NoError(t, err)
	r.source, err = dev.AllocPinned(deviceSource, cuda.AllocOptions{Name: "source"})
	require.NoError(t, err)
	for i := 0; i < deviceSource; i += 8 {
		binary.LittleEndian.PutUint64(r.source.Host[i:], uint64(i)+1)
	}
	r.table = layout.Table{Blocks: deviceBlocks}
	for s := range uint64(deviceSegments) {
		r.table.Segments = append(r.table.Segments, layout.Segment{
			Base: uint64(base) + s*deviceBlocks*devicePage, Stride: devicePage, Page: devicePage})
	}
	r.nic = newCopyEngine(t, dev)
	r.gate, err = loadgate.New(r.reg, set, loadgate.Options{Mode: mode, Compute: r.compute, Agent: r.nic,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: r.table, NeedsZero: true}}})
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, dev.Sync(context.Background()))
		_, err := r.reg.Poll()
		require.NoError(t, err)
		require.NoError(t, r.gate.Close(context.Background()))
		require.NoError(t, set.Close())
	})
	r.pool, err = r.gate.Pool(0)
	require.NoError(t, err)
	return r
}

// backlog keeps the compute stream busy for some two milliseconds on a GPU,
// and on a simulated one, which is slowed down, for longer.
func (r *deviceRig) backlog(b *stream.Batch) {
	fills := 4
	if i := r.dev.Info(); !i.Simulated {
		fills = max(fills, int(float64(i.Bandwidth)*2e-3/busyBytes))
	}
	for i := range fills {
		b.Fill32(r.compute, r.busy, uint32(i), busyBytes/4)
	}
}

// deviceRequest is blocks, with a load or without.
type deviceRequest struct {
	blocks []kv.Tenancy
	holder loadgate.Holder
	load   loadgate.Transfer
	source int // the page that the first page comes from
	seen   bool
}

func (r *deviceRig) admit(t *testing.T, n int, load bool) *deviceRequest {
	q := &deviceRequest{}
	var err error
	q.blocks, err = r.pool.Alloc(n, nil)
	require.NoError(t, err)
	q.holder, err = r.gate.Hold(0, q.blocks)
	require.NoError(t, err)
	require.NoError(t, r.gate.Zero(loadgate.ZeroRequest{Tenancies: q.blocks, Covered: load}))
	if !load {
		return q
	}
	require.NoError(t, r.gate.Flush())
	require.NoError(t, r.gate.WaitBlocks(t.Context(), 0, q.blocks))
	q.source = r.rand.IntN(deviceSource/devicePage - n*deviceSegments)
	x := &copying{nic: r.nic, spec: nixl.Spec{Op: nixl.Read, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}}
	for i, addr := range r.pages(q) {
		x.spec.Local = append(x.spec.Local, nixl.Descriptor{Addr: addr, Len: devicePage})
		x.spec.Remote = append(x.spec.Remote, nixl.Descriptor{Addr: uint64(r.source.Device) + uint64((q.source+i)*devicePage), Len: devicePage})
	}
	q.load, err = r.gate.Load(q.holder, x)
	require.NoError(t, err)
	return q
}

func (r *deviceRig) release(t *testing.T, q *deviceRequest) {
	require.NoError(t, r.gate.Drop(q.holder))
	require.NoError(t, r.pool.Free(q.blocks))
	if q.load != none {
	}
}

func (r *deviceRig) pages(q *deviceRequest) (addrs []uint64) {
	for _, t := range q.blocks {
		for _, s := range r.table.Segments {
			addrs = append(addrs, s.Address(t.Block))
		}
	}
	return addrs
}

// damaged counts the pages that are not as they were sent or, without a load,
// not zero.
func (r *deviceRig) damaged(t *testing.T, q *deviceRequest) (n int) {
	got := make([]byte, devicePage)
	for i, addr := range r.pages(q) {
		want := make([]byte, devicePage)
		if q.load != none {
			want = r.source.Host[(q.source+i)*devicePage:][:devicePage]
		}
		require.NoError(t, r.dev.Read(got, cuda.DevicePtr(addr)))
		if !bytes.Equal(got, want) {
			n++
		}
	}
	return n
}

func (r *deviceRig) step(t *testing.T, work func(*loadgate.Commands), users ...*deviceRequest) event.Fence {
	var holders []loadgate.Holder
	for _, q := range users {
		holders = append(holders, q.holder)
	}
	plan, err := r.gate.Plan(holders)
	require.NoError(t, err)
	f, err := plan.Launch(func(b *loadgate.Commands) error { work(b); return nil })
	require.NoError(t, err)
	require.NoError(t, r.gate.EndStep())
	return f
}

// TestRaceOnDevice: zeroing waits behind a backlog while a load into the same
// blocks is posted, in each mode.
func TestRaceOnDevice(t *testing.T) {
	for _, mode := range core.Modes() {
		t.Run(mode.String(), func(t *testing.T) {
			r := newDeviceRig(t, mode)
			rounds := 1
			if !r.dev.Info().Simulated {
				rounds = 20
			}
			for range rounds {
				release := func() {}
				if mode == core.Ungated && r.dev.Info().Simulated {
					// However slow the host is, the zeroing comes after the load. On
					// a GPU a first launch may wait for all streams: no hold there.
					release, _ = cudatest.Hold(t, r.dev, r.compute.Handle())
				}
				b := stream.NewBatch(r.reg)
				r.backlog(b)
				require.NoError(t, b.Submit())
				fresh, loaded := r.admit(t, 3, false), r.admit(t, 5, true)
				require.NoError(t, r.gate.EndStep())
				require.NoError(t, loaded.load.Wait(t.Context()))
				release()
				f := r.step(t, func(b *loadgate.Commands) { b.Fill32(r.compute, r.busy, 0, 256) }, fresh, loaded)
				require.NoError(t, r.gate.Wait(t.Context(), f))
				require.NoError(t, r.dev.Sync(t.Context()))
				if mode == core.Ungated {
					require.Positive(t, r.damaged(t, loaded), "the race did not show")
				} else {
					require.Zero(t, r.damaged(t, loaded), "pages that are not as they were sent")
				}
				require.Zero(t, r.damaged(t, fresh), "fresh pages that are not zero")
				r.release(t, fresh)
				r.release(t, loaded)
			}
		})
	}
}

// TestSoakOnDevice is an engine that schedules one step ahead, in the modes that
// promise something. Each request's pages are looked at once a step has used
// them, and then written all over, so that who comes next would see it.
func TestSoakOnDevice(t *testing.T) {
	for _, mode := range core.Modes() {
		if !mode.Gated() {
			continue
		}
		t.Run(mode.String(), func(t *testing.T) {
			r := newDeviceRig(t, mode)
			steps, looked := 16, 0
			if !r.dev.Info().Simulated {
				steps = 400
			}
			var loading, running []*deviceRequest
			var output event.Fence
			for range steps {
				for range r.rand.IntN(3) {
					n := 1 + r.rand.IntN(3)
					if r.pool.Counters().Free < n {
						break
					}
					if q := r.admit(t, n, r.rand.IntN(3) > 0); q.load == none {
						running = append(running, q)
					} else {
						loading = append(loading, q)
					}
				}
				left := loading[:0]
				for _, q := range loading {
					if q.load.Done() {
						require.NoError(t, q.load.Err())
						running = append(running, q)
					} else {
						left = append(left, q)
					}
				}
				loading = left

				last, look := output, false
				output = r.step(t, func(b *loadgate.Commands) {
					b.Fill32(r.compute, r.busy, 0, busyBytes/32)
					for _, q := range running {
						if !q.seen {
							look = true
							continue
						}
						for _, addr := range r.pages(q) {
							b.Fill8(r.compute, cuda.DevicePtr(addr), 0x5A, devicePage)
						}
					}
				}, running...)
				if look {
					last = output
				}
				require.NoError(t, r.gate.Wait(t.Context(), last))
				stay := running[:0]
				for _, q := range running {
					if !q.seen {
						require.Zero(t, r.damaged(t, q), "pages of %v", q.blocks)
						q.seen = true
						looked += len(q.blocks)
						stay = append(stay, q)
					} else if r.rand.IntN(2) == 0 {
						r.release(t, q) // the step that writes it is under way, perhaps
					} else {
						stay = append(stay, q)
					}
				}
				running = stay
			}
			for _, q := range loading {
				require.NoError(t, q.load.Wait(t.Context()))
			}
			require.NoError(t, r.gate.Wait(t.Context(), output))
			for _, q := range append(loading, running...) {
				r.release(t, q)
			}
			c := r.gate.Counters()
			require.Equal(t, c.Loads, c.Succeeded, "%+v", c)
			require.Positive(t, c.Loads)
			require.Greater(t, looked, steps/4)
			t.Logf("%d blocks looked at, %d loads", looked, c.Loads)
		})
	}
}

// copyEngine copies on a stream of its own.
type copyEngine struct {
	nixl.Agent
	dev    cuda.Device
	stream cuda.Stream
	looks  atomic.Uint64
}

func newCopyEngine(t *testing.T, dev cuda.Device) *copyEngine {
	s, err := dev.NewStream(cuda.StreamOptions{Name: "copy engine"})
	require.NoError(t, err)
	return &copyEngine{dev: dev, stream: s}
}

// Activity changes as time goes by: nobody tells when a copy is over.
func (e *copyEngine) Activity() uint64 { return e.looks.Add(1) }

// copying is one load of a copyEngine.
type copying struct {
	nic  *copyEngine
	spec nixl.Spec
	mark [1]cuda.Mark
}

func (c *copying) Spec() *nixl.Spec { return &c.spec }
func (c *copying) Cancel()          {}

func (c *copying) Post() error {
	e, err := c.nic.dev.NewEvent()
	if err != nil {
		return fmt.Errorf("%w: %w", nixl.ErrBackend, err)
	}
	c.mark[0] = cuda.Mark{Event: e}
	var b cuda.Batch
	for i, l := range c.spec.Local {
		b.Copy(c.nic.stream, cuda.DevicePtr(l.Addr), cuda.DevicePtr(c.spec.Remote[i].Addr), l.Len)
	}
	b.Record(c.nic.stream, e)
	if err := c.nic.dev.Submit(&b); err != nil {
		return fmt.Errorf("%w: %w", nixl.ErrBackend, err)
	}
	return nil
}

func (c *copying) Status() (nixl.Status, error) {
	if c.mark[0].Event == 0 {
		return nixl.Idle, nil
	}
	if err := c.nic.dev.Poll(c.mark[:]); err != nil {
		return nixl.Failed, fmt.Errorf("%w: %w", nixl.ErrBackend, err)
	}
	if c.mark[0].State != cuda.MarkFired {
		return nixl.InProgress, nil
	}
	return nixl.Done, nil
}

func (c *copying) Close() error {
	if c.mark[0].Event == 0 {
		return nil
	}
	err := c.nic.dev.DestroyEvent(c.mark[0].Event)
	c.mark[0].Event = 0
	return err
}
