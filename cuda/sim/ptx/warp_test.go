package ptx

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestShuffleModes compares each mode and segment with the definition: a lane
// reads the one that it names if that lies in its segment (bfly: or before it),
// else its own value.
func TestShuffleModes(t *testing.T) {
	for _, mode := range []string{"up", "down", "bfly", "idx"} {
		for _, width := range []int{32, 16, 8, 4, 2, 1} {
			for _, b := range []int{0, 1, 3, 7, 16, 31} {
				c := (32 - width) << 8
				if mode != "up" {
					c |= 31
				}
				k := flowKernel(t, fmt.Sprintf(`mul.lo.u32 %%r2, %%r1, 10;
shfl.sync.%s.b32 %%r3|%%p1, %%r2, %d, %d, -1;
selp.u32 %%r4, 1000, 0, %%p1;
add.u32 %%r3, %%r3, %%r4;
st.global.u32 [%%d1], %%r3;
ret;`, mode, b, c))
				for lane, got := range runFlow(t, k, 32) {
					first := lane / width * width
					from := map[string]int{"up": lane - b, "down": lane + b, "bfly": lane ^ b, "idx": first + b%width}[mode]
					want := uint32(10 * lane)
					if (from >= first || mode == "bfly") && from < first+width {
						want = uint32(10*from + 1000)
					}
					require.Equal(t, want, got, "%s %d in segments of %d, lane %d", mode, b, width, lane)
				}
			}
		}
	}
}

func TestVotesOfSome(t *testing.T) {
	k := flowKernel(t, `
setp.lt.u32 %p1, %r1, 20;
@!%p1 bra END;
setp.lt.u32 %p2, %r1, 5;
vote.sync.ballot.b32 %r2, %p2, 0xfffff;
vote.sync.ballot.b32 %r3, !%p2, 0xfffff;
vote.sync.uni.pred %p3, %p1, 0xfffff;
vote.sync.uni.pred %p4, %p2, 0xfffff;
vote.sync.all.pred %p5, %p1, 0xfffff;
vote.sync.any.pred %p6, !%p1, 0xfffff;
selp.u32 %r4, 1, 0, %p3; selp.u32 %r5, 2, 0, %p4; selp.u32 %r6, 4, 0, %p5; selp.u32 %r7, 8, 0, %p6;
or.b32 %r4, %r4, %r5; or.b32 %r4, %r4, %r6; or.b32 %r4, %r4, %r7;
and.b32 %r8, %r1, 3;
match.any.sync.b32 %r9, %r8, 0xfffff;
match.all.sync.b32 %r10|%p7, %r8, 0xfffff;
@%p7 trap;
match.all.sync.b64 %r11|%p7, 9, 0xfffff;
@!%p7 trap;
add.u32 %r10, %r10, %r11;
bar.warp.sync 0xfffff;
activemask.b32 %r12;
xor.b32 %r2, %r2, %r3; shl.b32 %r4, %r4, 20; xor.b32 %r2, %r2, %r4; xor.b32 %r2, %r2, %r9; xor.b32 %r2, %r2, %r10; xor.b32 %r2, %r2, %r12;
st.global.u32 [%d1], %r2;
END: ret;`)
	for i, v := range runFlow(t, k, 32) {
		want := uint32(0)
		if i < 20 {
			same := uint32(0x11111111<<(i&3)) & 0xfffff
			want = 0x1f ^ 0xfffe0 ^ (1|4)<<20 ^ same ^ 0xfffff ^ 0xfffff
		}
		require.Equal(t, want, v, "lane %d", i)
	}
}

func TestBarrierReductions(t *testing.T) {
	k := flowKernel(t, `
setp.ge.u32 %p1, %r1, 90;
@%p1 exit;
setp.lt.u32 %p2, %r1, 70;
bar.red.popc.u32 %r2, 0, %p2;
barrier.red.popc.aligned.u32 %r3, 1, !%p2;
bar.red.and.pred %p3, 0, %p2;
bar.red.or.pred %p4, 0, %p2;
setp.lt.u32 %p5, %r1, 1000;
bar.red.and.pred %p5, 2, %p5;
selp.u32 %r4, 1, 0, %p3; selp.u32 %r5, 2, 0, %p4; selp.u32 %r6, 4, 0, %p5;
add.u32 %r4, %r4, %r5; add.u32 %r4, %r4, %r6;
mad.lo.u32 %r2, %r2, 1000, %r4; mad.lo.u32 %r2, %r3, 100000, %r2;
st.global.u32 [%d1], %r2;
ret;`)
	for i, v := range runFlow(t, k, 100) {
		if i < 90 {
			require.EqualValues(t, 2000000+70000+2+4, v)
		} else {
			require.Zero(t, v)
		}
	}
}

