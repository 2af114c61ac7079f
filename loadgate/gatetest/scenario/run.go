package scenario

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// Options say how a script is run.
type Options struct {
	// Mode is the gate's mode; nil is the script's, PerBlock where it names
	// none.
	Mode *loadgate.Mode
	// Seed is that of the machine. Any but 0 also varies the durations in the
	// script, by a factor of 0.5 to 1.5, and the order in which chunks arrive.
	Seed uint64
	// Chooser decides what the machine leaves open; nil: by seed.
	Chooser vtime.Chooser
	// Real paces the machine by the wall clock, stretched by Slow.
	Real bool
	Slow float64
}

// Result is what a run came to.
type Result struct {
	Mode loadgate.Mode
	// Trace has each statement with what it said, and indented below it what
	// happened until it returned.
	Trace []string
	// Corrupted names the tenancies that did not hold what they had to, each
	// once, in the order in which it was found.
	Corrupted []string
	Counters  loadgate.Counters
}

func (r *Result) String() string {
	verdict := "corrupted: none"
	if len(r.Corrupted) > 0 {
		verdict = "corrupted: " + strings.Join(r.Corrupted, " ")
	}
	return strings.Join(append(slices.Clone(r.Trace), verdict), "\n")
}

// run is one run of a script.
type run struct {
	rig  *rig
	spec gateSpec
	vary *rand.Rand // nil: durations as written

	blocks    map[string][]*cell
	holders   map[string]*holder
	plans     map[string]*plan
	transfers map[string]*transfer
	current   []*cell  // by block id: whose tenancy it is
	number    int      // of the newest plan or transfer
	launched  []uint64 // steps, by their numbers

	mu         sync.Mutex // guards what follows, which steps and faults use
	trace      []string
	corrupted  []string
	writers    writers
	aliases    map[string]string
	making     string // the transfer that is being handed in
	failOps    []failure
	lostLaunch bool // a batch was cut short
	faults     []fault
	ended      []loadgate.TransferInfo // not entered into the ledger yet
}

type holder struct {
	h     loadgate.Holder
	cells []*cell
}

type plan struct {
	p       loadgate.Step
	holders []*holder
	extra   []*cell
	bytes   kv.Range // of those
	fence   event.Fence
	number  int // plans and transfers, in their common order
}

// failed says in the trace that a call was refused or went wrong. It is no
// error of the run.
type failed struct{ err error }

func (f failed) Error() string { return f.err.Error() }

func refusal(err error) error {
	if err == nil {
		return nil
	}
	return failed{err}
}

// errSkipped is the outcome of a statement about a thing that was not made.
var errSkipped = errors.New("skipped")

// Run runs a script. An error says that the run itself could not be carried
// out; what the gate refused is in the trace. Concurrent runs do not share
// anything.
func Run(s *Script, o Options) (res *Result, err error) {
	r := &run{blocks: map[string][]*cell{}, holders: map[string]*holder{}, plans: map[string]*plan{},
		transfers: map[string]*transfer{}, aliases: map[string]string{}}
	r.spec = gateSpec{mode: core.PerBlock, blocks: 16}
	todo := s.statements
	if todo[0].verb.name == "gate" {
		if err := r.specify(todo[0]); err != nil {
			return nil, err
		}
		todo = todo[1:]
	}
	if o.Mode != nil {
		r.spec.mode = *o.Mode
	}
	if o.Seed != 0 {
		r.vary = rand.New(rand.NewPCG(o.Seed, 1))
	}
	r.current = make([]*cell, r.spec.blocks)
	if r.rig, err = newRig(r, o, r.spec); err != nil {
		return nil, err
	}
	r.nameTimelines()
	defer func() {
		for _, n := range r.launched {
			steps.Delete(n)
		}
		if cerr := r.rig.close(r.quiet); err == nil && cerr != nil {
			res, err = nil, fmt.Errorf("scenario: close: %w", cerr)
		}
	}()
	for _, st := range todo {
		if err := r.do(st); err != nil {
			return nil, fmt.Errorf("scenario: line %d: %q: %w", st.line, st.text, err)
		}
	}
	r.mu.Lock()
	r.failOps, r.faults = nil, nil // those that met nothing
	at := len(r.trace)
	r.trace = append(r.trace, "(end)")
	r.mu.Unlock()
	if err := r.sweep(); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.trace) == at+1 {
		r.trace = r.trace[:at] // nothing happened any more
	}
	return &Result{Mode: r.spec.mode, Trace: r.trace, Corrupted: r.corrupted, Counters: r.rig.Gate.Counters()}, nil
}

