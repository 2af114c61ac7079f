package loadgate_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/noopdev"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/stream"
)

// fourths is the hybrid plan with blocks of 64 tokens, of which each has four
// kernel blocks.
func fourths(t testing.TB) *layout.Plan {
	p := hybrid(t, layout.Options{BlockTokens: 64, Kernel: layout.KernelBlocks{Exact: []int{16}}})
	require.Equal(t, []int{4, 4, 1}, []int{p.Groups[0].Ratio, p.Groups[1].Ratio, p.Groups[2].Ratio})
	return p
}

// wantRow is what a row of a table has to hold.
func wantRow(t testing.TB, q loadgate.Request, group, ratio int, table loadgate.BlockTable) []int32 {
	row := make([]int32, table.Len)
	bs, err := q.AppendBlocks(nil, group)
	require.NoError(t, err)
	for i, b := range bs {
		for k := range ratio {
			if b != kv.Pad {
				row[i*ratio+k] = int32(b)*int32(ratio) + int32(k)
			}
		}
	}
	return row
}

func (r *openRig) row(q loadgate.Request, group int) []int32 {
	table, err := r.gate.Table(group)
	require.NoError(r.t, err)
	b := make([]byte, 4*table.Len)
	require.NoError(r.t, r.dev.Read(b, table.Addr+cuda.DevicePtr(4*table.Len*q.Row())))
	return words(b)
}

