package ptx

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// The kernels of testdata, compiled by NVRTC, against the same in Go.

func bytesOf[T any](v []T) []byte {
	p, err := binary.Append(nil, binary.LittleEndian, v)
	if err != nil {
		panic(err)
	}
	return p
}

func valuesOf[T any](p []byte) []T {
	var zero T
	v := make([]T, len(p)/binary.Size(zero))
	if _, err := binary.Decode(p, binary.LittleEndian, v); err != nil {
		panic(err)
	}
	return v
}

// arena hands out regions, each far from the others.
type arena struct{ testMemory }

func (a *arena) put(data []byte) uint64 {
	at := base + uint64(len(a.testMemory))<<32
	a.testMemory = append(a.testMemory, Region{Base: at, Data: data})
	return at
}

func grid(blocks, threads uint32) Launch {
	return Launch{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint32{threads, 1, 1}}
}

func TestTrips(t *testing.T) {
	k := kernel(t, "diverge.ptx", "trips")
	rnd := rand.New(rand.NewPCG(5, 6))
	for _, count := range []int{1, 31, 32, 33, 100, 250} {
		n := make([]uint32, count)
		want := make([]uint32, count)
		for i := range n {
			n[i] = rnd.Uint32N(60)
			x := uint32(i)
			for j := range n[i] {
				if x&1 != 0 {
					x = 3*x + 1
				} else {
					x >>= 1
				}
				if x == 1 && j&7 == 5 {
					break
				}
			}
			want[i] = x
		}
		var a arena
		out := make([]byte, 4*count)
		l := grid(4, 64)
		l.Params = params(a.put(bytesOf(n)), a.put(out), uint32(count))
		runAll(t, k, a, l)
		require.Equal(t, want, valuesOf[uint32](out))
	}
}

func nestedTwin(in []int32, t int) int32 {
	v, r := in[t], int32(0)
	if v < 0 {
		if v < -100 {
			return -1
		}
		r = -v
		if v&3 == 0 {
			for i := range int(v & 15) {
				r += in[(t+i)%len(in)]
			}
		} else if v&3 == 1 {
			r ^= 0x55
		}
		return r
	}
	switch v % 7 {
	case 0:
		return v + 1
	case 1:
		return v * v
	case 2:
		return v/3 + v%5
	case 3:
		return v % 5
	case 4:
		for k := v; k > 3; r++ {
			k -= 1 + k>>2
		}
		return r
	}
	return 7
}

func TestNested(t *testing.T) {
	k := kernel(t, "diverge.ptx", "nested")
	rnd := rand.New(rand.NewPCG(7, 8))
	for _, count := range []int{5, 64, 777} {
		in, want := make([]int32, count), make([]int32, count)
		for i := range in {
			in[i] = rnd.Int32N(400) - 200
		}
		for i := range in {
			want[i] = nestedTwin(in, i)
		}
		var a arena
		out := make([]byte, 4*count)
		l := grid(13, 64)
		l.Params = params(a.put(bytesOf(in)), a.put(out), uint32(count))
		runAll(t, k, a, l)
		require.Equal(t, want, valuesOf[int32](out))
	}
}

func TestReduce(t *testing.T) {
	k := kernel(t, "block.ptx", "reduce")
	require.Equal(t, 2048, k.StaticShared())
	in := make([]uint32, 5000)
	sum := uint64(0)
	for i := range in {
		in[i] = uint32(i) * 2654435761
		sum += uint64(in[i])
	}
	var a arena
	out := make([]byte, 8)
	l := grid(3, 256)
	l.Params = params(a.put(bytesOf(in)), a.put(out), uint32(len(in)))
	runAll(t, k, a, l)
	require.Equal(t, sum, valuesOf[uint64](out)[0])
}

func TestShuffleSum(t *testing.T) {
	k := kernel(t, "block.ptx", "shuffle")
	in := make([]uint64, 3000)
	sum := uint64(0)
	for i := range in {
		in[i] = rand.Uint64()
		sum ^= in[i] * (2*uint64(i) + 1)
	}
	for _, threads := range []uint32{32, 96, 512} {
		var a arena
		out := make([]byte, 8)
		l := grid(1, threads)
		l.DynamicShared = threads / 32 * 8
		l.Params = params(a.put(bytesOf(in)), a.put(out), uint32(len(in)))
		runAll(t, k, a, l)
		require.Equal(t, sum, valuesOf[uint64](out)[0])
	}
}

