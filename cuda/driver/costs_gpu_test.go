//go:build cgo && linux

package driver_test

import (
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
)

// report gives nanoseconds as a benchmark's metrics, in microseconds. Those of a
// device that is none say so.
func report(b *testing.B, d *driver.Device, what string, ns []int64) {
	if d.Info().Simulated {
		what = "simulated-" + what
	}
	b.ReportMetric(0, "ns/op") // of which most is none of these
	if len(ns) == 0 {
		return
	}
	slices.Sort(ns)
	us := func(i int) float64 { return float64(ns[i]) / 1000 }
	b.ReportMetric(us(len(ns)/2), what+"p50-us")
	b.ReportMetric(us(len(ns)*99/100), what+"p99-us")
	b.ReportMetric(us(len(ns)-1), what+"max-us")
}

// rounds is how often something is measured: a device that is none is slow.
func rounds(d *driver.Device, n int) int {
	if d.Info().Simulated {
		return max(n/50, 10)
	}
	return n
}

// BenchmarkCostsOnGPU is what single calls cost the host, the crossing into C, the
// context's push and pop and the exchange of the capture mode included: "crossing"
// has them and next to nothing else. The device is let to run empty every so
// often, so that no queue is measured.
func BenchmarkCostsOnGPU(b *testing.B) {
	d := openGPU(b)
	defer func() { require.NoError(b, d.Close()) }()
	s, err := d.NewStream(cuda.StreamOptions{})
	require.NoError(b, err)
	other, err := d.NewStream(cuda.StreamOptions{HighPriority: true})
	require.NoError(b, err)
	p, err := d.Alloc(1<<20, cuda.AllocOptions{Name: "costs"})
	require.NoError(b, err)
	h, err := d.AllocPinned(4096, cuda.AllocOptions{Name: "costs"})
	require.NoError(b, err)
	kernel, err := loadIdle(d)
	require.NoError(b, err)
	var marks []cuda.Mark
	for range 4 {
		e, err := d.NewEvent()
		require.NoError(b, err)
		marks = append(marks, cuda.Mark{Event: e})
	}
	word := []cuda.Mark{{Word: h.Device}}
	submit := func(build func(c *cuda.Batch)) func() error {
		c := new(cuda.Batch)
		build(c)
		return func() error { return d.Submit(c) }
	}
	for _, c := range []struct {
		name string
		do   func() error
	}{
		{"crossing", func() error { _, err := d.StreamPriority(s); return err }},
		{"pointer_attributes", func() error { _, _, err := d.AllocRange(p); return err }},
		{"query_of_an_event", func() error { return d.Poll(marks[:1]) }},
		{"query_of_4_events", func() error { return d.Poll(marks) }},
		{"look_at_a_word", func() error { return d.Poll(word) }},
		{"record", submit(func(c *cuda.Batch) { c.Record(s, marks[0].Event) })},
		{"wait_event", submit(func(c *cuda.Batch) { c.WaitEvent(other, marks[0].Event) })},
		{"write_word", submit(func(c *cuda.Batch) { c.WriteWord(s, h.Device+64, 1) })},
		{"wait_word", submit(func(c *cuda.Batch) { c.WriteWord(s, p, 1); c.WaitWord(s, p, 1) })},
		{"launch", submit(func(c *cuda.Batch) { launchIdle(c, s, kernel) })},
		{"fill", submit(func(c *cuda.Batch) { c.Fill32(s, p, 1, 1024) })},
		{"copy", submit(func(c *cuda.Batch) { c.Copy(s, p, p+4096, 4096) })},
		{"launch_record_wait", submit(func(c *cuda.Batch) {
			launchIdle(c, s, kernel)
			c.Record(s, marks[0].Event)
			c.WaitEvent(other, marks[0].Event)
		})},
		{"host_function", func() func() error {
			f, err := d.NewSignal()
			if err != nil {
				return func() error { return err }
			}
			return submit(func(c *cuda.Batch) { c.Signal(s, f, 0) })
		}()},
	} {
		b.Run(c.name, func(b *testing.B) {
			var ns []int64
			crossings := int64(0)
			for b.Loop() {
				for i := range rounds(d, 2000) + 32 { // the first are to warm up
					before, start := runtime.NumCgoCall(), d.Clock().Now()
					err := c.do()
					took := d.Clock().Now() - start
					if errors.Is(err, cuda.ErrNotSupported) {
						b.Skipf("this device can not: %v", err)
					}
					if err != nil {
						b.Fatal(err)
					}
					if i >= 32 {
						ns = append(ns, int64(took))
						crossings += runtime.NumCgoCall() - before
					}
					if i%32 == 31 {
						require.NoError(b, d.Sync(b.Context()))
					}
				}
			}
			report(b, d, "", ns)
			b.ReportMetric(float64(crossings)/float64(len(ns)), "crossings")
		})
	}
}