func words(b []byte) []int32 {
	row := make([]int32, len(b)/4)
	for i := range row {
		row[i] = int32(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return row
}

// requireRows compares all rows of a request with its lists, once its last step
// has run.
func (r *openRig) requireRows(plan *layout.Plan, q loadgate.Request) {
	r.t.Helper()
	require.NoError(r.t, r.dev.Sync(context.Background()))
	for g := range plan.Groups {
		table, err := r.gate.Table(g)
		require.NoError(r.t, err)
		require.Equal(r.t, wantRow(r.t, q, g, plan.Groups[g].Ratio, table), r.row(q, g), "group %d", g)
	}
}

func TestTablesHoldKernelBlocks(t *testing.T) {
	plan := fourths(t)
	r := newOpenRig(t, plan, 60, func(o *loadgate.Options) { o.Tables = loadgate.TableOptions{Requests: 3, Tokens: 640} })
	for g, want := range []int{40, 40, 1} {
		table, err := r.gate.Table(g)
		require.NoError(t, err)
		require.Equal(t, want, table.Len)
		require.Equal(t, 3, table.Rows)
		require.Zero(t, table.Addr%256)
	}
	_, err := r.gate.Table(3)
	require.ErrorIs(t, err, loadgate.ErrInvalid)
	a, b := r.request(), r.request()
	require.NoError(t, a.Grow(100))
	require.NoError(t, b.Grow(300))
	r.step(loadgate.Use{Request: a, Tokens: 100}, loadgate.Use{Request: b, Tokens: 300})
	r.requireRows(plan, a)
	r.requireRows(plan, b)

	// The window moves on, and blocks come at the end.
	require.NoError(t, b.Settle(300))
	require.NoError(t, b.Grow(400))
	r.step(loadgate.Use{Request: b, Tokens: 100})
	r.requireRows(plan, b)
	require.Zero(t, r.row(b, 1)[0], "behind the window")

	// Rejected tokens: what was behind them is gone, and comes back as another block.
	require.NoError(t, b.Settle(1))
	require.NoError(t, a.Settle(100))
	require.NoError(t, a.Grow(128+64))
	require.NoError(t, b.Grow(400))
	r.step(loadgate.Use{Request: a, Tokens: 1}, loadgate.Use{Request: b, Tokens: 1})
	r.requireRows(plan, a)
	r.requireRows(plan, b)

	// The next owner of a row finds nothing in it.
	require.NoError(t, b.Close())
	c := r.request()
	require.Equal(t, b.Row(), c.Row())
	require.NoError(t, c.Grow(10))
	r.step(loadgate.Use{Request: c, Tokens: 10})
	r.requireRows(plan, c)
	none := newOpenRig(t, plan, 20, nil)
	_, err = none.gate.Table(0)
	require.ErrorContains(t, err, "Options.Tables")
}

// reader is an engine's kernel that looks at rows all the while it runs.
type reader struct {
	r    *openRig
	bad  []string
	runs int
}

// step launches a step on some streams that reads the rows of its requests, each
// with what it has to find there at any moment.
func (v *reader) step(plan *layout.Plan, us int, uses []loadgate.Use, streams ...*stream.Stream) {
	r := v.r
	type expect struct {
		at   uint64
		want []int32
		what string
	}
	var all []expect
	for _, u := range uses {
		for g := range plan.Groups {
			table, err := r.gate.Table(g)
			require.NoError(r.t, err)
			all = append(all, expect{uint64(table.Addr) + uint64(4*table.Len*u.Request.Row()),
				wantRow(r.t, u.Request, g, plan.Groups[g].Ratio, table), fmt.Sprintf("%v group %d", u.Request, g)})
		}
	}
	model, err := r.dev.NewModel("reader", func(k *sim.ModelLaunch) error {
		k.Time, k.Chunks = time.Duration(us)*time.Microsecond, 5
		k.Step = func(m *sim.Memory, i int) error {
			v.runs++
			for _, e := range all {
				b := make([]byte, 4*len(e.want))
				if err := m.Read(e.at, b); err != nil {
					return err
				}
				if got := words(b); fmt.Sprint(got) != fmt.Sprint(e.want) {
					v.bad = append(v.bad, fmt.Sprintf("%s, chunk %d: %v, want %v", e.what, i, got, e.want))
				}
			}
			return nil
		}
		return nil
	})
	require.NoError(r.t, err)
	s, err := r.gate.NewStep(uses)
	require.NoError(r.t, err)
	_, err = s.Launch(func(c *loadgate.Commands) error {
		for _, on := range streams {
			c.Launch(on, model, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
		}
		return nil
	}, streams...)
	require.NoError(r.t, err)
}

// Steps on several streams, requests that grow, are trimmed, end, and give their
// rows to others while steps that read them run: no step sees another row than
// the one that it was launched with.
func TestRunningStepSeesNoLaterChange(t *testing.T) {
	ctx := context.Background()
	plan := fourths(t)
	for seed := range uint64(8) {
		r := newOpenRig(t, plan, 200, func(o *loadgate.Options) { o.Tables = loadgate.TableOptions{Requests: 4, Tokens: 1280} })
		rng := rand.New(rand.NewPCG(seed, 7))
		var streams []*stream.Stream
		for i := range 3 {
			s, err := stream.New(r.gate.Registry(), cuda.StreamOptions{Name: fmt.Sprintf("compute %d", i)})
			require.NoError(t, err)
			streams = append(streams, s)
		}
		v := &reader{r: r}
		type state struct {
			q       loadgate.Request
			pending []int
		}
		var open []*state
		for range 150 {
			if len(open) < 4 && rng.IntN(3) == 0 {
				open = append(open, &state{q: r.request()})
			}
			if len(open) == 0 {
				continue
			}
			var uses []loadgate.Use
			for _, i := range rng.Perm(len(open))[:1+rng.IntN(len(open))] {
				s := open[i]
				c := tokens(t, s.q)
				n := 1 + rng.IntN(100)
				if c[1]+n > 1280 || s.q.Grow(c[1]+n) != nil {
					continue
				}
				uses = append(uses, loadgate.Use{Request: s.q, Tokens: n})
				s.pending = append(s.pending, n)
			}
			if len(uses) > 0 {
				on := []*stream.Stream{streams[rng.IntN(3)]}
				if rng.IntN(3) == 0 {
					on = []*stream.Stream{streams[0], streams[2]}
				}
				v.step(plan, 1+rng.IntN(300), uses, on...)
			}
			s := open[rng.IntN(len(open))]
			if len(s.pending) > 0 && rng.IntN(2) == 0 {
				require.NoError(t, s.q.Settle(rng.IntN(s.pending[0]+1)))
				s.pending = s.pending[1:]
			}
			if rng.IntN(6) == 0 {
				i := rng.IntN(len(open))
				require.NoError(t, open[i].q.Close())
				open[i] = open[len(open)-1]
				open = open[:len(open)-1]
			}
			if rng.IntN(4) == 0 {
				_, err := r.gate.Progress(0)
				require.NoError(t, err)
			}
		}
		require.NoError(t, r.dev.Sync(ctx))
		require.Empty(t, v.bad, "seed %d", seed)
		require.Greater(t, v.runs, 200)
		for _, s := range streams {
			require.NoError(t, s.Sync(ctx))
			require.NoError(t, s.Close())
		}
	}
}

// A request that is closed while a step that names it is open keeps its row until
// that step is over.
func TestRowOfAClosedRequestWithAnOpenStep(t *testing.T) {
	plan := fourths(t)
	r := newOpenRig(t, plan, 60, func(o *loadgate.Options) { o.Tables = loadgate.TableOptions{Requests: 1, Tokens: 640} })
	q := r.request()
	require.NoError(t, q.Grow(100))
	table, err := r.gate.Table(0)
	require.NoError(t, err)
	want := wantRow(t, q, 0, 4, table)
	s, err := r.gate.NewStep([]loadgate.Use{{Request: q, Tokens: 100}})
	require.NoError(t, err)
	require.NoError(t, q.Close())
	_, err = r.gate.NewRequest()
	require.ErrorIs(t, err, loadgate.ErrFull)
	launch(t, s)
	require.NoError(t, r.dev.Sync(context.Background()))
	require.Equal(t, want, r.row(q, 0))
	next := r.request()
	require.NoError(t, next.Grow(1))
	s, err = r.gate.NewStep([]loadgate.Use{{Request: next, Tokens: 1}})
	require.NoError(t, err)
	require.NoError(t, next.Close())
	require.NoError(t, s.Abandon())
	require.Equal(t, 0, r.request().Row())
	require.Equal(t, want, r.row(next, 0))
}

// Begin writes the rows before what is launched then, a graph for example. Until
// End no other step may name the requests.
func TestRowsOfABegunStep(t *testing.T) {
	plan := fourths(t)
	r := newOpenRig(t, plan, 60, func(o *loadgate.Options) { o.Tables = loadgate.TableOptions{Requests: 2, Tokens: 640} })
	q := r.request()
	require.NoError(t, q.Grow(100))
	s, err := r.gate.NewStep([]loadgate.Use{{Request: q, Tokens: 50}})
	require.NoError(t, err)
	second, err := r.gate.NewStep([]loadgate.Use{{Request: q, Tokens: 50}})
	require.NoError(t, err)
	require.NoError(t, s.Begin())
	r.requireRows(plan, q)
	_, err = second.Launch(nil)
	require.ErrorIs(t, err, loadgate.ErrInUse)
	require.ErrorContains(t, err, "request 0.1")
	_, err = s.End()
	require.NoError(t, err)
	require.Equal(t, [3]int{100, 50, 0}, tokens(t, q), "the refused step is over")
	require.NoError(t, q.Settle(50))
	r.step(loadgate.Use{Request: q, Tokens: 50})
	r.requireRows(plan, q)
}

// Wherever the submission of a step fails, the next one makes the rows right.
func TestRowsAfterAFailedLaunch(t *testing.T) {
	plan := fourths(t)
	failed := 0
	for at := range 8 {
		machine, err := sim.New(sim.Options{})
		require.NoError(t, err)
		armed := false
		dev := faultdev.Wrap(machine, func(c faultdev.Call) error {
			if armed && c.Command != nil && c.Index == at {
				armed = false
				failed++
				return &cuda.Error{Code: cuda.ErrOutOfMemory, Op: "injected"}
			}
			return nil
		})
		g, err := loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: plan.Size(60), Tables: loadgate.TableOptions{Requests: 2, Tokens: 640}})
		require.NoError(t, err)
		r := &openRig{t: t, dev: machine, gate: g}
		q := r.request()
		require.NoError(t, q.Grow(200))
		r.step(loadgate.Use{Request: q, Tokens: 150})
		require.NoError(t, q.Settle(150))
		require.NoError(t, q.Grow(400))
		s, err := g.NewStep([]loadgate.Use{{Request: q, Tokens: 100}})
		require.NoError(t, err)
		armed = true
		_, err = s.Launch(func(c *loadgate.Commands) error {
			base, _ := g.Table(0)
			c.Copy(g.Compute(), base.Addr, base.Addr, 4)
			return nil
		})
		armed = false
		launched := tokens(t, q)[1] == 250
		if launched {
			require.NoError(t, q.Settle(2))
		} else {
			require.Error(t, err)
			require.Equal(t, [3]int{400, 150, 150}, tokens(t, q))
		}
		require.NoError(t, q.Grow(500))
		r.step(loadgate.Use{Request: q, Tokens: 1})
		r.requireRows(plan, q)
		require.NoError(t, g.Close(context.Background()))
		require.NoError(t, machine.Close())
	}
	require.Greater(t, failed, 2)
}

// BenchmarkTables is what a step of 256 requests costs the host when 1, 16 and 256
// of their rows have changed: a block more in each group, in blocks of one kernel
// block and of 33. The device costs nothing.
func BenchmarkTables(b *testing.B) {
	for _, ratio := range []int{1, 33} {
		for _, changed := range []int{0, 1, 16, 256} {
			for _, tables := range []bool{true, false} {
				name := fmt.Sprintf("ratio-%d/changed-%d", ratio, changed)
				if !tables {
					name += "/without"
				}
				b.Run(name, func(b *testing.B) { benchTables(b, ratio, changed, tables) })
			}
		}
	}
}

func benchTables(b *testing.B, ratio, changed int, tables bool) {
	const requests = 256
	plan := hybrid(b, layout.Options{BlockTokens: 16 * ratio, Kernel: layout.KernelBlocks{Exact: []int{16}}})
	dev := noopdev.New(noopdev.Options{})
	o := loadgate.Options{Plan: plan, Memory: plan.Size(200_000)}
	if tables {
		o.Tables = loadgate.TableOptions{Requests: requests, Tokens: 16 * ratio * 1024}
	}
	g, err := loadgate.Open(dev, o)
	require.NoError(b, err)
	block := 16 * ratio
	var all []loadgate.Request
	uses := make([]loadgate.Use, requests)
	for i := range uses {
		q, err := g.NewRequest()
		require.NoError(b, err)
		require.NoError(b, q.Grow(100*block))
		all = append(all, q)
		uses[i] = loadgate.Use{Request: q}
	}
	step := func() {
		s, err := g.NewStep(uses)
		if err == nil {
			_, err = s.Launch(nil)
		}
		if err == nil {
			_, err = g.Progress(0)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	step()
	// Rows change by an append, and by its withdrawal as rejected tokens.
	size := 100
	for i := range uses[:changed] {
		uses[i].Tokens = 1
	}
	b.ReportAllocs()
	for b.Loop() {
		size++
		for _, q := range all[:changed] {
			if err := q.Grow(size * block); err != nil {
				b.Fatal(err)
			}
		}
		step()
		for _, q := range all[:changed] {
			if err := q.Settle(1); err != nil {
				b.Fatal(err)
			}
		}
		if size == 300 {
			b.StopTimer()
			for i, q := range all {
				require.NoError(b, q.Close())
				q, err := g.NewRequest()
				require.NoError(b, err)
				require.NoError(b, q.Grow(100*block))
				all[i], uses[i].Request = q, q
			}
			step()
			for _, q := range all[:changed] {
				require.NoError(b, q.Settle(1))
			}
			size = 100
			b.StartTimer()
		}
	}
	for _, q := range all {
		require.NoError(b, q.Close())
	}
	require.NoError(b, g.Close(context.Background()))
}
