package loadgate_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
	"github.com/kvgate/kvgate/stream"
)

// everyModel calls f with the models of the folders in KVGATE_MODELS, a list like
// PATH, where each is a folder with a config.json; or else with those that the
// library knows and those of its test data. Instead of a model that is refused f
// gets the error.
func everyModel(t *testing.T, f func(name string, m *layout.Model, err error)) {
	if parents := filepath.SplitList(os.Getenv("KVGATE_MODELS")); len(parents) > 0 {
		for _, parent := range parents {
			configs, err := filepath.Glob(filepath.Join(parent, "*", "config.json"))
			require.NoError(t, err)
			require.NotEmpty(t, configs, "no models in %s", parent)
			for _, c := range configs {
				m, err := layout.LoadConfig(c)
				f(filepath.Base(filepath.Dir(c)), m, err)
			}
		}
		return
	}
	for _, name := range layout.Names() {
		m, err := layout.Named(name)
		f(name, m, err)
	}
	file := filepath.Join("..", "memory", "layout", "testdata", "models.txt")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	models, err := layout.ReadModels(file, string(text))
	require.NoError(t, err)
	for _, m := range models {
		f(m.Name, m, nil)
	}
}

// TestEveryModel takes each model to a gate, at reduced size, and lets its groups
// have one block after the other, in every order of two. The whole arena is held
// against plain bytes after each zeroing, reset, load and step: what the group
// keeps in the block, the gaps of its pages, the bytes of other groups, the
// neighbours and the null block.
//
// Of the orders of dimensions the first reuseOrders that a model takes are used,
// and all with KVGATE_LONG=1.
func TestEveryModel(t *testing.T) {
	orders := []layout.Order{layout.LBNHC, layout.BLNHC, layout.LHBNC, layout.BHLNC, layout.LBHNC, layout.BLHNC}
	everyModel(t, func(name string, m *layout.Model, err error) {
		t.Run(name, func(t *testing.T) {
			if err != nil {
				t.Logf("refused: %v", err)
				return
			}
			planned := 0
			for _, order := range orders {
				p, err := layout.NewPlan(m, layout.Options{Order: order})
				if err != nil {
					t.Logf("refused: %v", err)
					continue
				}
				if planned++; planned > reuseOrders && os.Getenv("KVGATE_LONG") == "" {
					break
				}
				p, err = p.Scaled(p.MaxScale(reusePage(p)))
				require.NoError(t, err)
				newReuse(t, p, loadgate.PerBlock).run(asked, stepped, loaded, partly)
				newReuse(t, p, loadgate.PerBlockSkipCovered).run(loaded, partly)
			}
			require.Positive(t, planned)
		})
	})
}

// reusePage returns the least bytes of a page in which half of the tokens have
// some of each head.
func reusePage(p *layout.Plan) int {
	heads := 1
	if o := p.Options.Order; o != layout.LBNHC && o != layout.BLNHC {
		for g := range p.Groups {
			for i := range p.Groups[g].Pages {
				heads = max(heads, p.Groups[g].Pages[i].Heads)
			}
		}
	}
	return max(16, 4*heads)
}

// The ways in which a block gets its first content.
type firstUse int

const (
	asked   firstUse = iota // zeroed or reset because the engine asked
	stepped                 // by the first step that names it
	loaded                  // by a load of all that the group keeps
	partly                  // by a load of some of the tokens
)

const (
	reuseBlocks = 4 // the null block, a neighbour on either side, and the one that is reused
	reused      = kv.Block(2)
	guard       = 64 // bytes on either side of the arena
)

// reuse is a gate for one plan, of whose blocks all but one are taken.
type reuse struct {
	t         *testing.T
	dev       *sim.Device
	reg       *event.Registry
	set       *kernels.Set
	compute   *stream.Stream
	fabric    *softnic.Fabric
	agent     nixl.Agent
	peer      nixl.Peer
	gate      *loadgate.Gate
	pool      loadgate.Pool
	plan      *layout.Plan
	arena     *layout.Arena
	tables    layout.Tables
	remote    *layout.Arena
	pairing   *layout.Pairing
	theirs    *softnic.HostMemory
	templates [][]byte // by group; nil: zeros
	memory    cuda.DevicePtr
	want      []byte // what all of the memory has to hold
	got       []byte
	rand      *rand.Rand
	uses      uint32
}

