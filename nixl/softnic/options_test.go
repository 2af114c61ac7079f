package softnic_test

import (
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

func newAgent(t *testing.T, w *vtime.World, o softnic.Options) error {
	t.Helper()
	f := softnic.New(w, o)
	_, err := f.NewAgent("a", softnic.NewHostMemory(64))
	require.NoError(t, f.Close())
	require.NoError(t, w.Close())
	return err
}

// TestOptionsAreRefusedByName spoils each option in turn.
func TestOptionsAreRefusedByName(t *testing.T) {
	fields := reflect.TypeFor[softnic.Options]()
	for i := range fields.NumField() {
		f := fields.Field(i)
		var bad []any
		switch f.Type.Kind() {
		case reflect.Int64: // durations
			bad = []any{time.Duration(-2), time.Duration(math.MinInt64), 24*time.Hour + 1, time.Duration(math.MaxInt64)}
		case reflect.Float64:
			bad = []any{-1.0, math.NaN(), math.Inf(1), math.Inf(-1)}
		case reflect.Int:
			bad = []any{-1, math.MinInt}
		case reflect.Bool, reflect.Struct:
		default:
			t.Fatalf("%s: %v", f.Name, f.Type)
		}
		for _, v := range bad {
			var o softnic.Options
			reflect.ValueOf(&o).Elem().Field(i).Set(reflect.ValueOf(v))
			err := newAgent(t, vtime.NewVirtual(vtime.Options{}), o)
			require.ErrorIs(t, err, nixl.ErrInvalid, "%s %v", f.Name, v)
			require.ErrorContains(t, err, "option "+f.Name+" of ")
			require.True(t, nixl.Quiet(err))
		}
	}
	// What stretching makes of them is refused too.
	err := newAgent(t, vtime.NewReal(vtime.Options{}, 1e6), softnic.Options{Latency: time.Hour})
	require.ErrorContains(t, err, "option Latency of 1h0m0s, slowed by 1e+06")
	err = newAgent(t, vtime.NewReal(vtime.Options{}, math.Inf(1)), softnic.Options{})
	require.ErrorIs(t, err, nixl.ErrInvalid)
	require.NoError(t, newAgent(t, vtime.NewReal(vtime.Options{}, 1e6), softnic.Options{}))
}

// TestLongestOptions: the largest options that are taken do not overflow.
func TestLongestOptions(t *testing.T) {
	const day = 24 * time.Hour
	o := softnic.Options{Latency: day, Jitter: day, PostCost: day, PostPerDescriptor: day,
		MakeCost: day, MakePerDescriptor: day, StatusCost: day, Linger: day, Chunk: math.MaxInt, MinChunks: math.MaxInt}
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
	// More descriptors than there are days before the end of time.
	s := x.spec(nixl.Write, 0, 1<<17, 1)
	var tr nixl.Transfer
	require.Equal(t, 2*day, took(x.w, func() { tr = x.transfer(s) }), "all entries together take a day at most")
	require.Equal(t, 2*day, took(x.w, func() { require.NoError(t, tr.Post()) }))
	require.NoError(t, x.wait(tr))
	require.Equal(t, x.dm.Bytes()[:1<<17], x.pm.Bytes()[:1<<17])
}

func TestSlowByNonsense(t *testing.T) {
	for _, factor := range []float64{0, -5, math.NaN(), 1} {
		x := faulty(t, softnic.Fault{Kind: softnic.Slow, Factor: factor})
		tr := x.half()
		near(t, 5300*time.Microsecond, took(x.w, func() { require.NoError(t, tr.Post()); require.NoError(t, x.wait(tr)) }))
	}
	x := faulty(t, softnic.Fault{Kind: softnic.Slow, Factor: math.Inf(1)})
	require.NoError(t, x.half().Post())
	x.sleep(time.Hour)
	require.Zero(t, present(x.dm.Bytes()), "endlessly slow, not as fast as can be")
}

func TestHostMemoryThatCanNotBe(t *testing.T) {
	for _, size := range []uint64{math.MaxUint64, math.MaxUint64 - 4094, 1 << 63, math.MaxInt64} {
		require.Panics(t, func() { softnic.NewHostMemory(size) }, size)
	}
}