func (r *run) do(st *statement) error {
	r.mu.Lock()
	at := len(r.trace)
	r.trace = append(r.trace, st.text)
	r.mu.Unlock()
	said, err := st.verb.run(r, st)
	r.settle()
	var f failed
	switch {
	case errors.As(err, &f):
		said = "refused: " + f.Error()
	case errors.Is(err, errSkipped):
		said = err.Error()
	case err != nil:
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if said != "" {
		r.trace[at] += ": " + r.translate(said)
	}
	return nil
}

// writer numbers a writer of bytes.
func (r *run) writer(name string) (int16, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.writers) == garbage-1 {
		return 0, fmt.Errorf("more than %d writers", garbage-1)
	}
	r.writers = append(r.writers, name)
	return int16(len(r.writers)), nil
}

// time returns a duration of the script, varied by the seed.
func (r *run) time(d time.Duration) time.Duration {
	if r.vary == nil {
		return d
	}
	return time.Duration(float64(d) * (0.5 + r.vary.Float64()))
}

// cells returns the tenancies that a list names.
func (r *run) cells(refs []blockRef) ([]*cell, error) {
	var out []*cell
	for _, ref := range refs {
		cs, ok := r.blocks[ref.name]
		switch {
		case !ok:
			return nil, fmt.Errorf("%w: there is no %s", errSkipped, ref.name)
		case ref.at < 0:
			out = append(out, cs...)
		case ref.at >= len(cs):
			return nil, fmt.Errorf("%s has %d blocks", ref.name, len(cs))
		default:
			out = append(out, cs[ref.at])
		}
	}
	return out, nil
}

func (r *run) holder(name string) (*holder, error) {
	h, ok := r.holders[name]
	if !ok {
		return nil, fmt.Errorf("%w: there is no %s", errSkipped, name)
	}
	return h, nil
}

func tenancies(cells []*cell) []kv.Tenancy {
	ts := make([]kv.Tenancy, len(cells))
	for i, c := range cells {
		ts[i] = c.t
	}
	return ts
}

// limit bounds every wait, on the machine's clock: some scenarios are about
// transfers that never end.
const limit = 50 * time.Millisecond

var errLimit = errors.New("not over yet")

// within calls fn with a context that ends after d.
func (r *run) within(d time.Duration, fn func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	w := r.rig.Sim.World()
	w.Enter(0)
	e := w.After(time.Duration(float64(d)*w.Slow()), "scenario limit", func() { cancel(errLimit) })
	w.Exit()
	err := fn(ctx)
	w.Enter(0)
	w.Cancel(e)
	w.Exit()
	return err
}

// quiet waits, in bounds, until nothing is under way, and closes the gate.
func (r *run) quiet() error {
	return r.within(limit, func(ctx context.Context) error {
		err := r.rig.Gate.Close(ctx)
		if errors.Is(err, core.ErrPoisoned) {
			err = nil
		}
		return err
	})
}

// sweep lets everything come to its end and compares what the ledger knows.
func (r *run) sweep() error {
	if r.rig.Events.Err() != nil {
		return nil // nobody can read a dead device
	}
	if err := r.drain(); err != nil {
		return err
	}
	// What failed transfers left on its way lands within the linger.
	if err := r.rig.Sim.World().Sleep(context.Background(), 2*softnic.DefaultLinger); err != nil {
		return err
	}
	r.settle()
	for _, c := range r.current {
		if c == nil {
			continue
		}
		if _, err := r.compare(c, "at the end"); err != nil {
			return err
		}
	}
	return nil
}

// drain waits until the device is idle.
func (r *run) drain() error {
	return r.within(limit, func(ctx context.Context) error {
		if err := r.rig.Gate.Flush(); err != nil {
			return err
		}
		if err := r.rig.Sim.Sync(ctx); err != nil {
			return err
		}
		_, err := r.rig.Gate.Progress(0)
		return err
	})
}

// compare reads a block and holds it against the ledger.
func (r *run) compare(c *cell, when string) (string, error) {
	have, err := r.rig.Read(c.t.Block)
	if err != nil {
		return "", err
	}
	found := r.writers.describeBytes(have)
	if differ(c.want, have, false) {
		r.corrupt(c, fmt.Sprintf("%s is %s instead of %s %s", c.name, found, r.writers.describe(c.want), when))
	}
	return found, nil
}
