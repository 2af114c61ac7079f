package measure

import (
	"slices"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
)

// device is the device that is measured, with a stream and an event.
type device struct {
	*driver.Device
	stream cuda.Stream
	event  cuda.Event
	marks  []cuda.Mark
}

func open(o driver.Options) (*device, error) {
	d, err := driver.Open(o)
	if err != nil {
		return nil, err
	}
	x := &device{Device: d, marks: make([]cuda.Mark, 1)}
	if x.stream, err = d.NewStream(cuda.StreamOptions{Name: "measured"}); err == nil {
		x.event, err = d.NewEvent()
	}
	if err != nil {
		d.Close() // the first error is the one to tell
		return nil, err
	}
	return x, nil
}

// spin waits until the work of a batch, which ends with a record of the event,
// is over. It asks without a pause: a sleep would be in the figures.
func (d *device) spin() error {
	d.marks[0] = cuda.Mark{Event: d.event}
	for {
		if err := d.Poll(d.marks); err != nil || d.marks[0].State == cuda.MarkFired {
			return err
		}
	}
}

// timed submits a batch and returns how long it took to its end.
func (d *device) timed(b *cuda.Batch) (time.Duration, error) {
	b.Record(d.stream, d.event)
	start := d.Clock().Now()
	if err := d.Submit(b); err != nil {
		return 0, err
	}
	err := d.spin()
	return d.Clock().Now() - start, err
}

// pool allocates as much memory as wanted, or a quarter of the device's.
func (d *device) pool(want uint64) (cuda.DevicePtr, uint64, error) {
	size := min(want, d.Info().Memory/4) &^ (1<<20 - 1)
	p, err := d.Alloc(size, cuda.AllocOptions{Name: "measured"})
	return p, size, err
}

// Spread is several measurements of the same.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
	N      int     `json:"n"`
}

func spreadOf(v []float64) Spread {
	s := slices.Sorted(slices.Values(v))
	if len(s) == 0 {
		return Spread{}
	}
	return Spread{Median: s[len(s)/2], Min: s[0], Max: s[len(s)-1], N: len(s)}
}

// Late is a distribution of times, in microseconds.
type Late struct {
	P50 float64 `json:"p50_us"`
	P99 float64 `json:"p99_us"`
	Max float64 `json:"max_us"`
	N   int     `json:"n"`
}

// lateOf takes nanoseconds.
func lateOf(ns []int64) Late {
	if len(ns) == 0 {
		return Late{}
	}
	s := slices.Sorted(slices.Values(ns))
	us := func(i int) float64 { return float64(s[i]) / 1000 }
	return Late{P50: us(len(s) / 2), P99: us(len(s) * 99 / 100), Max: us(len(s) - 1), N: len(s)}
}
