package scenario

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/gatetest"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

// The pool of a scenario. Each byte stands for costScale of a real block, so
// that a block costs what 2 MiB do and content stays cheap to look at.
const (
	segments   = 2
	pageBytes  = 1024
	blockBytes = segments * pageBytes
	costScale  = 1024
	peerBytes  = 512 << 10
)

var peerNames = []string{"prefill", "prefill2"}

// rig is the rig of all tests with a second stream, two peers and the kernels of
// scenarios.
type rig struct {
	*gatetest.Rig
	other *stream.Stream
	busy  cuda.Function
	step  cuda.Function
	peers map[string]*peer
}

type peer struct {
	gatetest.Peer
	used uint64
}

// gateSpec is what the statement gate says.
type gateSpec struct {
	mode   loadgate.Mode
	blocks int
	limit  time.Duration
	clean  bool   // blocks need no zeroing
	first  kv.Seq // how many marks each stream counts as past
}

func newRig(r *run, o Options, spec gateSpec) (g *rig, err error) {
	var fabric softnic.Options
	if o.Seed != 0 {
		fabric.Reorder, fabric.Jitter = true, 20*time.Microsecond
	}
	g = &rig{peers: map[string]*peer{}}
	g.Rig, err = gatetest.New(gatetest.Options{
		Sim:    sim.Options{Seed: o.Seed, Chooser: o.Chooser, Real: o.Real, Slow: o.Slow},
		Wrap:   func(d *sim.Device) cuda.Device { return faultdev.Wrap(d, r.failCommand) },
		Events: event.Options{FirstSeq: spec.first},
		Blocks: spec.blocks, Segments: segments, Page: pageBytes, CostScale: costScale, Clean: spec.clean,
		Fabric: fabric, Peers: peerNames, PeerBytes: peerBytes,
		Check: spec.mode.Gated(),
		Gate:  loadgate.Options{Mode: spec.mode, HoldLimit: spec.limit, Listener: r.listener()}})
	if err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("scenario: rig: %w", err), g.close(nil))
		}
	}()
	g.Fabric.Inject(r.chooseFault)
	for i, name := range peerNames {
		g.peers[name] = &peer{Peer: g.Peers[i]}
	}
	if g.other, err = stream.New(g.Events, cuda.StreamOptions{Name: "other"}); err != nil {
		return g, err
	}
	if g.busy, err = g.Sim.Model(busyModel); err != nil {
		return g, err
	}
	g.step, err = g.Sim.Model(stepModel)
	return g, err
}

// close ends everything, whatever is in flight. quiet is asked first, so that
// the gate can end by itself.
func (g *rig) close(quiet func() error) error {
	if quiet != nil {
		_ = quiet() // whatever hangs, the rig takes its transport away
	}
	var errs []error
	if g.other != nil {
		dead := g.Events.Err() != nil
		if !dead {
			_, err := g.other.Mark() // covers a mark that failed
			errs = append(errs, err, g.Sim.Sync(context.Background()))
			_, err = g.Events.Poll()
			errs = append(errs, err)
		}
		if err := g.other.Close(); !dead {
			errs = append(errs, err)
		}
	}
	return errors.Join(append(errs, g.Rig.Close())...)
}
