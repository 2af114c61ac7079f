package sim

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/kvgate/kvgate/cuda"
)

// ModelFunc is a kernel in Go. It is called when the launch starts, with the
// machine locked, reads its arguments and fills in what the launch will do. An
// error leaves the device dead, as a trap of a kernel does.
type ModelFunc func(k *ModelLaunch) error

// ModelLaunch is one launch of a model.
type ModelLaunch struct {
	// What was launched. Args is valid until the launch is over.
	Stream   string
	Geometry cuda.Geometry
	Args     []byte

	// To be set by the model.

	// Read and Written are the bytes of device memory that count against its
	// bandwidth, cost scale included. They are spread evenly over the chunks.
	Read, Written float64
	// Time is how long the launch takes at least; it may be a day. Its bytes
	// are spread evenly over that time: beside other work it takes no more of
	// the bandwidth than that needs.
	Time time.Duration
	// Chunks is the number of pieces, 0 for the cost table's; Step does the
	// accesses of the i-th when it is due. Step may be nil.
	Chunks int
	Step   func(m *Memory, i int) error

	d     *Device
	done  int
	bytes float64
	args  [cuda.MaxArgBytes]byte
}

// Memory returns the device's memory, for a model that reads tables at its
// start.
func (k *ModelLaunch) Memory() *Memory { return k.d.mem }

func (k *ModelLaunch) step() (float64, bool, error) {
	i := k.done
	k.done++
	if k.Step != nil {
		if err := k.Step(k.d.mem, i); err != nil {
			return 0, false, err
		}
	}
	return k.bytes, k.done >= k.Chunks, nil
}

var models struct {
	sync.Mutex
	m map[string]ModelFunc
}

// RegisterModel makes fn a kernel that every device finds under that name, with
// [Device.Model]. A later registration replaces an earlier one for functions
// that are looked up from then on. It is safe for use by several goroutines.
func RegisterModel(name string, fn ModelFunc) {
	models.Lock()
	defer models.Unlock()
	if models.m == nil {
		models.m = map[string]ModelFunc{}
	}
	models.m[name] = fn
}

// Model returns the function of a registered model, or [cuda.ErrNotFound]. It
// is launched like a kernel, with any arguments up to [cuda.MaxArgBytes].
func (d *Device) Model(name string) (cuda.Function, error) {
	models.Lock()
	fn := models.m[name]
	models.Unlock()
	if fn == nil {
		return 0, &cuda.Error{Code: cuda.ErrNotFound, Op: "look up model", Detail: fmt.Sprintf("%q", name)}
	}
	return d.NewModel(name, fn)
}

// NewModel makes fn a kernel of this device alone. The name appears in reports.
func (d *Device) NewModel(name string, fn ModelFunc) (cuda.Function, error) {
	if fn == nil {
		return 0, invalid("make model", "%q is no function", name)
	}
	if err := d.call("make model", 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	return d.addFunction(&function{name: name, model: fn, params: -1}), nil
}

func (f *function) beginModel(t *task, c *command) (work, error) {
	d := t.d
	var k *ModelLaunch
	if n := len(f.launches); n > 0 {
		k, f.launches = f.launches[n-1], f.launches[:n-1]
	} else {
		k = &ModelLaunch{}
	}
	args := k.args[:copy(k.args[:], c.args)]
	k.Stream, k.Geometry, k.Args = t.s.String(), cuda.Geometry{Grid: c.grid, Block: c.block, Shared: c.shared}, args
	k.Read, k.Written, k.Time, k.Chunks, k.Step, k.d, k.done = 0, 0, 0, 0, nil, d, 0
	if err := f.model(k); err != nil {
		return nil, err
	}
	if !(k.Read >= 0) || !(k.Written >= 0) || math.IsInf(k.Read+k.Written, 1) || k.Time < 0 || float64(k.Time)*d.world.Slow() > float64(maxCost) || k.Chunks < 0 {
		return nil, fmt.Errorf("model %s: it declares %g and %g bytes, %v, %d chunks: none may be negative or endless",
			f.name, k.Read, k.Written, k.Time, k.Chunks)
	}
	if k.Chunks == 0 {
		k.Chunks = d.costs.Chunks
	}
	k.bytes = (k.Read + k.Written) / float64(k.Chunks)
	t.cap = 0
	if s := k.Time.Seconds() * d.world.Slow(); s > 0 {
		t.cap = (k.Read + k.Written) / s
	}
	t.floor = time.Duration(float64(k.Time) * d.world.Slow() / float64(k.Chunks))
	t.least = max(t.least, time.Duration(float64(k.Time)*d.world.Slow()))
	return k, nil
}
