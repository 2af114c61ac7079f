package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/nvrtc"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// candidate is one way to launch.
type candidate struct {
	Variant     kernels.Variant
	Tile        uint64
	BlocksPerSM int
}

// space returns what is tried, the defaults first.
func (o *options) space(info cuda.Info, compile bool) []candidate {
	d := kernels.DefaultTuning()
	tiles := []uint64{2 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10}
	perSM := []int{1, 2, 4, 8, 16}
	if o.quick {
		tiles, perSM = []uint64{4 << 10, 8 << 10, 32 << 10}, []int{2, 8}
	}
	variants := kernels.Variants()
	if compile {
		arch := fmt.Sprintf("compute_%d%d", info.Capability[0], info.Capability[1])
		if info.Simulated {
			arch = "" // what the interpreter knows
		}
		for _, store := range []kernels.Store{kernels.Streaming, kernels.WriteBack} {
			for _, unroll := range []int{4, 8, 16} {
				if v := (kernels.Variant{Store: store, Unroll: unroll, Arch: arch}); !slices.Contains(variants, v) {
					variants = append(variants, v)
				}
			}
		}
	}
	all := []candidate{{d.Variant, d.Tile, d.BlocksPerSM}}
	for _, v := range variants {
		for _, t := range tiles {
			for _, n := range perSM {
				if c := (candidate{v, t, n}); c != all[0] {
					all = append(all, c)
				}
			}
		}
	}
	return all
}

// figure is what a candidate is judged by, for one group of blocks.
type figure struct {
	name  string
	group string
	table layout.Table
	n     int  // blocks of a launch
	hot   bool // with a read, behind each launch, of memory that was in the cache before
	bytes uint64
}

// row is a candidate with its figures.
type row struct {
	candidate
	Err     error     // why it can not be had
	Figures []float64 // in order of the result's; nanoseconds a launch, or what counts give
	Cost    float64   // their geometric mean, the defaults' being 1
	rounds  [][]float64
}

// budgetRow is what the best candidate does on fewer SMs.
type budgetRow struct {
	SMs   int
	Share float64 // of the rate on all of them
}

type result struct {
	Device   cuda.Info
	Counts   bool // counts rank, not time
	Plan     string
	Compiler string
	Figures  []figure
	Rows     []row // by cost
	Budget   []budgetRow
	Tuning   kernels.Tuning
	Kept     bool // the defaults, since nothing is better by more than noise
}

type tuner struct {
	dev      cuda.Device
	sim      *sim.Device // nil: the device tells time, and no counts
	o        *options
	stream   cuda.Stream
	compiler *nvrtc.Library
	memory   cuda.DevicePtr
	arena    *layout.Arena
	figures  []figure
	space    []candidate
	hot      layout.Table
	sums     cuda.DevicePtr
	batch    cuda.Batch
	turn     int
	progress func(string)
	sets     map[kernels.Variant]*kernels.Set // loaded once: a driver compiles for seconds
	refused  map[kernels.Variant]error
}

const (
	// hotBytes is memory that a step would read again, and that fits into the L2 of
	// any GPU that the kernels are for but the smallest.
	hotBytes = 16 << 20
	// launches are timed together, so that what the host takes for one is shared.
	launches = 8
	gpuPool  = 4e9
)

func newTuner(dev cuda.Device, o *options, compiler *nvrtc.Library) (*tuner, error) {
	t := &tuner{dev: dev, o: o, compiler: compiler, progress: func(string) {},
		sets: map[kernels.Variant]*kernels.Set{}, refused: map[kernels.Variant]error{}}
	t.sim, _ = dev.(*sim.Device)
	blocks := 5 // one is the null block
	if pool := o.pool; pool > 0 || !dev.Info().Simulated {
		if pool == 0 {
			pool = min(gpuPool, float64(dev.Info().Memory)/2)
		}
		n, err := o.plan.Blocks(uint64(pool))
		if err != nil {
			return nil, fmt.Errorf("-pool: %w", err)
		}
		blocks = n
	}
	if err := t.place(blocks); err != nil {
		return nil, errors.Join(err, t.close())
	}
	t.space = o.space(dev.Info(), compiler != nil)
	return t, nil
}