func TestVotes(t *testing.T) {
	k := kernel(t, "block.ptx", "votes")
	in := make([]int32, 32)
	for i := range in {
		in[i] = int32(i*37%50) - 20
	}
	ballot, any, all := uint32(0), uint32(0), uint32(1)
	for i, v := range in {
		if v > 0 {
			ballot |= 1 << i
		}
		if v > 100 {
			any = 1
		}
		if v <= -100 {
			all = 0
		}
	}
	var a arena
	out := make([]byte, 16*32)
	l := grid(1, 32)
	l.Params = params(a.put(bytesOf(in)), a.put(out))
	runAll(t, k, a, l)
	got := valuesOf[uint32](out)
	for i, v := range in {
		require.Equal(t, ballot, got[4*i])
		require.Equal(t, any|all<<1|uint32(bits.OnesCount32(ballot))<<8|uint32(bits.LeadingZeros32(uint32(v)))<<16, got[4*i+1])
		require.Equal(t, uint32(in[max(i-1, 0)]), got[4*i+2])
		require.Equal(t, uint32(in[0]), got[4*i+3])
	}
}

func TestHistogram(t *testing.T) {
	k := kernel(t, "block.ptx", "histogram")
	in, want := make([]byte, 10007), make([]uint32, 16)
	for i := range in {
		in[i] = byte(i * i >> 3)
		want[in[i]&15]++
	}
	var a arena
	out := make([]byte, 64)
	l := grid(5, 160)
	l.Params = params(a.put(in), a.put(out), uint32(len(in)))
	runAll(t, k, a, l)
	require.Equal(t, want, valuesOf[uint32](out))
}

func TestAtomics(t *testing.T) {
	k := kernel(t, "block.ptx", "atomics")
	const threads = 75
	s, u, w := []int32{100, 3, -9}, []uint32{50, 0, ^uint32(0), 1, 7, 1, 0, 3}, []uint64{1, 0, 0, 0}
	var a arena
	bs, bu, bw := bytesOf(s), bytesOf(u), bytesOf(w)
	l := grid(1, threads)
	l.Params = params(a.put(bs), a.put(bu), a.put(bw))
	runAll(t, k, a, l)
	for i := range int32(threads) {
		v := uint32(i - 5)
		s[0] += i - 5
		s[1], s[2] = min(s[1], i-5), max(s[2], i-5)
		u[0], u[1] = min(u[0], v), max(u[1], v)
		u[2] &^= 1 << (i & 31)
		u[3] |= 1 << (i & 31)
		u[4] ^= uint32(i) * 2654435761
		if u[7]++; u[7] > 9 {
			u[7] = 0
		}
		w[0] += uint64(i) << 33
		w[2] = max(w[2], uint64(i)<<40)
	}
	u[5], u[6], w[1], w[3] = 77, 42, 1<<40, 5
	require.Equal(t, s, valuesOf[int32](bs))
	require.Equal(t, u, valuesOf[uint32](bu))
	require.Equal(t, w, valuesOf[uint64](bw))
}

func wideTwin(x, y uint64) (o [16]uint64) {
	o[0], o[1], o[2], o[3], o[4] = x+y, x-y, x*y, ^uint64(0), x
	if y != 0 {
		o[3], o[4] = x/y, x%y
		if int64(y) != -1 {
			o[7] = uint64(int64(x) / int64(y))
		}
	}
	o[5], _ = bits.Mul64(x, y)
	o[6] = bigMul(bigS(x), bigS(y), 64)
	o[8] = x<<(y&63) | x>>((64-y&63)%64)
	o[9] = uint64(int64(x) >> (y & 63))
	o[10] = uint64(bits.OnesCount64(x) + 256*bits.LeadingZeros64(x))
	if x != 0 {
		o[10] += 65536 * uint64(bits.TrailingZeros64(x)+1)
	}
	o[11] = bits.Reverse64(x)
	o[12] = b2u(x < y)<<1 | b2u(int64(x) < int64(y))
	o[13] = x&y ^ (^x | y)
	o[14] = uint64(int8(x)) + uint64(uint16(y)) + uint64(int16(y)) + uint64(uint8(x))
	o[15] = min(x, y) ^ uint64(max(int64(x), int64(y)))
	return o
}

