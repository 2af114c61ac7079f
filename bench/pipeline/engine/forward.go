package engine

import (
	"encoding/binary"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
)

const (
	// kernelsPerLayer, with the cost table's gap between kernels, is what a
	// forward takes beside the bytes that it moves. No published figure was at
	// hand.
	kernelsPerLayer = 8
	// stepJitter is by how much of its bytes a forward is late at most, by the
	// seed and the step's number: the same in every mode. An assumption.
	stepJitter = 0.02
	// forwardBlocks fill every SM of the device.
	forwardBlocks = 132
)

// step is one forward.
type step struct {
	n       int
	entries []entry
	first   []use // attention blocks to be checked beside the last of each entry
	read    float64
	written float64
	fence   event.Fence
}

// entry is one sequence's part in a step: it writes the token at pos.
type entry struct {
	seq     *sequence
	pos     int
	version int // of its states before the step
}

type use struct {
	c      *cell
	filled int
	seq    *sequence
}

// makeModels makes the kernels of a step: the forward, and behind it the time
// of its launches and of sampling.
func (e *engine) makeModels() (err error) {
	if e.forward, err = e.dev.NewModel(forwardName, e.runForward); err != nil {
		return err
	}
	gaps := time.Duration(kernelsPerLayer*len(e.cfg.Plan.Model.Layers)) * e.dev.Costs().KernelGap
	e.sample, err = e.dev.NewModel(sampleName, func(k *sim.ModelLaunch) error {
		k.Time, k.Chunks = gaps, 1
		return nil
	})
	return err
}

const (
	forwardName = "forward"
	sampleName  = "sample"
)

// launch puts the kernels of a step into a batch.
func (e *engine) launch(st *step) func(*loadgate.Commands) error {
	return func(b *loadgate.Commands) error {
		g := cuda.Geometry{Grid: [3]uint32{forwardBlocks, 1, 1}, Block: [3]uint16{256, 1, 1}}
		binary.LittleEndian.PutUint64(b.Launch(e.compute, e.forward, g, 8), uint64(st.n))
		b.Launch(e.compute, e.sample, g, 0)
		return nil
	}
}

// runForward is the forward kernel: a layer after the other it reads the blocks
// of the batch, appends a token to each sequence and renews its states.
func (e *engine) runForward(k *sim.ModelLaunch) error {
	st := e.steps[binary.LittleEndian.Uint64(k.Args)]
	l := e.ledger
	if l.mem == nil {
		mem, err := k.Memory().Bytes(e.cache.arena.Base, e.cache.size())
		if err != nil {
			return err
		}
		l.mem = mem
	}
	late := 1 + stepJitter*fraction(e.cfg.Seed, uint64(st.n))
	k.Read, k.Written = (e.cfg.Weights+st.read)*late, st.written
	k.Chunks = min(e.dev.Costs().Chunks, e.cache.pages)
	k.Step = func(_ *sim.Memory, i int) error {
		for p := i * e.cache.pages / k.Chunks; p < (i+1)*e.cache.pages/k.Chunks; p++ {
			e.forwardPage(st, p)
		}
		return nil
	}
	return nil
}

// forwardPage does a step's accesses to one page of its blocks.
func (e *engine) forwardPage(st *step, p int) {
	l := e.ledger
	for i := range st.first {
		u := &st.first[i]
		if p < u.c.group.pages && !u.seq.over {
			l.use(u.c, p, 0, u.filled, u.seq.r)
		}
	}
	for i := range st.entries {
		en := &st.entries[i]
		for gi := range e.cache.groups {
			g := &e.cache.groups[gi]
			if p >= g.pages {
				continue
			}
			if g.state {
				c := en.seq.cells[gi][0]
				if !en.seq.over {
					l.use(c, p, en.version, 0, en.seq.r)
				}
				l.writes(c)
				l.append(c, p, en.version, 0)
				continue
			}
			index := en.pos / g.tokens
			c := en.seq.cells[gi][index]
			filled := g.filled(index, en.pos)
			if !en.seq.over {
				l.use(c, p, 0, filled, en.seq.r)
			}
			l.writes(c)
			l.append(c, p, 0, filled)
		}
	}
}

// fraction is a number from 0 to before 1 made from two others.
func fraction(a, b uint64) float64 {
	x := a*0x9e3779b97f4a7c15 + b
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	x ^= x >> 31
	return float64(x>>11) / (1 << 53)
}