// counts reports that there is no GPU, and that counts rank, not time.
func (t *tuner) counts() bool { return t.sim != nil }

// place takes memory, and says what is measured on it.
func (t *tuner) place(blocks int) (err error) {
	if t.stream, err = t.dev.NewStream(cuda.StreamOptions{Name: "tune"}); err != nil {
		return err
	}
	size := t.o.plan.Size(blocks)
	if t.memory, err = t.dev.Alloc(size+hotBytes+64, cuda.AllocOptions{Name: "tune"}); err != nil {
		return err
	}
	hot := (uint64(t.memory) + size + 15) &^ 15
	t.hot = layout.Table{Pool: math.MaxUint16, Blocks: 1, RealNull: true, Segments: []layout.Segment{{Base: hot, Page: hotBytes}}}
	if t.sums, err = t.dev.Alloc(8, cuda.AllocOptions{Name: "tune sums"}); err != nil {
		return err
	}
	if t.arena, err = t.o.plan.Place(uint64(t.memory), blocks); err != nil {
		return err
	}
	seen := map[string]bool{}
	for _, g := range t.arena.Tables().Groups {
		if len(g.Fill.Segments) == 0 {
			continue
		}
		var shape string
		for _, s := range g.Fill.Segments {
			shape += fmt.Sprint(s.Page, s.Stride, s.Base%128, " ")
		}
		if seen[shape] {
			continue // another group with pages just like these
		}
		seen[shape] = true
		all := blocks - int(g.Fill.First())
		lengths := []figure{{name: "1 block", n: 1}, {name: "a step", n: min(32, max(all/2, 1))}}
		if !t.counts() {
			lengths = append(lengths, figure{name: "all", n: all}, figure{name: "a step, and a read of what was cached", n: min(32, max(all/2, 1)), hot: true})
		}
		for _, f := range lengths {
			f.group, f.table, f.bytes = g.Name, g.Fill, uint64(f.n)*g.Fill.Bytes()
			t.figures = append(t.figures, f)
		}
	}
	if len(t.figures) == 0 {
		return errors.New("the model has no blocks to write")
	}
	return nil
}

func (t *tuner) close() error {
	var errs []error
	for _, s := range t.sets {
		errs = append(errs, s.Close())
	}
	for _, p := range []cuda.DevicePtr{t.memory, t.sums} {
		if p != 0 {
			errs = append(errs, t.dev.Free(p))
		}
	}
	if t.stream != 0 {
		errs = append(errs, t.dev.DestroyStream(t.stream))
	}
	return errors.Join(errs...)
}

// rounds are how often each measurement is made: a count is always the same.
func (t *tuner) rounds() int {
	if t.counts() {
		return 1
	}
	return t.o.rounds
}

// turns is how often progress is told.
func (t *tuner) turns() int { return len(t.space) * t.rounds() }

func (t *tuner) compile(s kernels.Source) ([]byte, error) {
	if t.compiler == nil {
		return nil, nvrtc.ErrNoCompiler
	}
	o, err := t.compiler.Compile(nvrtc.Program{Name: s.Name, Text: s.Text, Headers: s.Headers, Options: s.Options})
	if err != nil {
		return nil, err
	}
	return o.PTX, nil
}

// tune tries everything, and chooses.
func (t *tuner) tune(ctx context.Context) (*result, error) {
	r := &result{Device: t.dev.Info(), Counts: t.counts(), Plan: t.o.plan.String(), Figures: t.figures}
	r.Rows = make([]row, len(t.space))
	for i, c := range t.space {
		r.Rows[i] = row{candidate: c, rounds: make([][]float64, len(t.figures))}
	}
	// Candidates take turns, so that clocks that rise and fall are fair to all.
	for range t.rounds() {
		for i := range r.Rows {
			if err := ctx.Err(); err != nil {
				return nil, context.Cause(ctx)
			}
			w := &r.Rows[i]
			t.progress(w.candidate.String())
			if w.Err != nil {
				continue
			}
			set, err := t.set(w.candidate)
			if refused(err) { // told in the table; any other error ends the run
				w.Err = err
				continue
			}
			if err == nil {
				err = t.try(ctx, w, set)
			}
			if err != nil {
				return nil, fmt.Errorf("%v: %w", w.candidate, err)
			}
		}
	}
	if err := r.choose(); err != nil {
		return nil, err
	}
	return r, t.budget(ctx, r)
}

