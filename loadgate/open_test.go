package loadgate_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// hybrid is a model with one layer of each kind that the requests of a gate treat
// in its own way: groups 0 to 2 are full attention, a window of 32 tokens and a
// state, all with blocks of 16 tokens.
func hybrid(t testing.TB, o layout.Options) *layout.Plan {
	m := &layout.Model{Name: "hybrid", MaxTokens: 4096, Layers: []layout.Layer{
		{Kind: layout.FullAttention, KVHeads: 1, KeyDim: 8, ValueDim: 8},
		{Kind: layout.SlidingWindow, KVHeads: 1, KeyDim: 8, ValueDim: 8, Window: 32},
		{Kind: layout.Recurrent, State: &layout.State{Temporal: []int{2, 8, 8}, DType: layout.Float32}},
	}}
	p, err := layout.NewPlan(m, o)
	require.NoError(t, err)
	require.Len(t, p.Groups, 3)
	for _, g := range p.Groups[:2] {
		require.Equal(t, max(16, o.BlockTokens), g.BlockTokens)
	}
	return p
}

// openRig is a device, an agent and a gate that Open made.
type openRig struct {
	t      testing.TB
	dev    *sim.Device
	fabric *softnic.Fabric
	agent  nixl.Agent
	gate   *loadgate.Gate
	others []*loadgate.Gate
}

func newOpenRig(t testing.TB, plan *layout.Plan, blocks int, change func(*loadgate.Options)) *openRig {
	r := &openRig{t: t}
	var err error
	r.dev, err = sim.New(sim.Options{})
	require.NoError(t, err)
	r.fabric = softnic.New(r.dev.World(), softnic.Options{})
	r.agent, err = r.fabric.NewAgent("decode", r.dev.NIC())
	require.NoError(t, err)
	o := loadgate.Options{Plan: plan, Memory: plan.Size(blocks), Agent: r.agent}
	if change != nil {
		change(&o)
	}
	r.gate, err = loadgate.Open(r.dev, o)
	require.NoError(t, err)
	t.Cleanup(func() {
		for _, g := range append(r.others, r.gate, r.gate) {
			require.NoError(t, g.Close(context.Background()))
		}
		require.NoError(t, r.fabric.Close())
		require.NoError(t, r.dev.Close())
	})
	return r
}

func TestOpenIsPerBlockWithZeroing(t *testing.T) {
	r := newOpenRig(t, hybrid(t, layout.Options{}), 20, nil)
	require.Equal(t, loadgate.PerBlock, r.gate.Mode())
	pool, err := r.gate.Pool(0)
	require.NoError(t, err)
	require.Equal(t, loadgate.PoolCounters{Blocks: 20, Free: 19, Null: 1}, pool.Counters())
	for group := range 3 {
		ts, err := r.gate.Alloc([]loadgate.Want{{Group: 0, Blocks: 1}}, nil)
		require.NoError(t, err)
		info, err := r.gate.Block(0, ts[0].Block)
		require.NoError(t, err)
		require.True(t, info.Dirty, group)
		require.NoError(t, pool.Free(ts))
	}
}

// counted counts what is open on a device.
type counted struct {
	*sim.Device
	memory, streams, modules, events int
}

func count[T any](n *int, by int, v T, err error) (T, error) {
	if err == nil {
		*n += by
	}
	return v, err
}

func (c *counted) Alloc(size uint64, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	p, err := c.Device.Alloc(size, o)
	return count(&c.memory, 1, p, err)
}

func (c *counted) Free(p cuda.DevicePtr) error {
	_, err := count(&c.memory, -1, 0, c.Device.Free(p))
	return err
}

func (c *counted) NewStream(o cuda.StreamOptions) (cuda.Stream, error) {
	s, err := c.Device.NewStream(o)
	return count(&c.streams, 1, s, err)
}

func (c *counted) DestroyStream(s cuda.Stream) error {
	_, err := count(&c.streams, -1, 0, c.Device.DestroyStream(s))
	return err
}

func (c *counted) LoadModule(image []byte) (cuda.Module, error) {
	m, err := c.Device.LoadModule(image)
	return count(&c.modules, 1, m, err)
}

func (c *counted) UnloadModule(m cuda.Module) error {
	_, err := count(&c.modules, -1, 0, c.Device.UnloadModule(m))
	return err
}

func (c *counted) NewEvent() (cuda.Event, error) {
	e, err := c.Device.NewEvent()
	return count(&c.events, 1, e, err)
}

func (c *counted) DestroyEvent(e cuda.Event) error {
	_, err := count(&c.events, -1, 0, c.Device.DestroyEvent(e))
	return err
}

func (c *counted) requireNothingOpen(t *testing.T) {
	t.Helper()
	require.Equal(t, [4]int{}, [4]int{c.memory, c.streams, c.modules, c.events}, "memory, streams, modules, events")
}

