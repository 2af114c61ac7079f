package ptx

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernels of testdata/calls.cu: functions that call themselves and others, directly
// and through pointers, and variables of a module.

func gcdTwin(a, b uint32) uint32 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func ackermannTwin(m, n uint32) uint32 {
	switch {
	case m == 0:
		return n + 1
	case n == 0:
		return ackermannTwin(m-1, 1)
	}
	return ackermannTwin(m-1, ackermannTwin(m, n-1))
}

// callsTwin is what thread i writes.
func callsTwin(i, x, y uint32) (out [4]uint32) {
	out[0] = gcdTwin(x, y)
	if i&1 != 0 {
		out[0] += ackermannTwin(2, i&3)
	}
	out[1] = []uint32{x + y, x - y, x * y, gcdTwin(x, y)}[x&3]
	a := uint64(x)<<32 | uint64(y)
	by := i + 1
	qa := a + uint64(x*by)
	out[2] = uint32(qa>>32) + uint32(qa) + (y ^ by) + y
	out[3] = []uint32{2, 3, 5, 7, 11}[i%5]*1000 + []uint32{40, 50, 0}[i%3] + 3
	return out
}

// withImage puts a module's variables into the arena.
func (a *arena) withImage(m *Module, l *Launch) {
	l.Image = base + uint64(len(a.testMemory))<<32
	a.put(m.Image(l.Image))
}

func TestCalls(t *testing.T) {
	m := loadModule(t, "calls.ptx")
	k, _ := m.Kernel("calls")
	rnd := rand.New(rand.NewPCG(11, 12))
	for _, n := range []uint32{1, 31, 200} {
		in, want := make([]uint32, 2*n), []uint32(nil)
		for i := range n {
			in[2*i], in[2*i+1] = rnd.Uint32N(5000), rnd.Uint32()>>rnd.UintN(32)
			out := callsTwin(i, in[2*i], in[2*i+1])
			want = append(want, out[:]...)
		}
		var a arena
		l := grid(4, 64)
		out := make([]byte, 16*n)
		l.Params = params(a.put(bytesOf(in)), a.put(out), n)
		a.withImage(m, &l)
		runAll(t, k, a, l)
		require.Equal(t, want, valuesOf[uint32](out))
	}
}

// TestVariablesStay: what a launch leaves in the module's variables the next one finds.
func TestVariablesStay(t *testing.T) {
	m := loadModule(t, "calls.ptx")
	k, _ := m.Kernel("count")
	var a arena
	l := grid(3, 64)
	out := make([]byte, 12)
	l.Params = params(a.put(out))
	a.withImage(m, &l)
	runAll(t, k, a, l)
	require.Equal(t, []uint32{7 + 32, 7 + 96, 7 + 160}, valuesOf[uint32](out))
	runAll(t, k, a, l)
	require.EqualValues(t, 7+192+32, valuesOf[uint32](out)[0])
	l.Image = 0
	_, err := k.Start(a, l)
	require.ErrorIs(t, err, ErrLaunch)
}

func TestPrints(t *testing.T) {
	m := loadModule(t, "calls.ptx")
	k, _ := m.Kernel("speak")
	var a arena
	l := grid(1, 32)
	l.Params = params(uint32(5), float32(2.345), a.put([]byte("text\x00")))
	a.withImage(m, &l)
	var printed bytes.Buffer
	l.Printf = &printed
	runAll(t, k, a, l)
	require.Equal(t, "-5 of  2.35: text|7   |00ff|-5|z%\n-4 of  2.35: text|7   |00ff|-5|z%\n", printed.String())
}

// TestStack: recursion is as deep as a thread's memory, and then an error.
func TestStack(t *testing.T) {
	m := loadModule(t, "calls.ptx")
	k, _ := m.Kernel("stack")
	for _, c := range []struct {
		n    uint32
		deep bool
	}{{10, false}, {100000, true}} {
		var a arena
		l := grid(1, 1)
		out := make([]byte, 4)
		l.Params = params(a.put(out), c.n)
		a.withImage(m, &l)
		r := start(t, k, a, l)
		_, err := r.Step(1)
		if c.deep {
			require.ErrorIs(t, err, ErrStack)
			continue
		}
		require.NoError(t, err)
		require.EqualValues(t, 10*11/2, valuesOf[uint32](out)[0])
	}
}