// refused reports that a variant can not be had here, of a compiler, a driver or an
// interpreter that is older than what was asked for.
func refused(err error) bool {
	var e *nvrtc.Error
	return errors.As(err, &e) || errors.Is(err, cuda.ErrInvalidPTX) || errors.Is(err, cuda.ErrUnsupportedPTX) || errors.Is(err, cuda.ErrInvalidImage)
}

// unlike counts in how much a candidate differs from another.
func (c candidate) unlike(d candidate) (n int) {
	for _, other := range []bool{c.Variant.Store != d.Variant.Store, c.Variant.Unroll != d.Variant.Unroll,
		c.Variant.Arch != d.Variant.Arch, c.Tile != d.Tile, c.BlocksPerSM != d.BlocksPerSM} {
		if other {
			n++
		}
	}
	return n
}

func (c candidate) String() string {
	return fmt.Sprintf("%v, tiles of %d KiB, %d blocks an SM", c.Variant, c.Tile>>10, c.BlocksPerSM)
}

// set returns the kernels of a candidate. Those of a variant are loaded once.
func (t *tuner) set(c candidate) (*kernels.Set, error) {
	if err := t.refused[c.Variant]; err != nil {
		return nil, err
	}
	loaded := t.sets[c.Variant]
	if loaded == nil {
		tuning := kernels.DefaultTuning()
		tuning.Variant = c.Variant
		var err error
		if loaded, err = kernels.LoadWithOptions(t.dev, kernels.LoadOptions{Tuning: &tuning, Compile: t.compile}); err != nil {
			if refused(err) {
				t.refused[c.Variant] = err
			}
			return nil, err
		}
		t.sets[c.Variant] = loaded
	}
	return loaded.WithShape(kernels.Shape{Tile: c.Tile, BlocksPerSM: c.BlocksPerSM})
}

// try takes each figure of a candidate once.
func (t *tuner) try(ctx context.Context, w *row, set *kernels.Set) error {
	for i, f := range t.figures {
		v, err := t.measure(ctx, set, f)
		if err != nil {
			return err
		}
		w.rounds[i] = append(w.rounds[i], v)
	}
	return nil
}

// measure takes one figure: nanoseconds of a launch, or what its warps do.
func (t *tuner) measure(ctx context.Context, set *kernels.Set, f figure) (v float64, err error) {
	table, err := set.NewTable(f.table)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	if t.counts() {
		before := t.sim.Stats().Kernels
		if err := t.launch(ctx, set, table, nil, f, 1); err != nil {
			return 0, err
		}
		c := t.sim.Stats().Kernels
		c.Sub(before)
		return counted(c, f), nil
	}
	var hot *kernels.Table
	if f.hot {
		if hot, err = set.NewTable(t.hot); err != nil {
			return 0, err
		}
		defer func() { err = errors.Join(err, hot.Close()) }()
	}
	if err := t.launch(ctx, set, table, hot, f, 1); err != nil { // the table is in the cache, as in a running engine
		return 0, err
	}
	start := t.dev.Clock().Now()
	if err := t.launch(ctx, set, table, hot, f, launches); err != nil {
		return 0, err
	}
	return float64((t.dev.Clock().Now() - start).Nanoseconds()) / launches, nil
}

// launch zeroes the next blocks, as often as n says, and waits.
func (t *tuner) launch(ctx context.Context, set *kernels.Set, table, hot *kernels.Table, f figure, n int) error {
	t.batch.Reset()
	first := int(f.table.First())
	all := f.table.Blocks - first
	ids := make([]kv.Block, f.n)
	for range n {
		for i := range ids { // other blocks each time: what is zeroed is not in the cache
			ids[i] = kv.Block(first + (t.turn+i)%all)
		}
		t.turn += f.n
		if err := set.ZeroBlocks(&t.batch, t.stream, table, ids); err != nil {
			return err
		}
		if hot != nil {
			if err := set.ChecksumBlocks(&t.batch, t.stream, hot, []kv.Block{0}, t.sums); err != nil {
				return err
			}
		}
	}
	if err := t.dev.Submit(&t.batch); err != nil {
		return err
	}
	return t.dev.SyncStream(ctx, t.stream)
}