// What Open takes is given back wherever it fails, and the device and the agent
// are as before.
func TestOpenFailsMidway(t *testing.T) {
	plan := hybrid(t, layout.Options{})
	methods := []string{"Alloc", "LoadModule", "Function", "NewStream", "NewEvent", "Write", "Submit", "PrepareRDMA"}
	for _, method := range methods {
		t.Run(method, func(t *testing.T) {
			for failing := 1; ; failing++ {
				machine, err := sim.New(sim.Options{})
				require.NoError(t, err)
				dev := &counted{Device: machine}
				hit, armed := false, true
				wrapped := faultdev.Wrap(dev, func(c faultdev.Call) error {
					if armed && c.Method == method && c.Count == failing && (c.Command == nil || c.Index == 0) {
						hit = true
						return &cuda.Error{Code: cuda.ErrOutOfMemory, Op: method}
					}
					return nil
				})
				fabric := softnic.New(dev.World(), softnic.Options{})
				agent, err := fabric.NewAgent("decode", dev.NIC())
				require.NoError(t, err)
				g, err := loadgate.Open(wrapped, loadgate.Options{Plan: plan, Memory: plan.Size(20), Agent: agent,
					Tables: loadgate.TableOptions{Requests: 4, Tokens: 256}})
				armed = false
				if !hit || method == "NewEvent" && failing > 1 && err == nil { // some of the events that it asks for will do
					require.NoError(t, err)
					require.NoError(t, g.Close(context.Background()))
				} else {
					require.ErrorIs(t, err, cuda.ErrOutOfMemory, "call %d", failing)
					require.ErrorContains(t, err, "open")
				}
				dev.requireNothingOpen(t)
				require.NoError(t, fabric.Close())
				require.NoError(t, dev.Close())
				if !hit {
					require.Greater(t, failing, 1, "never called")
					return
				}
			}
		})
	}
}

func TestOpenRefuses(t *testing.T) {
	machine, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer machine.Close()
	dev := &counted{Device: machine}
	plan := hybrid(t, layout.Options{})
	for says, o := range map[string]loadgate.Options{
		"neither a plan nor an arena":    {},
		"hold 0 blocks":                  {Plan: plan, Memory: 1},
		"Pools and Compute are for New":  {Plan: plan, Memory: plan.Size(4), Pools: make([]loadgate.PoolOptions, 1)},
		"an arena has a plan and memory": {Arena: &layout.Arena{Plan: plan, Base: 1, Blocks: 4}, Memory: 1},
		"block 0 at 0x100":               {Arena: &layout.Arena{Plan: plan, Base: 0x100, Blocks: 4}},
		"for 3 requests of 0 tokens":     {Plan: plan, Memory: plan.Size(4), Tables: loadgate.TableOptions{Requests: 3}},
		"tuning was found on a NVIDIA H200 (compute capability 9.0, 132 SMs), this is a simulated sim": {Plan: plan, Memory: plan.Size(4), Tuning: &kernels.Tuning{
			Version: kernels.TuningVersion, Device: kernels.TunedDevice{Name: "NVIDIA H200", Capability: [2]int{9, 0}, SMs: 132}}},
	} {
		_, err := loadgate.Open(dev, o)
		require.ErrorContains(t, err, says)
		dev.requireNothingOpen(t)
	}
	_, err = loadgate.Open(nil, loadgate.Options{})
	require.ErrorIs(t, err, loadgate.ErrInvalid)
}

// A tuning shapes the gate's launches: here one thread block for all zeroing.
func TestOpenTakesATuning(t *testing.T) {
	tuning := kernels.DefaultTuning()
	tuning.Tile, tuning.BlocksPerSM, tuning.SMs = 128, 1, 1
	plan := hybrid(t, layout.Options{})
	var grids [2]uint32
	for i, tuning := range []*kernels.Tuning{nil, &tuning} {
		machine, err := sim.New(sim.Options{})
		require.NoError(t, err)
		dev := &widest{Device: machine}
		g, err := loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: plan.Size(40), Tuning: tuning})
		require.NoError(t, err)
		dev.grid = 0 // what the warm-up launched
		ts, err := g.Alloc([]loadgate.Want{{Group: 0, Blocks: 20}}, nil)
		require.NoError(t, err)
		require.NoError(t, g.Zero(loadgate.ZeroRequest{Tenancies: ts}))
		_, err = g.Progress(0)
		require.NoError(t, err)
		grids[i] = dev.grid
		require.NoError(t, g.Close(context.Background()))
		require.NoError(t, machine.Close())
	}
	require.Greater(t, grids[0], uint32(1))
	require.EqualValues(t, 1, grids[1])
}

// widest notes the widest grid that was launched.
type widest struct {
	cuda.Device
	grid uint32
}

func (d *widest) Submit(b *cuda.Batch) error {
	for _, c := range b.Commands() {
		if c.Op == cuda.OpLaunch {
			d.grid = max(d.grid, c.Grid[0])
		}
	}
	return d.Device.Submit(b)
}

