package loadgate_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

// flow is an engine's side of a rig, with content that tells loads apart.
type flow struct {
	*rig
	rand  *rand.Rand
	model cuda.Function
	// slowPosts makes posting take some time, so that loads queue for a poster.
	slowPosts bool
}

// watched is a transfer that must not be posted once Cancel has said that it
// withdrew it.
type watched struct {
	nixl.Transfer
	rig       *rig
	cost      time.Duration
	withdrawn atomic.Bool
}

func (w *watched) Post() error {
	assert.False(w.rig.t, w.withdrawn.Load(), "posted after it was withdrawn")
	if w.cost > 0 {
		_ = w.rig.dev.Clock().Sleep(context.Background(), w.cost)
	}
	return w.Transfer.Post()
}

// request is blocks with or without a load into them.
type request struct {
	blocks []kv.Tenancy
	holder loadgate.Holder
	load   loadgate.Transfer
	read   *watched
	shared bool // others look at the ticket, too
	source int  // the page of the peer's memory that the first page came from
	steps  int  // that used it
}

func newFlow(r *rig) *flow {
	for i := 0; i < len(r.host.Bytes()); i += 8 {
		binary.LittleEndian.PutUint64(r.host.Bytes()[i:], uint64(i)+1)
	}
	model, err := r.dev.Model("use")
	require.NoError(r.t, err)
	return &flow{rig: r, rand: rand.New(rand.NewPCG(0, 0)), model: model}
}

// admit allocates, holds and zeroes n blocks and, if so asked, loads them.
func (f *flow) admit(t *testing.T, n int, load bool) *request {
	q := &request{blocks: f.alloc(n)}
	var err error
	q.holder, err = f.gate.Hold(0, q.blocks)
	require.NoError(t, err)
	require.NoError(t, f.gate.Zero(loadgate.ZeroRequest{Tenancies: q.blocks, Covered: load}))
	if !load {
		return q
	}
	require.NoError(t, f.gate.WaitBlocks(t.Context(), 0, q.blocks))
	q.source = f.rand.IntN(int(f.host.Len())/page - n*segments)
	spec := nixl.Spec{Op: nixl.Read, Peer: f.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for i, addr := range f.pages(q) {
		spec.Local = append(spec.Local, nixl.Descriptor{Addr: addr, Len: page})
		spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: f.host.Addr() + uint64((q.source+i)*page), Len: page})
	}
	tr, err := f.agent.NewTransfer(spec)
	require.NoError(t, err)
	q.read = &watched{Transfer: tr, rig: f.rig}
	if f.slowPosts {
		q.read.cost = time.Duration(f.rand.IntN(200)) * time.Microsecond
	}
	q.load, err = f.gate.Load(q.holder, q.read)
	require.NoError(t, err)
	return q
}

func (f *flow) release(t *testing.T, q *request) {
	require.NoError(t, f.gate.Drop(q.holder))
	require.NoError(t, f.pool.Free(q.blocks))
}

func (f *flow) pages(q *request) (addrs []uint64) {
	for _, t := range q.blocks {
		for _, s := range f.table.Segments {
			addrs = append(addrs, s.Address(t.Block))
		}
	}
	return addrs
}

// damaged counts the blocks of a load that are not as sent.
func (f *flow) damaged(q *request) (n int) {
	for i, t := range q.blocks {
		want := f.host.Bytes()[(q.source+i*segments)*page:][:segments*page]
		if !bytes.Equal(f.content(t), want) {
			n++
		}
	}
	return n
}

var fresh, unzeroed atomic.Int64

// step returns a step of that length that writes all over the blocks of the
// requests; where it is the first to use them, it checks first that they are
// zero.
func (f *flow) step(d time.Duration, writes ...*request) func(*loadgate.Commands) error {
	words := []uint64{uint64(d)}
	for _, q := range writes {
		for _, addr := range f.pages(q) {
			if q.steps == 0 {
				addr |= 1 // pages are aligned
			}
			words = append(words, addr)
		}
	}
	return func(b *loadgate.Commands) error {
		args := b.Launch(f.compute, f.model, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}, 8*len(words))
		for i, w := range words {
			binary.LittleEndian.PutUint64(args[8*i:], w)
		}
		return nil
	}
}

func init() {
	sim.RegisterModel("use", func(k *sim.ModelLaunch) error {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(k.Args[8*i:]) }
		pages := len(k.Args)/8 - 1
		k.Time, k.Chunks, k.Written = time.Duration(word(0)), max(1, pages), float64(pages*page)
		k.Step = func(m *sim.Memory, i int) error {
			if i >= pages {
				return nil
			}
			addr := word(1 + i)
			if addr&1 != 0 {
				addr--
				got := make([]byte, page)
				if err := m.Read(addr, got); err != nil {
					return err
				}
				fresh.Add(1)
				if !bytes.Equal(got, make([]byte, page)) {
					unzeroed.Add(1)
				}
			}
			return m.Write(addr, bytes.Repeat([]byte{0x5A}, page))
		}
		return nil
	})
}