// counted makes a figure of counts. Of a single block it is what the warp does that
// does most, for which all others wait; of more, what all warps do for a KiB, each
// sector of memory counting as an instruction.
func counted(c ptx.Count, f figure) float64 {
	if f.n == 1 {
		return float64(c.Longest)
	}
	return float64(c.Instructions+c.StoreSectors+c.LoadSectors) / (float64(f.bytes) / 1024)
}

// noise is how much better than the defaults another candidate has to be. Counts have
// none.
func (r *result) noise() float64 {
	if r.Counts {
		return 0
	}
	return 0.02
}

// choose fills in figures and costs, sorts the rows, and takes the best, or the
// defaults where they are as good.
func (r *result) choose() error {
	base := &r.Rows[0]
	if base.Err != nil {
		return fmt.Errorf("the defaults can not be had: %w", base.Err)
	}
	for i := range r.Rows {
		w := &r.Rows[i]
		for _, f := range w.rounds {
			if len(f) > 0 {
				slices.Sort(f)
				w.Figures = append(w.Figures, f[len(f)/2])
			}
		}
	}
	origin := slices.Clone(base.Figures)
	for i := range r.Rows {
		w := &r.Rows[i]
		if w.Err != nil {
			w.Cost = math.Inf(1)
			continue
		}
		sum := 0.0
		for k, v := range w.Figures {
			sum += math.Log(v / origin[k])
		}
		w.Cost = math.Exp(sum / float64(len(origin)))
	}
	d := base.candidate
	slices.SortStableFunc(r.Rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(math.Round(a.Cost*1e9), math.Round(b.Cost*1e9)), // of those as good,
			cmp.Compare(a.unlike(d), b.unlike(d))) // what is more like the defaults
	})
	best := r.Rows[0].candidate
	if r.Rows[0].Cost >= 1-r.noise() {
		best, r.Kept = d, true
	}
	r.Tuning = kernels.DefaultTuning()
	r.Tuning.Device = kernels.Tuned(r.Device)
	r.Tuning.Variant, r.Tuning.Tile, r.Tuning.BlocksPerSM = best.Variant, best.Tile, best.BlocksPerSM
	switch r.Tuning.RankedBy = "time"; {
	case r.Counts:
		r.Tuning.RankedBy = "instructions"
	case r.Device.Simulated:
		r.Tuning.RankedBy = "rehearsal"
	}
	return r.Tuning.Validate()
}

// budget measures the chosen candidate on fewer SMs, by the device's own clock.
func (t *tuner) budget(ctx context.Context, r *result) (err error) {
	set, err := t.set(candidate{r.Tuning.Variant, r.Tuning.Tile, r.Tuning.BlocksPerSM})
	if err != nil {
		return err
	}
	f := t.figures[1] // a step
	table, err := set.NewTable(f.table)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, table.Close()) }()
	all := max(r.Device.SMs, 1)
	full := 0.0
	for _, part := range []float64{1, 3. / 4, 1. / 2, 3. / 8, 1. / 4, 1. / 8, 1. / 16, 1. / 32, 1. / 64} {
		n := max(int(math.Round(part*float64(all))), 1)
		some, err := set.WithShape(kernels.Shape{SMs: n})
		if err != nil {
			return err
		}
		var times []time.Duration
		for range t.rounds() {
			start := t.dev.Clock().Now()
			if err := t.launch(ctx, some, table, nil, f, launches); err != nil {
				return err
			}
			times = append(times, t.dev.Clock().Now()-start)
		}
		slices.Sort(times)
		took := float64(times[len(times)/2])
		if part == 1 {
			full = took
		}
		r.Budget = append(r.Budget, budgetRow{SMs: n, Share: full / took})
		if s := r.Budget[len(r.Budget)-1]; t.o.budget > 0 && s.Share >= t.o.budget && n < all {
			r.Tuning.SMs = n
		}
	}
	return nil
}