func narrowTwin(x, y uint32) (o [16]uint32) {
	sx, sy := int32(x), int32(y)
	o[0], o[1], o[2] = x*y+7, ^uint32(0), x
	if y != 0 {
		o[1], o[2] = x/y, x%y
	}
	o[3] = uint32(uint64(x) * uint64(y) >> 32)
	o[4] = uint32(int64(sx) * int64(sy) >> 32)
	o[5] = uint32(naivePrmt(uint64(x), uint64(y), 0x3715))
	o[6] = (y<<7 | x>>25) ^ uint32((uint64(y)<<32|uint64(x))>>(y&31))
	o[7] = bits.Reverse32(x)
	if y != 0 {
		o[7] ^= uint32(bits.TrailingZeros32(y) + 1)
	}
	o[8] = uint32(max(sx, -sx)) ^ uint32(min(sx, sy)) ^ max(x, y)
	o[9] = x>>5&0xff | y&0xff<<8
	o[10] = uint32(sx>>3) ^ uint32(uint16(x*3)) ^ uint32(int16(y+5))
	o[11] = uint32(uint64(x)*uint64(y)>>13) ^ uint32(int64(sx)*int64(sy)>>7)
	o[12] = uint32(uint16(x)/(uint16(y)|1)) + uint32(int32(int16(x))%int32(int16(y|1)))
	o[13] = uint32(b2u(x < y) + 2*b2u(sx <= sy) + 4*b2u(x == y) + 8*b2u(x != 3 && y > 9))
	o[14] = uint32(float32(x)*0.25) ^ uint32(int32(float64(sy)*0.5))
	o[15] = x/10 + y%7 + uint32(sx/-3)
	return o
}

func TestArith(t *testing.T) {
	rnd := rand.New(rand.NewPCG(9, 10))
	const n = 1000
	x, y := make([]uint64, n), make([]uint64, n)
	for i := range x {
		x[i], y[i] = randomOperand(rnd), randomOperand(rnd)
	}
	t.Run("wide", func(t *testing.T) {
		var a arena
		out := make([]byte, 16*8*n)
		l := grid(8, 128)
		l.Params = params(a.put(bytesOf(x)), a.put(bytesOf(y)), a.put(out), uint32(n))
		runAll(t, kernel(t, "arith.ptx", "wide"), a, l)
		got := valuesOf[uint64](out)
		for i := range x {
			want := wideTwin(x[i], y[i])
			require.Equal(t, want[:], got[16*i:16*i+16], "%#x %#x", x[i], y[i])
		}
	})
	t.Run("narrow", func(t *testing.T) {
		x32, y32 := make([]uint32, n), make([]uint32, n)
		for i := range x {
			x32[i], y32[i] = uint32(x[i]), uint32(y[i])
		}
		var a arena
		out := make([]byte, 16*4*n)
		l := grid(8, 128)
		l.Params = params(a.put(bytesOf(x32)), a.put(bytesOf(y32)), a.put(out), uint32(n))
		runAll(t, kernel(t, "arith.ptx", "narrow"), a, l)
		got := valuesOf[uint32](out)
		for i := range x {
			want := narrowTwin(x32[i], y32[i])
			require.Equal(t, want[:], got[16*i:16*i+16], "%#x %#x", x32[i], y32[i])
		}
	})
}

func TestLocalSort(t *testing.T) {
	k := kernel(t, "spaces.ptx", "local_sort")
	require.Equal(t, 32, k.LocalBytes())
	const n = 70
	in := make([]uint32, 8*n)
	for i := range in {
		in[i] = rand.Uint32()
	}
	var a arena
	out := make([]byte, 32*n)
	l := grid(2, 50)
	l.Params = params(a.put(bytesOf(in)), a.put(out), uint32(n))
	runAll(t, k, a, l)
	for i := range n {
		slices.Sort(in[8*i : 8*i+8])
	}
	require.Equal(t, in, valuesOf[uint32](out))
}

