package decode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/bench/live/nic"
	"github.com/kvgate/kvgate/bench/live/standin"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/stream"
)

// Machine is a device with memory for blocks and a NIC. It serves all rounds; the
// gate and the pool are made anew for each.
type Machine struct {
	cfg     Config
	dev     *counted
	clk     clock.Clock // the device's
	wall    clock.Clock
	reg     *event.Registry
	set     *kernels.Set
	standin *standin.Set
	compute *stream.Stream
	cache   *memory.Buffer
	staging *memory.Staging // items of steps
	reports [ahead + 1]*memory.Pinned
	pages   standin.Pages
	table   layout.Table
	nic     *nic.NIC

	patience time.Duration // how long a load may take
	steps    uint32        // launched, of all rounds
	requests uint32
}

// loadLimit is how long a load may take.
const loadLimit = 30 * time.Second

// Open makes a machine of a device, with a NIC of the kind. A simulated device is
// slow times as slow as its model.
func Open(ctx context.Context, dev cuda.Device, cfg Config, kind string, slow float64) (m *Machine, err error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m = &Machine{cfg: cfg, clk: dev.Clock(), wall: clock.Wall(), patience: loadLimit}
	var watched cuda.Device
	m.dev, watched = count(dev)
	m.reg = event.NewRegistry(watched)
	if err := m.build(ctx, dev, kind, slow); errors.Is(err, nixl.ErrBusy) {
		return nil, err // see Close
	} else if err != nil {
		return nil, errors.Join(err, m.Close())
	}
	return m, nil
}

func (m *Machine) build(ctx context.Context, dev cuda.Device, kind string, slow float64) (err error) {
	c := &m.cfg
	if m.set, err = kernels.Load(m.reg.Device()); err != nil {
		return err
	}
	if m.standin, err = standin.Load(dev); err != nil {
		return err
	}
	if m.compute, err = stream.New(m.reg, cuda.StreamOptions{Name: "compute"}); err != nil {
		return err
	}
	if m.cache, err = memory.NewBuffer(dev, uint64(c.Blocks())*c.BlockBytes(), cuda.AllocOptions{Name: "kv cache"}); err != nil {
		return err
	}
	if m.pages, err = standin.NewPages(m.cache.Ptr(), c.Blocks(), c.Segments, c.PageBytes, c.BlockTokens); err != nil {
		return err
	}
	m.table = layout.Table{Blocks: c.Blocks()}
	for s := range c.Segments {
		m.table.Segments = append(m.table.Segments,
			layout.Segment{Base: m.pages.Address(s, 0), Stride: uint64(c.PageBytes), Page: uint64(c.PageBytes)})
	}
	items := c.Blocks() + c.Requests // of a step, at most
	if m.staging, err = memory.NewStaging(m.reg, "items", (ahead+1)*(items*standin.ItemBytes+64)); err != nil {
		return err
	}
	for i := range m.reports {
		if m.reports[i], err = memory.NewPinned(dev, uint64(8*c.Blocks()*c.Segments), cuda.AllocOptions{Name: "report"}); err != nil {
			return err
		}
	}
	m.nic, err = nic.Open(ctx, kind, nic.Options{Device: dev, Base: m.cache.Ptr(), Size: m.cache.Size(), Slow: slow, Prompts: c.prompts()})
	return err
}

// NIC returns the machine's NIC.
func (m *Machine) NIC() *nic.NIC { return m.nic }

// Close ends the machine, though not its device. Where that fails with
// [nixl.ErrBusy], a transfer is under way that may never end: the device's memory
// must stay as it is.
func (m *Machine) Close() error {
	errs := []error{m.reg.Device().Sync(context.Background())}
	if _, err := m.reg.Poll(); err != nil {
		errs = append(errs, err)
	}
	if m.nic != nil {
		if err := m.nic.Close(); err != nil {
			// What the NIC may still write to is left to the end of the process.
			return errors.Join(append(errs, err)...)
		}
	}
	if m.staging != nil {
		errs = append(errs, m.staging.Close())
	}
	for _, p := range m.reports {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	if m.cache != nil {
		errs = append(errs, m.cache.Close())
	}
	if m.compute != nil {
		errs = append(errs, m.compute.Close())
	}
	if m.standin != nil {
		errs = append(errs, m.standin.Close())
	}
	if m.set != nil {
		errs = append(errs, m.set.Close())
	}
	return errors.Join(append(errs, m.reg.Close())...)
}

// nextRequest numbers requests, through all rounds, so that nothing that an
// earlier one left passes for a later one's.
func (m *Machine) nextRequest() (uint32, error) {
	if m.requests+1 >= standin.MaxRequest {
		return 0, fmt.Errorf("more than %d requests", standin.MaxRequest-1)
	}
	m.requests++
	return m.requests, nil
}
