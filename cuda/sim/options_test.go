package sim

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

func refused(t *testing.T, o Options, names ...string) {
	t.Helper()
	d, err := New(o)
	if d != nil {
		require.NoError(t, d.Close())
	}
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	for _, name := range names {
		require.ErrorContains(t, err, name)
	}
}

func TestOptionsAreRefusedByName(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	for _, v := range []float64{inf, -inf, nan, -1, 1 << 63} {
		refused(t, Options{Bandwidth: v}, "Bandwidth of")
	}
	for _, v := range []float64{inf, nan, 0.5, -1} {
		refused(t, Options{Real: true, Slow: v}, "Slow of")
	}
	refused(t, Options{Slow: 2}, "Slow of 2")
	refused(t, Options{SMs: -1}, "SMs of -1")
	// What stretching makes of a table is refused too.
	refused(t, Options{Real: true, Slow: 1e300}, "Costs.Crossing of 80ns, slowed by 1e+300")
	c := DefaultCosts()
	c.MemoryShare = 1e-300
	refused(t, Options{Bandwidth: 1e-300, Costs: &c}, "Bandwidth of 1e-300", "MemoryShare of 1e-300")
}

// TestCostsAreRefusedByName spoils each field of the table in turn.
func TestCostsAreRefusedByName(t *testing.T) {
	fields := reflect.TypeFor[Costs]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		var bad []any
		switch f.Type.Kind() {
		case reflect.Int64: // durations
			bad = []any{time.Duration(-1), time.Duration(math.MinInt64), 24*time.Hour + 1, time.Duration(math.MaxInt64)}
		case reflect.Float64:
			bad = []any{0.0, -1.0, math.NaN(), math.Inf(1), math.Inf(-1)}
		case reflect.Int:
			bad = []any{0, -1}
		case reflect.Uint64:
			bad = []any{uint64(0)}
		default:
			t.Fatalf("%s: %v", f.Name, f.Type)
		}
		for _, v := range bad {
			c := DefaultCosts()
			reflect.ValueOf(&c).Elem().Field(i).Set(reflect.ValueOf(v))
			refused(t, Options{Costs: &c}, "Costs."+f.Name+" of ")
		}
	}
}

// TestLongestCosts: the largest table that is taken does not overflow.
func TestLongestCosts(t *testing.T) {
	c := DefaultCosts()
	for _, x := range c.times() {
		*x.d = maxCost
	}
	c.HostLink = math.SmallestNonzeroFloat64
	r := newRig(t, Options{Costs: &c})
	a := r.alloc("a", 64)
	before := r.Clock().Now()
	require.NoError(t, r.Write(a, make([]byte, 64)))
	require.Equal(t, 4*maxCost, r.Clock().Now()-before, "Crossing, Copy, CopyLatency and the link")
	s := r.stream("s")
	r.submit(func(b *cuda.Batch) { b.Fill8(s, a, 7, 64) })
	require.NoError(t, r.Sync(bg))
	require.EqualValues(t, 7, r.peek(a, 64)[63])
}

func TestNothingIsRefused(t *testing.T) {
	r := newRig(t, Options{})
	err := r.Submit(nil)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.ErrorContains(t, err, "no batch")
	_, err = r.NewModel("empty", nil)
	require.ErrorIs(t, err, cuda.ErrInvalidValue)
	require.ErrorContains(t, err, `"empty" is no function`)
}