func TestParamTable(t *testing.T) {
	k := kernel(t, "spaces.ptx", "table")
	var tab []byte
	var bases [8]uint64
	var steps [8]int16
	var kinds [8]uint8
	for i := range bases {
		bases[i], steps[i], kinds[i] = uint64(i)<<40+3, int16(i*100-350), uint8(200+i)
	}
	tab = append(append(append(tab, bytesOf(bases[:])...), bytesOf(steps[:])...), kinds[:]...)
	const n = 60
	which, want := make([]uint32, n), make([]uint64, n)
	for i := range which {
		which[i] = rand.Uint32()
		w := which[i] & 7
		want[i] = bases[w] + uint64(steps[w])*uint64(i) + uint64(kinds[w])<<56
	}
	var a arena
	out := make([]byte, 8*n)
	l := grid(1, 64)
	l.Params = params(a.put(bytesOf(which)), a.put(out), tab, uint32(n))
	require.Len(t, l.Params, k.ParamBytes())
	require.Equal(t, Param{Name: "table_param_2", Type: ".b8", Size: 88, Align: 8, Offset: 16}, k.Params()[2])
	runAll(t, k, a, l)
	require.Equal(t, want, valuesOf[uint64](out))
}

func jumpTwin(in []uint32, t int, old uint32) uint32 {
	x, n := in[t], len(in)
	switch x % 12 {
	case 0:
		return x * 3
	case 1:
		return in[(t+1)%n]
	case 2:
		return x ^ in[0]
	case 3:
		return (x+7)>>1 + 5
	case 4:
		return x>>1 + 5
	case 5:
		for i := uint32(0); i < x&7; i++ {
			x = x*5 + i
		}
		return x
	case 6:
		return uint32(bits.OnesCount32(x))
	case 7:
		return old
	case 8:
		return uint32(bits.LeadingZeros32(x)) + in[1]
	case 9:
		return x / 7
	case 10:
		return in[x%uint32(n)]
	}
	return 1
}

func TestJumpTable(t *testing.T) {
	const n = 500
	in, want := make([]uint32, n), make([]uint32, n)
	for i := range in {
		in[i] = rand.Uint32()
	}
	out := dirty(4 * n)
	for i := range in {
		want[i] = jumpTwin(in, i, 0xeeeeeeee)
	}
	var a arena
	l := grid(8, 64)
	l.Params = params(a.put(bytesOf(in)), a.put(out), uint32(n))
	runAll(t, kernel(t, "spaces.ptx", "jump"), a, l)
	require.Equal(t, want, valuesOf[uint32](out))
}

func TestVectors(t *testing.T) {
	const n = 48
	var a arena
	var in, out [][]byte
	l := grid(1, n)
	for _, size := range []int{16, 8, 8, 4, 16} {
		p := make([]byte, size*n)
		for i := range p {
			p[i] = byte(rand.Uint32())
		}
		in = append(in, p)
		l.Params = append(l.Params, params(a.put(p))...)
	}
	for _, p := range in {
		q := dirty(len(p))
		out = append(out, q)
		l.Params = append(l.Params, params(a.put(q))...)
	}
	r := runAll(t, kernel(t, "spaces.ptx", "vectors"), a, l)
	for i := range n {
		require.Equal(t, in[0][16*i:16*i+16], out[0][16*(n-1-i):16*(n-i)])
	}
	require.Equal(t, in[1:], out[1:])
	read, written := r.Traffic()
	require.EqualValues(t, 52*n, read)
	require.EqualValues(t, 52*n, written)
}

