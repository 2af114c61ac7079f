package ptx

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// near is a relative difference, of a number near zero an absolute one.
func near(t *testing.T, want, got, tolerance float64, what string, args ...any) {
	t.Helper()
	if want != got {
		require.LessOrEqual(t, math.Abs(got-want), tolerance*max(math.Abs(want), 1e-6), append([]any{what}, args...)...)
	}
}

// TestMath: functions as NVRTC inlines them, against Go's. Their errors are those of
// CUDA's (CUDA C++ Programming Guide, "Mathematical Functions"), a few units in the last
// place.
func TestMath(t *testing.T) {
	const n = 500
	rnd := rand.New(rand.NewPCG(21, 22))
	in, din := make([]float32, n), make([]float64, n)
	for i := range in {
		in[i], din[i] = float32(rnd.NormFloat64()*4), rnd.NormFloat64()*5
	}
	m := loadModule(t, "math.ptx")
	k, _ := m.Kernel("functions")
	var a arena
	out, dout := make([]byte, 4*12*n), make([]byte, 8*6*n)
	l := grid(4, 128)
	l.Params = params(a.put(bytesOf(in)), a.put(out), a.put(bytesOf(din)), a.put(dout), int32(n))
	a.withImage(m, &l)
	runAll(t, k, a, l)
	got, dgot := valuesOf[float32](out), valuesOf[float64](dout)
	for i := range in {
		x, abs := float64(in[i]), math.Abs(float64(in[i]))
		for j, want := range []float64{
			math.Exp(x), math.Log(abs), math.Sin(x), math.Cos(float64(in[i] * 1000)), math.Tanh(x), math.Pow(abs, float64(float32(1.7))),
			math.Erf(x), 1 / math.Sqrt(abs), math.Cbrt(x), math.Mod(x, float64(float32(0.37))), math.Exp(x), x / float64(float32(3.3)),
		} {
			near(t, want, float64(got[12*i+j]), 2e-6, "function %d of %g", j, x)
		}
		y := din[i]
		for j, want := range []float64{math.Exp(y), math.Log(math.Abs(y)), math.Sin(y * 1e6), math.Sqrt(math.Abs(y)), 1 / y, math.RoundToEven(y*7) + math.Floor(y)} {
			near(t, want, dgot[6*i+j], 2e-15, "function %d of %g in double precision", j, y)
		}
	}
}

func TestSoftmax(t *testing.T) {
	const rows, cols = 5, 777
	rnd := rand.New(rand.NewPCG(23, 24))
	in := make([]float32, rows*cols)
	for i := range in {
		in[i] = float32(rnd.NormFloat64() * 3)
	}
	m := loadModule(t, "math.ptx")
	k, _ := m.Kernel("softmax")
	var a arena
	out := make([]byte, 4*len(in))
	l := grid(rows, 128)
	l.Params = params(a.put(bytesOf(in)), a.put(out), int32(cols))
	a.withImage(m, &l)
	runAll(t, k, a, l)
	got := valuesOf[float32](out)
	for r := range rows {
		sum := 0.0
		for _, x := range in[r*cols : (r+1)*cols] {
			sum += math.Exp(float64(x))
		}
		for c := range cols {
			near(t, math.Exp(float64(in[r*cols+c]))/sum, float64(got[r*cols+c]), 1e-5, "row %d, column %d", r, c)
		}
	}
}