func newReuse(t *testing.T, p *layout.Plan, mode loadgate.Mode) *reuse {
	r := &reuse{t: t, plan: p, rand: rand.New(rand.NewPCG(1, 2))}
	ok := func(err error) {
		t.Helper()
		require.NoError(t, err)
	}
	var err error
	r.dev, err = sim.New(sim.Options{})
	ok(err)
	r.reg = event.NewRegistry(r.dev)
	r.set, err = kernels.Load(r.dev)
	ok(err)
	r.compute, err = stream.New(r.reg, cuda.StreamOptions{Name: "compute"})
	ok(err)
	r.memory, err = r.dev.Alloc(p.Size(reuseBlocks)+2*guard, cuda.AllocOptions{Name: "kv"})
	ok(err)
	r.arena, err = p.Place(uint64(r.memory)+guard, reuseBlocks)
	ok(err)
	r.tables = r.arena.Tables()
	r.want = make([]byte, p.Size(reuseBlocks)+2*guard)
	r.got = make([]byte, len(r.want))
	r.fillRandom(r.want)
	ok(r.dev.Write(r.memory, r.want))

	r.fabric = softnic.New(r.dev.World(), softnic.Options{})
	r.agent, err = r.fabric.NewAgent("decode", r.dev.Memory())
	ok(err)
	_, err = r.agent.Register(nixl.VRAM, []nixl.Descriptor{{Addr: r.arena.Base, Len: p.Size(reuseBlocks)}})
	ok(err)
	r.theirs = softnic.NewHostMemory(p.Size(2))
	r.fillRandom(r.theirs.Bytes())
	r.remote, err = p.Place(r.theirs.Addr(), 2)
	ok(err)
	r.pairing, err = layout.NewPairing(r.arena, r.remote.Description())
	ok(err)
	prefill, err := r.fabric.NewAgent("prefill", r.theirs)
	ok(err)
	_, err = prefill.Register(nixl.DRAM, []nixl.Descriptor{{Addr: r.theirs.Addr(), Len: r.theirs.Len()}})
	ok(err)
	blob, err := prefill.Metadata()
	ok(err)
	r.peer, err = r.agent.AddPeer(blob)
	ok(err)

	pool := loadgate.PoolOptions{Name: p.Model.Name, Table: r.tables.Transfer}
	for g := range r.tables.Groups {
		gt := &r.tables.Groups[g]
		var used uint64
		for i := range p.Groups[g].Pages {
			used += p.Groups[g].Pages[i].Used
		}
		require.Equal(t, used, gt.Fill.Bytes(), "gaps are not filled")
		require.Equal(t, gt.State || p.NeedsZeroing, gt.NeedsZero)
		o := loadgate.GroupOptions{Name: gt.Name, Fill: gt.Fill, State: gt.State, NeedsZero: gt.NeedsZero}
		var template []byte
		if gt.State && g%2 == 1 {
			template = make([]byte, gt.Fill.Bytes())
			r.fillRandom(template)
			o.Template, err = r.dev.Alloc(uint64(len(template)), cuda.AllocOptions{Name: "template"})
			ok(err)
			ok(r.dev.Write(o.Template, template))
		}
		r.templates = append(r.templates, template)
		pool.Groups = append(pool.Groups, o)
	}
	r.gate, err = loadgate.New(r.reg, r.set, loadgate.Options{Mode: mode, Compute: r.compute, Agent: r.agent, Pools: []loadgate.PoolOptions{pool}})
	ok(err)
	r.pool, err = r.gate.Pool(0)
	ok(err)
	return r
}

func (r *reuse) fillRandom(b []byte) {
	for i := range b {
		b[i] = byte(r.rand.Uint32N(255)) + 1 // never 0, so that zeroing shows
	}
}

// run goes through all groups with each of the uses, and ends the gate.
func (r *reuse) run(uses ...firstUse) {
	ok := func(err error) { require.NoError(r.t, err) }
	first := kv.Group(0)
	neighbours, err := r.gate.Alloc([]loadgate.Want{{Group: first, Blocks: reuseBlocks - 1}}, nil)
	ok(err)
	ok(r.pool.Free(neighbours[reused-1 : reused]))
	for _, use := range uses {
		for _, g := range inEveryOrder(len(r.plan.Groups)) {
			r.tenancy(g, use)
		}
	}
	ctx := r.t.Context()
	ok(r.dev.Sync(ctx))
	ok(r.gate.Close(ctx))
	for _, end := range []func() error{r.fabric.Close, r.compute.Close, r.set.Close, r.reg.Close, r.dev.Close} {
		ok(end())
	}
}

// inEveryOrder returns a walk over n groups in which every two follow each other
// in either order, each after itself included: an Eulerian circuit of the
// complete graph with loops, by Hierholzer's way.
func inEveryOrder(n int) (walk []int) {
	next := make([]int, n) // by group, the successor that has not been taken yet
	stack := []int{0}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		if next[at] == n {
			walk = append(walk, at)
			stack = stack[:len(stack)-1]
			continue
		}
		stack = append(stack, next[at])
		next[at]++
	}
	return walk
}