func TestFlags(t *testing.T) {
	const n, threads = 1000, 96
	in := make([]int32, n)
	for i := range in {
		in[i] = rand.Int32N(30)
	}
	var want [threads]int32
	any, count := int32(0), int32(0)
	for i := range threads {
		first, seen, last := true, false, int32(0)
		for j := i; j < n; j += threads {
			v := in[j]
			if !first && v < last {
				seen = true
			}
			first = v == 13
			if first {
				seen = !seen
			}
			last = v
		}
		want[i] = int32(b2u(seen) + 2*b2u(first))
		any |= int32(b2u(seen))
		count += int32(b2u(first))
	}
	for i := range want {
		want[i] += 4*any + 8*count
	}
	var a arena
	out := make([]byte, 4*threads)
	l := grid(1, threads)
	l.Params = params(a.put(bytesOf(in)), a.put(out), uint32(n))
	runAll(t, kernel(t, "spaces.ptx", "flags"), a, l)
	require.Equal(t, want[:], valuesOf[int32](out))
}

func TestGenericAddresses(t *testing.T) {
	in := []uint32{5, 6, 7, 8}
	const threads = 70
	want := make([]uint32, threads)
	for i := range want {
		want[i] = in[i&3] + [3]uint32{0, 100, uint32(i)}[i%3]
	}
	var a arena
	out := make([]byte, 4*threads)
	l := grid(1, threads)
	l.Params = params(a.put(bytesOf(in)), a.put(out))
	runAll(t, kernel(t, "spaces.ptx", "generic"), a, l)
	require.Equal(t, want, valuesOf[uint32](out))
}

// TestZeroIDs reads ids from the parameters, whose place depends on the block.
func TestZeroIDs(t *testing.T) {
	k := kernel(t, "zero.ptx", "zero_ids")
	var a arena
	first, second := dirty(10*100), dirty(10*64)
	segs := []uint64{a.put(first), 100, 77, a.put(second), 64, 64}
	ids := [64]int32{3, -1, 9, 0, 3}
	for _, fromMemory := range []bool{false, true} {
		n := uint32(5)
		count := uint64(0)
		if fromMemory {
			n = 3
			count = a.put(params(n))
		}
		l := Launch{Grid: [3]uint32{1, 2, 2}, Block: [3]uint32{64, 1, 1},
			Params: params(a.put(bytesOf(segs)), uint32(2), count, uint32(5), bytesOf(ids[:]))}
		for i := range first {
			first[i] = 0xee
		}
		for i := range second {
			second[i] = 0xee
		}
		wantFirst, wantSecond := dirty(len(first)), dirty(len(second))
		for _, id := range ids[:n] {
			if id >= 0 {
				clear(wantFirst[100*id : 100*id+77])
				clear(wantSecond[64*id : 64*id+64])
			}
		}
		runAll(t, k, a, l)
		require.Equal(t, wantFirst, first, fmt.Sprint(fromMemory))
		require.Equal(t, wantSecond, second)
	}
}

func TestHints(t *testing.T) {
	const n = 64
	in := make([]uint32, 4*(n+4))
	for i := range in {
		in[i] = rand.Uint32()
	}
	out, c, v := make([]byte, 16*(300+n)), make([]byte, 4*(4+n)), make([]byte, 4*n)
	var a arena
	l := grid(2, 32)
	l.Params = params(a.put(bytesOf(in)), a.put(out), a.put(c), a.put(v))
	runAll(t, kernel(t, "hints.ptx", "hints"), a, l)
	got, counts := valuesOf[uint32](out), valuesOf[uint32](c)
	for i := range n {
		at := func(k int) []uint32 { return in[4*(i+k) : 4*(i+k)+4] }
		want := slices.Clone(at(0))
		want[0] ^= at(1)[1] + at(2)[2] - at(3)[3] + at(4)[0]*at(0)[1]
		require.Equal(t, want, got[4*i:4*i+4])
		for k := 1; k < 4; k++ {
			require.Equal(t, at(k), got[4*(100*k+i):4*(100*k+i)+4])
		}
		require.EqualValues(t, uint32(0x11111111)<<(i&3)^0xffffffff^1, counts[4+i])
		require.EqualValues(t, 1, valuesOf[uint32](v)[i])
	}
	dec := uint32(0)
	for range n {
		if dec--; dec > 7 {
			dec = 7
		}
	}
	require.Equal(t, []uint32{n, 2 * n, math.MaxUint32 - 3*n + 1, dec}, counts[:4])
}