func TestAtomicValues(t *testing.T) {
	for _, c := range []struct {
		text           string
		old, want, got uint32
	}{
		{"atom.global.dec.u32 %r2, [%d1], 5;", 0, 5, 0},
		{"atom.global.dec.u32 %r2, [%d1], 5;", 9, 5, 9},
		{"atom.global.dec.u32 %r2, [%d1], 5;", 3, 2, 3},
		{"atom.global.inc.u32 %r2, [%d1], 5;", 5, 0, 5},
		{"atom.global.exch.b32 %r2, [%d1], 5;", 8, 5, 8},
		{"atom.global.cas.b32 %r2, [%d1], 8, 1;", 8, 1, 8},
		{"atom.global.cas.b32 %r2, [%d1], 8, 1;", 7, 7, 7},
		{"atom.global.min.s32 %r2, [%d1], -1;", 5, math.MaxUint32, 5},
		{"atom.global.max.s32 %r2, [%d1], -1;", 5, 5, 5},
		{"atom.global.add.f32 %r2, [%d1], 0f3F800000;", 0x40000000, 0x40400000, 0x40000000},
		{"red.global.or.b32 [%d1], 6; mov.u32 %r2, 3;", 1, 7, 3},
	} {
		k := flowKernel(t, c.text+" st.global.u32 [%d1+4], %r2; ret;")
		data := params(c.old, uint32(0))
		l := grid(1, 1)
		l.Params = params(uint64(base))
		runAll(t, k, testMemory{{Base: base, Data: data}}, l)
		require.Equal(t, []uint32{c.want, c.got}, valuesOf[uint32](data), c.text)
	}
}

func TestLaneRegisters(t *testing.T) {
	k := flowKernel(t, `
mov.u32 %r2, %laneid; mov.u32 %r3, %lanemask_eq; mov.u32 %r4, %lanemask_lt; mov.u32 %r5, %lanemask_le;
mov.u32 %r6, %lanemask_gt; mov.u32 %r7, %lanemask_ge; mov.u32 %r8, %warpid; mov.u32 %r9, %nwarpid; mov.u32 %r10, %nsmid;
sub.u32 %r4, %r5, %r4; sub.u32 %r6, %r7, %r6; xor.b32 %r3, %r3, %r4; xor.b32 %r3, %r3, %r6; xor.b32 %r3, %r3, %r5;
mad.lo.u32 %r2, %r8, 32, %r2;
add.u32 %r3, %r3, %r2;
st.global.u32 [%d1], %r3; ret;`)
	for i, v := range runFlow(t, k, 70) {
		lane := i % 32
		bit := uint32(1) << lane
		require.Equal(t, bit^(bit|(bit-1))+uint32(i), v)
	}
}

func TestClock(t *testing.T) {
	k := flowKernel(t, "mov.u32 %r2, %clock; mov.u64 %d3, %clock64; cvt.u32.u64 %r3, %d3; sub.u32 %r2, %r3, %r2; st.global.u32 [%d1], %r2; ret;")
	require.Equal(t, []uint32{1, 1}, runFlow(t, k, 2))
}

// The timer passes while a warp sleeps, and for all who met it at a barrier.
func TestTimer(t *testing.T) {
	const now = 5<<32 + 7
	// What each thread saw pass, plus what is wrong with the timer at the start.
	k := flowKernel(t, `
mov.u64 %d2, %globaltimer; mov.u32 %r2, %globaltimer_lo; mov.u32 %r3, %globaltimer_hi;
setp.lt.u32 %p1, %r1, 40; @%p1 nanosleep.u32 700;
nanosleep.u32 %r1;
bar.sync 0;
mov.u64 %d3, %globaltimer; sub.u64 %d3, %d3, %d2;
cvt.u64.u32 %d4, %r3; shl.b64 %d4, %d4, 32; cvt.u64.u32 %d5, %r2; or.b64 %d4, %d4, %d5; xor.b64 %d4, %d4, %d2; add.u64 %d3, %d3, %d4;
xor.b64 %d2, %d2, 21474836487; add.u64 %d3, %d3, %d2;
st.global.u32 [%d1], %d3; ret;`)
	data := make([]byte, 4*70)
	l := grid(2, 70)
	l.Params, l.Timer = params(uint64(base)), func() uint64 { return now }
	r := start(t, k, testMemory{{Base: base, Data: data}}, l)
	require.Zero(t, r.Slept())
	for range 2 {
		_, err := r.Step(1)
		require.NoError(t, err)
		// Lanes 32 to 39 sleep first, then their whole warp as long as its lane 63.
		require.EqualValues(t, 700+63, r.Slept())
		for _, v := range valuesOf[uint32](data) {
			require.EqualValues(t, 700+63, v)
		}
	}
	k = flowKernel(t, "nanosleep.u32 2000000; ret;")
	r = start(t, k, nil, Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params(uint64(base))})
	_, err := r.Step(1)
	require.NoError(t, err)
	require.EqualValues(t, 1e6, r.Slept(), "a sleep is a millisecond at most, and warps sleep at the same time")
}

// TestConcurrentRuns: one kernel, several goroutines.
func TestConcurrentRuns(t *testing.T) {
	k := kernel(t, "block.ptx", "reduce")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			in := make([]uint32, 1000)
			sum := uint64(0)
			for i := range in {
				in[i] = rand.Uint32()
				sum += uint64(in[i])
			}
			out := make([]byte, 8)
			r, err := k.Start(testMemory{{Base: base, Data: bytesOf(in)}, {Base: 2 * base, Data: out}},
				Launch{Grid: [3]uint32{2, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params(uint64(base), uint64(2*base), uint32(len(in)))})
			if err == nil {
				_, err = r.Step(2)
			}
			if err != nil || valuesOf[uint64](out)[0] != sum {
				t.Errorf("sum %d, want %d, error %v", valuesOf[uint64](out)[0], sum, err)
			}
		})
	}
	wg.Wait()
}