// tenancy gives the block to a group for one request.
func (r *reuse) tenancy(g int, use firstUse) {
	gr, gt := &r.plan.Groups[g], &r.tables.Groups[g]
	tokens := layout.TokenRange{To: max(gr.BlockTokens, 1)}
	switch {
	case gt.State:
		tokens.To = 1
	case use == partly:
		tokens.To = tokens.To/2 + 1
	}
	what := func(after string) string {
		return fmt.Sprintf("%v, %v, scale %d: tenancy %d, of group %d (%s), after the %s", r.gate.Mode(), r.plan.Options.Order, r.plan.Scale, r.uses, g, gt.Name, after)
	}
	ok := func(err error) { require.NoError(r.t, err, what("call")) }
	ctx := r.t.Context()
	r.uses++

	ts, err := r.gate.Alloc([]loadgate.Want{{Group: kv.Group(g), Blocks: 1}}, nil)
	ok(err)
	require.Equal(r.t, reused, ts[0].Block)
	h, err := r.gate.Hold(kv.Group(g), ts)
	ok(err)
	r.check(what("allocation"))

	fillings := r.gate.Counters().ZeroedBlocks
	switch use {
	case asked:
		filling := loadgate.Zeroing
		if gt.State {
			filling = loadgate.Resetting
		}
		ok(r.gate.Zero(loadgate.ZeroRequest{Filling: filling, Tenancies: ts}))
		ok(r.gate.Flush())
		ok(r.gate.WaitBlocks(ctx, 0, ts))
		r.fill(g)
		r.check(what(filling.String()))
	case stepped:
		if gt.NeedsZero {
			r.fill(g)
		}
	case loaded, partly:
		covered := tokens.To == gr.BlockTokens || gt.State
		skip := covered && r.gate.Mode() == loadgate.PerBlockSkipCovered
		if gt.NeedsZero {
			r.fill(g)
		}
		r.load(h, g, tokens, what)
		r.check(what("load"))
		if gt.NeedsZero {
			require.Equal(r.t, skip, fillings == r.gate.Counters().ZeroedBlocks, what("load"))
		}
	}

	plan, err := r.gate.Plan([]loadgate.Holder{h})
	ok(err)
	f, err := plan.Launch(func(b *loadgate.Commands) error { r.write(b, g); return nil })
	ok(err)
	ok(r.gate.EndStep())
	ok(r.gate.Wait(ctx, f))
	r.check(what("step"))
	ok(r.gate.Drop(h))
	ok(r.pool.Free(ts))
}

// fill does to the expected bytes what zeroing or resetting the block does.
func (r *reuse) fill(g int) {
	template := r.templates[g]
	for _, s := range r.tables.Groups[g].Fill.Segments {
		page := r.at(s.Address(reused), s.Page)
		if template == nil {
			clear(page)
			continue
		}
		template = template[copy(page, template):]
	}
}

// load brings the tokens, in fact and to the expected bytes.
func (r *reuse) load(h loadgate.Holder, g int, tokens layout.TokenRange, what func(string) string) {
	ok := func(err error) { require.NoError(r.t, err, what("call")) }
	tr := &layout.Transfer{Tokens: tokens, Groups: make([]layout.GroupBlocks, len(r.plan.Groups))}
	for i := range tr.Groups {
		tr.Groups[i] = layout.GroupBlocks{Local: []kv.Block{reused}, Remote: []kv.Block{1}, Skip: i != g}
	}
	r.fillRandom(r.theirs.Bytes())
	var m layout.Moves
	ok(r.pairing.Moves(&m, tr))
	spec := nixl.Spec{Op: nixl.Read, Peer: r.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for _, mv := range m.Peers[0] {
		spec.Local = append(spec.Local, nixl.Descriptor{Addr: mv.Local, Len: mv.Len})
		spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: mv.Remote, Len: mv.Len})
		copy(r.at(mv.Local, mv.Len), r.theirs.Bytes()[mv.Remote-r.theirs.Addr():])
	}
	x, err := r.agent.NewTransfer(spec)
	ok(err)
	ticket, err := r.gate.Load(h, x)
	ok(err)
	ok(ticket.Wait(r.t.Context()))
}

// write is a step that writes the first half of each run of bytes that the group
// keeps, with what reads as NaN in every format.
func (r *reuse) write(b *loadgate.Commands, g int) {
	for _, s := range r.tables.Groups[g].Fill.Segments {
		words := (s.Page/4 + 1) / 2
		value := 0xffff0000 | r.uses
		b.Fill32(r.compute, cuda.DevicePtr(s.Address(reused)), value, words)
		page := r.at(s.Address(reused), words*4)
		for i := range words {
			binary.LittleEndian.PutUint32(page[4*i:], value)
		}
	}
}

// at returns the expected bytes at an address.
func (r *reuse) at(address, n uint64) []byte { return r.want[address-uint64(r.memory):][:n] }

func (r *reuse) check(what string) {
	require.NoError(r.t, r.dev.Read(r.got, r.memory))
	if !bytes.Equal(r.want, r.got) {
		for i := range r.want {
			if r.want[i] != r.got[i] {
				require.FailNow(r.t, what, "byte %d of the arena is %#x, want %#x", i-guard, r.got[i], r.want[i])
			}
		}
	}
}

func TestInEveryOrder(t *testing.T) {
	for n := 1; n < 8; n++ {
		seen := map[[2]int]int{}
		walk := inEveryOrder(n)
		for i := range walk[1:] {
			seen[[2]int{walk[i], walk[i+1]}]++
		}
		require.Len(t, seen, n*n)
		require.Len(t, walk, n*n+1, "each once")
	}
}
