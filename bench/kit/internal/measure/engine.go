package measure

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// engine is a gate over one pool of blocks of the device, and a transport that
// moves nothing.
type engine struct {
	dev     cuda.Device
	reg     *event.Registry
	set     *kernels.Set
	compute *stream.Stream
	base    cuda.DevicePtr
	table   layout.Table
	gate    *loadgate.Gate
	pool    loadgate.Pool
	nic     *nic
}

const (
	engineSegments = 8
	enginePage     = 4096
)

// newEngine makes one, with blocks that are zeroed for each new owner if so
// asked. The caller keeps the device.
func newEngine(dev cuda.Device, blocks int, zero bool) (e *engine, err error) {
	e = &engine{dev: dev, reg: event.NewRegistry(dev), nic: &nic{}}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.close())
			e = nil
		}
	}()
	if e.set, err = kernels.Load(dev); err != nil {
		return e, err
	}
	if e.compute, err = stream.New(e.reg, cuda.StreamOptions{Name: "compute"}); err != nil {
		return e, err
	}
	size := uint64(blocks) * engineSegments * enginePage
	if e.base, err = dev.Alloc(size, cuda.AllocOptions{Name: "blocks"}); err != nil {
		return e, err
	}
	e.table = layout.Table{Blocks: blocks}
	for i := range uint64(engineSegments) {
		e.table.Segments = append(e.table.Segments, layout.Segment{
			Base: uint64(e.base) + i*uint64(blocks)*enginePage, Stride: enginePage, Page: enginePage})
	}
	e.gate, err = loadgate.New(e.reg, e.set, loadgate.Options{Mode: core.PerBlock, Compute: e.compute, Agent: e.nic,
		Pools: []loadgate.PoolOptions{{Name: "kv", Table: e.table, NeedsZero: zero}}})
	if err != nil {
		return e, err
	}
	e.pool, err = e.gate.Pool(0)
	return e, err
}

// close ends what was made, last first.
func (e *engine) close() error {
	ctx := context.Background()
	errs := []error{e.dev.Sync(ctx)}
	if e.gate != nil {
		errs = append(errs, e.gate.Close(ctx))
	}
	if e.base != 0 {
		errs = append(errs, e.dev.Free(e.base))
	}
	if e.compute != nil {
		errs = append(errs, e.compute.Close())
	}
	if e.set != nil {
		errs = append(errs, e.set.Close())
	}
	return errors.Join(append(errs, e.reg.Close())...)
}

// nic is a transport whose transfers are over as soon as they are posted. It
// keeps when that was.
type nic struct {
	nixl.Agent
	posts  atomic.Uint64
	posted atomic.Int64 // by now()
}

func (n *nic) Activity() uint64 { return n.posts.Load() }

// transfer makes a read into a block.
func (e *engine) transfer(t kv.Tenancy) *transfer {
	x := &transfer{nic: e.nic, spec: nixl.Spec{Op: nixl.Read}}
	for _, s := range e.table.Segments {
		x.spec.Local = append(x.spec.Local, nixl.Descriptor{Addr: s.Address(t.Block), Len: s.Page})
	}
	return x
}

type transfer struct {
	nic  *nic
	spec nixl.Spec
	done atomic.Bool
}

func (t *transfer) Spec() *nixl.Spec { return &t.spec }
func (t *transfer) Cancel()          {}
func (t *transfer) Close() error     { return nil }

func (t *transfer) Post() error {
	t.nic.posted.Store(now())
	t.done.Store(true)
	t.nic.posts.Add(1)
	return nil
}

func (t *transfer) Status() (nixl.Status, error) {
	if !t.done.Load() {
		return nixl.Idle, nil
	}
	return nixl.Done, nil
}
