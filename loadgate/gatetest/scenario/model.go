package scenario

import (
	"encoding/binary"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/memory/kv"
)

// Names of the models, which are global to the process.
const (
	busyModel = "kvgate/scenario busy"
	stepModel = "kvgate/scenario step"
)

func init() {
	sim.RegisterModel(busyModel, func(k *sim.ModelLaunch) error {
		k.Time = time.Duration(binary.LittleEndian.Uint64(k.Args))
		k.Chunks = 1
		return nil
	})
	sim.RegisterModel(stepModel, func(k *sim.ModelLaunch) error {
		v, ok := steps.Load(binary.LittleEndian.Uint64(k.Args))
		if !ok {
			return fmt.Errorf("no such step")
		}
		st := v.(*step)
		k.Time, k.Chunks = st.takes, stepChunks
		k.Step = st.chunk
		return nil
	})
}

var one = cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}

// steps are the steps under way, by the number that is their argument.
var (
	steps    sync.Map
	stepSeed atomic.Uint64
)

// stepChunks is in how many pieces a step reads and writes.
const stepChunks = 8

// step is a forward step: it reads its blocks over and over while it runs, and
// writes a part of what it writes in each of its chunks.
type step struct {
	r      *run
	name   string
	number uint64
	takes  time.Duration
	blocks []*stepBlock
	writer int16
}

type stepBlock struct {
	c      *cell
	want   []int16
	writes kv.Range
	wrong  bool
}

// chunk runs as an event, with the machine locked.
func (st *step) chunk(m *sim.Memory, i int) error {
	buf := make([]byte, blockBytes)
	for _, b := range st.blocks {
		for k, seg := range st.r.rig.Table.Segments {
			if err := m.Read(seg.Address(b.c.t.Block), buf[k*pageBytes:(k+1)*pageBytes]); err != nil {
				return err
			}
		}
		if !b.wrong && differ(b.want, buf, true) {
			b.wrong = true
			st.r.corrupt(b.c, fmt.Sprintf("%s reads %s: %s instead of %s", st.name, b.c.name,
				st.r.writers.describeBytes(buf), st.r.writers.describe(b.want)))
		}
		if err := st.write(m, b, uint64(i)); err != nil {
			return err
		}
	}
	if i == stepChunks-1 {
		steps.Delete(st.number)
		st.r.say("%s ran", st.name)
	}
	return nil
}

func (st *step) write(m *sim.Memory, b *stepBlock, i uint64) error {
	from := b.writes.Off + b.writes.Len*i/stepChunks
	to := b.writes.Off + b.writes.Len*(i+1)/stepChunks
	for _, d := range st.r.rig.Descriptors(b.c.t.Block, kv.Range{Off: from, Len: to - from}) {
		p := make([]byte, d.Len)
		for k := range p {
			p[k] = byte(st.writer)
		}
		if err := m.Write(d.Addr, p); err != nil {
			return err
		}
	}
	for k := from; k < to; k++ {
		b.want[k] = st.writer
	}
	return nil
}