func TestNewRefusesKernelsOfAnotherDevice(t *testing.T) {
	machine, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer machine.Close()
	set, err := kernels.Load(machine)
	require.NoError(t, err)
	defer set.Close()
	reg := event.NewRegistry(&widest{Device: machine})
	_, err = loadgate.New(reg, set, loadgate.Options{})
	require.ErrorContains(t, err, "the kernels are of another device than the registry")
	_, err = loadgate.New(reg, set, loadgate.Options{Tuning: &kernels.Tuning{}})
	require.ErrorContains(t, err, "Tuning are for Open")
	require.NoError(t, reg.Close())
}

// The engine's own memory stays the engine's.
func TestOpenOverAnArena(t *testing.T) {
	dev, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer dev.Close()
	plan := hybrid(t, layout.Options{})
	base, err := dev.Alloc(plan.Size(8), cuda.AllocOptions{Name: "engine"})
	require.NoError(t, err)
	a, err := plan.Place(uint64(base), 8)
	require.NoError(t, err)
	g, err := loadgate.Open(dev, loadgate.Options{Arena: a})
	require.NoError(t, err)
	require.NoError(t, g.Close(context.Background()))
	require.NoError(t, dev.Write(base, make([]byte, plan.Size(8))))
	require.NoError(t, dev.Free(base))
}

// Memory that a transfer may still write stays allocated and registered when the
// gate is closed, and is named. It goes when the agent is gone, which is proof.
func TestCloseKeepsWhatMayStillBeWritten(t *testing.T) {
	ctx := context.Background()
	machine, err := sim.New(sim.Options{})
	require.NoError(t, err)
	dev := &counted{Device: machine}
	fabric := softnic.New(machine.World(), softnic.Options{})
	plan := hybrid(t, layout.Options{})
	var gates [2]*loadgate.Gate
	var agents [2]nixl.Agent
	for i, name := range []string{"decode", "prefill"} {
		agents[i], err = fabric.NewAgent(name, machine.NIC())
		require.NoError(t, err)
		gates[i], err = loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: plan.Size(20), Agent: agents[i]})
		require.NoError(t, err)
	}
	blob, err := gates[1].Metadata()
	require.NoError(t, err)
	peer, err := gates[0].AddPeer(ctx, blob)
	require.NoError(t, err)
	var requests [2]loadgate.Request
	for i, g := range gates {
		requests[i], err = g.NewRequest()
		require.NoError(t, err)
		require.NoError(t, requests[i].Grow(32))
	}
	fabric.Inject(func(softnic.TransferInfo) softnic.Fault { return softnic.Fault{Kind: softnic.FailHalfWay, At: 0.5} })
	load, err := requests[0].Load(loadgate.TransferSpec{Peers: []loadgate.Peer{peer}, Blocks: lists(t, requests[1], 3), Tokens: layout.TokenRange{To: 32}})
	require.NoError(t, err)
	require.Error(t, load.Wait(ctx))
	base := gates[0].Arena().Base

	for range 2 {
		err = gates[0].Close(ctx)
		require.ErrorIs(t, err, nixl.ErrPoisoned)
		require.ErrorContains(t, err, fmt.Sprintf("%d bytes at %#x stay allocated and registered", plan.Size(20), base))
		require.NoError(t, machine.Write(cuda.DevicePtr(base), []byte{1}), "the memory is there")
	}
	require.NoError(t, gates[1].Close(ctx))
	require.NoError(t, fabric.Close())
	require.NoError(t, gates[0].Close(ctx))
	require.NoError(t, gates[0].Close(ctx))
	dev.requireNothingOpen(t)
	require.NoError(t, machine.Close())
}

// TestOpenCompilesATuning: the tuner may find a variant that is not embedded. The
// gate then needs a compiler, and says so without one.
func TestOpenCompilesATuning(t *testing.T) {
	machine, err := sim.New(sim.Options{})
	require.NoError(t, err)
	defer func() { require.NoError(t, machine.Close()) }()
	dev := &counted{Device: machine}
	plan := hybrid(t, layout.Options{})
	tuning := kernels.DefaultTuning()
	tuning.Variant.Arch, tuning.Variant.Unroll = "compute_90", 8
	o := loadgate.Options{Plan: plan, Memory: plan.Size(4), Tuning: &tuning}
	_, err = loadgate.Open(dev, o)
	require.ErrorContains(t, err, "is not embedded")
	dev.requireNothingOpen(t)
	broken := errors.New("no compiler today")
	o.Compile = func(s kernels.Source) ([]byte, error) {
		require.Contains(t, strings.Join(s.Options, " "), "compute_90")
		return nil, broken
	}
	_, err = loadgate.Open(dev, o)
	require.ErrorIs(t, err, broken)
	dev.requireNothingOpen(t)
}
