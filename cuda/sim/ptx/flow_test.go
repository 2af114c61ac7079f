package ptx

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// randomFlow is a kernel of n blocks that end in jumps anywhere, on conditions
// that differ between lanes. Every lane has fuel for a number of blocks, so all
// exit; what a lane computes depends on its way alone.
func randomFlow(t *rapid.T) string {
	n := rapid.IntRange(1, 12).Draw(t, "blocks")
	var s strings.Builder
	s.WriteString(`.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out, .param .u32 first) {
.reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %d<4>;
mov.u32 %r1, %tid.x;
ld.param.u32 %r2, [first];
add.u32 %r1, %r1, %r2;
ld.param.u64 %d1, [out];
mul.wide.u32 %d2, %r1, 4;
add.s64 %d1, %d1, %d2;
mov.u32 %r3, %r1;
mov.u32 %r4, 0;
`)
	label := func() string { return fmt.Sprintf("L%d", rapid.IntRange(0, n).Draw(t, "target")) }
	for b := range n {
		fmt.Fprintf(&s, "L%d:\nmad.lo.u32 %%r3, %%r3, 1664525, %d;\nst.volatile.global.u32 [%%d1], %%r3;\n", b, 1013904223+b)
		s.WriteString("add.u32 %r4, %r4, 1;\nsetp.gt.u32 %p1, %r4, 40;\n")
		if rapid.Bool().Draw(t, "leave early") {
			s.WriteString("@%p1 ret;\n")
		} else {
			fmt.Fprintf(&s, "@%%p1 bra L%d;\n", n)
		}
		fmt.Fprintf(&s, "shr.u32 %%r5, %%r3, %d;\nand.b32 %%r5, %%r5, %d;\nsetp.eq.u32 %%p2, %%r5, 0;\n",
			rapid.IntRange(8, 28).Draw(t, "bit"), rapid.SampledFrom([]int{1, 3, 7}).Draw(t, "mask"))
		switch rapid.IntRange(0, 5).Draw(t, "end") {
		case 0:
		case 1:
			fmt.Fprintf(&s, "bra.uni %s;\n", label())
		case 2:
			s.WriteString("@%p2 exit;\n")
		case 3:
			fmt.Fprintf(&s, "@!%%p2 bra %s;\n@%%p1 bra %s;\n", label(), label())
		case 4:
			fmt.Fprintf(&s, "@%%p2 bra %s;\nbra.uni %s;\n", label(), label())
		default:
			fmt.Fprintf(&s, "@%%p2 bra %s;\n", label())
		}
	}
	fmt.Fprintf(&s, "L%d:\nxor.b32 %%r3, %%r3, %%r4;\nst.global.u32 [%%d1], %%r3;\nret;\n}\n", n)
	return s.String()
}

// TestRandomFlow compares warps whose lanes go different ways with the same
// threads run alone, which never part.
func TestRandomFlow(t *testing.T) {
	const threads = 50
	rapid.Check(t, func(t *rapid.T) {
		text := randomFlow(t)
		m, err := Parse("flow", []byte(text))
		require.NoError(t, err)
		k, _ := m.Kernel("k")
		together, alone := make([]byte, 4*threads), make([]byte, 4*threads)
		turn := turns{1, 1, 1}
		if rapid.Bool().Draw(t, "long turns") {
			turn = turns{firstSlice, longSlice, spinSlice}
		}
		run := func(out []byte, first, count uint32) {
			r, err := k.Start(testMemory{{Base: base, Data: out}}, Launch{Grid: [3]uint32{1, 1, 1},
				Block: [3]uint32{count, 1, 1}, Params: params(uint64(base), first), StepLimit: 1 << 20})
			require.NoError(t, err)
			r.turns = turn
			_, err = r.Step(1)
			require.NoError(t, err)
			for _, w := range r.idle {
				if turn.spin == 1 {
					break // lanes that go on alone take entries of their own
				}
				require.LessOrEqual(t, cap(w.stack), 3*warpSize, "the stack grew")
			}
		}
		run(together, 0, threads)
		for i := range uint32(threads) {
			run(alone, i, 1)
		}
		require.Equal(t, alone, together, text)
	})
}

// meetings returns, for each source line of a kernel, whether a join lies there.
func meetings(k *Kernel) map[int]bool {
	at := map[int]bool{}
	for _, n := range k.code {
		if n.op == opJoin {
			at[int(n.line)] = true
		}
	}
	return at
}

const flowHead = `.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .pred %p<8>; .reg .b32 %r<16>; .reg .b64 %d<8>;
mov.u32 %r1, %tid.x;
ld.param.u64 %d1, [out];
mul.wide.u32 %d2, %r1, 4;
add.s64 %d1, %d1, %d2;
`

const flowHeadLines = 9

func flowKernel(t testing.TB, body string) *Kernel {
	t.Helper()
	m, err := Parse("flow", []byte(flowHead+body+"\n}\n"))
	require.NoError(t, err)
	k, ok := m.Kernel("k")
	require.True(t, ok)
	return k
}

func runFlow(t testing.TB, k *Kernel, threads uint32) []uint32 {
	t.Helper()
	out := make([]byte, 4*threads)
	l := grid(1, threads)
	l.Params, l.StepLimit = params(uint64(base)), 1<<16
	runAll(t, k, testMemory{{Base: base, Data: out}}, l)
	return valuesOf[uint32](out)
}

// TestMeetingPlaces checks where branches reconverge.
func TestMeetingPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		want []int // lines of the body, from 1
	}{
		"if": {"setp.eq.u32 %p1, %r1, 3;\n@%p1 bra A;\nmov.u32 %r2, 1;\nA: mov.u32 %r3, 1;\nret;", []int{4}},
		"if else": {"setp.eq.u32 %p1, %r1, 3;\n@%p1 bra A;\nmov.u32 %r2, 1;\nbra B;\nA: mov.u32 %r2, 1;\nB: mov.u32 %r3, 1;\nret;",
			[]int{6}},
		"loop": {"A: setp.eq.u32 %p1, %r1, 3;\n@%p1 bra A;\nmov.u32 %r2, 1;\nret;", []int{3}},
		// Lanes that leave inside do not move the meeting place of the others.
		"early return": {"setp.lt.u32 %p1, %r1, 9;\nsetp.lt.u32 %p2, %r1, 5;\n@%p1 bra A;\n@%p2 bra END;\nmov.u32 %r2, 2;\nA: mov.u32 %r3, 1;\nEND: ret;",
			[]int{6}},
	} {
		t.Run(name, func(t *testing.T) {
			got := meetings(flowKernel(t, c.body))
			for _, line := range c.want {
				require.Contains(t, got, line+flowHeadLines, "%v", got)
			}
		})
	}
}

// TestShuffleAfterEarlyReturn: lanes that parted inside a branch some of whose
// lanes returned are together again for the shuffle.
func TestShuffleAfterEarlyReturn(t *testing.T) {
	k := flowKernel(t, `
mov.u32 %r4, 0;
setp.lt.u32 %p1, %r1, 16;
@%p1 bra LOW;
setp.ge.u32 %p2, %r1, 28;
@%p2 bra END;
mov.u32 %r4, 100;
bra.uni MEET;
LOW: mov.u32 %r4, 200;
MEET: add.u32 %r4, %r4, %r1;
shfl.sync.bfly.b32 %r5, %r4, 16, 31, 0x0fffffff;
st.global.u32 [%d1], %r5;
END: ret;`)
	got := runFlow(t, k, 32)
	for i := range uint32(28) {
		switch {
		case i < 12:
			require.Equal(t, 100+(i^16), got[i])
		case i >= 16:
			require.Equal(t, 200+(i^16), got[i])
		}
	}
	require.Equal(t, make([]uint32, 4), got[28:])
}

// TestEarlyRegion: a way that only leaves early has meeting places of its own.
func TestEarlyRegion(t *testing.T) {
	k := flowKernel(t, `
setp.ge.u32 %p1, %r1, 24;
@%p1 bra MAIN;
setp.lt.u32 %p2, %r1, 7;
@%p2 bra X;
mov.u32 %r2, 1;
bra.uni SYNC;
X: mov.u32 %r2, 2;
SYNC: activemask.b32 %r3;
st.global.u32 [%d1], %r3;
ret;
MAIN: activemask.b32 %r3;
st.global.u32 [%d1], %r3;
ret;`)
	for i, v := range runFlow(t, k, 32) {
		if i < 24 {
			require.EqualValues(t, 0xffffff, v)
		} else {
			require.EqualValues(t, 0xff000000, v)
		}
	}
}

// TestShuffleGathers: the lanes of a shuffle's mask come from a loop that some
// leave by one exit and some by another, in whatever order they run.
func TestShuffleGathers(t *testing.T) {
	k := flowKernel(t, `
mov.u32 %r2, 0;
LOOP: add.u32 %r2, %r2, 1;
setp.gt.u32 %p1, %r2, %r1;
@%p1 bra OUT;
setp.eq.u32 %p2, %r2, 9;
@%p2 bra GONE;
bra.uni LOOP;
GONE: st.global.u32 [%d1], 77;
ret;
OUT: setp.eq.u32 %p3, %r2, 4;
@%p3 bra SPLIT;
bra.uni SHFL;
SPLIT: and.b32 %r4, %r1, 1;
setp.eq.u32 %p4, %r4, 1;
@%p4 exit;
trap;
SHFL: shfl.sync.down.b32 %r5, %r2, 1, 31, 0x1f7;
st.global.u32 [%d1], %r5;
exit;
`)
	got := runFlow(t, k, 32)
	want := make([]uint32, 32)
	for i := range want {
		want[i] = 77
	}
	copy(want, []uint32{2, 3, 4, 0, 6, 7, 8, 9, 9})
	want[3] = 0 // exited
	require.Equal(t, want[:2], got[:2])
	require.Equal(t, want[3:8], got[3:8])
	require.Equal(t, want[9:], got[9:])
}

// TestGather: lanes that have no meeting place, because their ways leave the
// kernel at two places, meet at the shuffle that wants them.
func TestGather(t *testing.T) {
	k := flowKernel(t, `
setp.ge.u32 %p1, %r1, 24;
@%p1 bra MAIN;
setp.lt.u32 %p2, %r1, 7;
@%p2 bra X;
mov.u32 %r2, 100;
bra.uni SYNC;
X: mov.u32 %r2, 200;
setp.eq.u32 %p3, %r1, 3;
@%p3 bra GONE;
SYNC: add.u32 %r2, %r2, %r1;
shfl.sync.bfly.b32 %r3, %r2, 4, 31, 0xfffff7;
st.global.u32 [%d1], %r3;
ret;
GONE: st.global.u32 [%d1], 1;
ret;
MAIN: st.global.u32 [%d1], 2;
ret;`)
	for i, v := range runFlow(t, k, 32) {
		lane := uint32(i)
		switch from := lane ^ 4; {
		case lane == 3:
			require.EqualValues(t, 1, v)
		case lane >= 24:
			require.EqualValues(t, 2, v)
		case from < 7 && from != 3:
			require.Equal(t, 200+from, v, "lane %d", i)
		case from >= 7:
			require.Equal(t, 100+from, v, "lane %d", i)
		}
	}
}

// TestGuardThatChanges: an instruction may write its own guard.
func TestGuardThatChanges(t *testing.T) {
	k := flowKernel(t, `
setp.lt.u32 %p1, %r1, 10;
setp.lt.u32 %p2, %r1, 100;
setp.lt.u32 %p3, %r1, 100;
@%p1 setp.gt.and.u32 %p1|%p3, %r1, 4, %p2;
selp.u32 %r2, 1, 0, %p1; selp.u32 %r3, 2, 0, %p3;
add.u32 %r2, %r2, %r3;
st.global.u32 [%d1], %r2;
ret;`)
	for i, v := range runFlow(t, k, 32) {
		switch {
		case i <= 4:
			require.EqualValues(t, 2, v)
		case i < 10:
			require.EqualValues(t, 1, v)
		default:
			require.EqualValues(t, 2, v)
		}
	}
}

func TestSharedIsPoisoned(t *testing.T) {
	k := flowKernel(t, ".shared .align 4 .b8 s[8]; ld.shared.u32 %r2, [s+4]; st.shared.u32 [s+4], 0; st.global.u32 [%d1], %r2; ret;")
	out := make([]byte, 4)
	l := grid(3, 1)
	l.Params = params(uint64(base))
	r := start(t, k, testMemory{{Base: base, Data: out}}, l)
	for range 3 {
		_, err := r.Step(1)
		require.NoError(t, err)
		require.Equal(t, []uint32{0xcbcbcbcb}, valuesOf[uint32](out))
	}
}

// TestBarrierGathers: lanes without a meeting place before the exit still come
// to a barrier together.
func TestBarrierGathers(t *testing.T) {
	k := flowKernel(t, `
setp.lt.u32 %p1, %r1, 40;
@%p1 bra LOW;
mov.u32 %r4, 5;
HIGH: sub.u32 %r4, %r4, 1;
setp.ne.u32 %p2, %r4, 0;
@%p2 bra HIGH;
st.global.u32 [%d1], %r1;
ret;
LOW: setp.lt.u32 %p3, %r1, 7;
@%p3 bra ONE;
mov.u32 %r4, 11;
bra.uni TWO;
ONE: mov.u32 %r4, 12;
TWO: bar.sync 0;
st.global.u32 [%d1], %r4;
ret;`)
	got := runFlow(t, k, 64)
	for i, v := range got {
		want := uint32(11)
		switch {
		case i < 7:
			want = 12
		case i >= 40:
			want = uint32(i)
		}
		require.Equal(t, want, v, "thread %d", i)
	}
}

func TestDivergentBarrier(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		line int
	}{
		"two barriers at once":  {"setp.lt.u32 %p1, %r1, 5;\n@%p1 bra A;\nbar.sync 0;\nbra.uni B;\nA:\nbar.sync 0;\nB: ret;", 3},
		"some lanes guarded":    {"setp.lt.u32 %p1, %r1, 5;\n@%p1 bar.sync 0;\nret;", 2},
		"shuffle of both ways":  {"setp.lt.u32 %p1, %r1, 5;\n@%p1 bra A;\nshfl.sync.idx.b32 %r2, %r1, 0, 31, -1;\nA: add.u32 %r2, %r2, 1;\nst.global.u32 [%d1], %r2;\nret;", 3},
		"barrier number":        {"bar.sync 16;\nret;", 1},
		"warps at two barriers": {"setp.lt.u32 %p1, %r1, 32;\n@%p1 bra A;\nbar.sync 1, 64;\nbra.uni B;\nA:\nbar.sync 2, 64;\nB: ret;", 6},
	} {
		t.Run(name, func(t *testing.T) {
			r := start(t, flowKernel(t, c.body), testMemory{{Base: base, Data: make([]byte, 4096)}},
				Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params(uint64(base))})
			_, err := r.Step(1)
			require.ErrorIs(t, err, ErrDivergentBarrier)
			var trap *Trap
			require.ErrorAs(t, err, &trap)
			require.Equal(t, c.line+flowHeadLines, trap.Line, "%v", err)
		})
	}
}

// TestNamedBarriers: a producer and a consumer warp with a barrier of their own,
// while a third warp is not concerned.
func TestNamedBarriers(t *testing.T) {
	k := flowKernel(t, `
.shared .align 4 .b8 box[128];
shl.b32 %r6, %r1, 2;
and.b32 %r6, %r6, 127;
mov.u32 %r7, box;
add.u32 %r6, %r6, %r7;
setp.ge.u32 %p1, %r1, 64;
@%p1 bra THIRD;
setp.lt.u32 %p2, %r1, 32;
@%p2 bra CONSUME;
mul.lo.u32 %r2, %r1, 3;
st.shared.u32 [%r6], %r2;
bar.sync 5, 64;
ret;
CONSUME: bar.sync 5, 64;
ld.shared.u32 %r2, [%r6];
st.global.u32 [%d1], %r2;
ret;
THIRD: st.global.u32 [%d1], 9;
ret;`)
	got := runFlow(t, k, 96)
	for i := range uint32(32) {
		require.Equal(t, 3*(i+32), got[i])
		require.EqualValues(t, 9, got[64+i])
	}
}

// TestJumpTableOfBranches runs brx.idx, which NVRTC 11.8 did not emit for us.
func TestJumpTableOfBranches(t *testing.T) {
	k := flowKernel(t, `
TAB: .branchtargets A, B, C;
and.b32 %r2, %r1, 3;
brx.idx %r2, TAB;
A: mov.u32 %r3, 10; bra.uni D;
B: mov.u32 %r3, 20; bra.uni D;
C: mov.u32 %r3, 30;
D: st.global.u32 [%d1], %r3;
ret;`)
	for i, v := range runFlow(t, k, 40) {
		require.Equal(t, []uint32{10, 20, 30, 30}[i&3], v)
	}
}

func TestStepLimit(t *testing.T) {
	k := flowKernel(t, "A: add.u32 %r2, %r2, 1;\nbra.uni A;")
	r := start(t, k, nil, Launch{Grid: [3]uint32{9, 1, 1}, Block: [3]uint32{64, 1, 1}, Params: params(uint64(base)), StepLimit: 1000})
	done, err := r.Step(5)
	require.True(t, done)
	require.ErrorIs(t, err, ErrStepLimit)
	_, again := r.Step(1)
	require.Equal(t, err, again)
}

// TestOrderOfBlocks: x is fastest, and geometry reaches the special registers.
func TestOrderOfBlocks(t *testing.T) {
	m, err := Parse("order", []byte(`.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 out) {
.reg .b32 %r<20>; .reg .b64 %d<8>;
ld.param.u64 %d1, [out];
atom.global.add.u32 %r1, [%d1], 1;
mov.u32 %r2, %ctaid.x; mov.u32 %r3, %ctaid.y; mov.u32 %r4, %ctaid.z;
mov.u32 %r5, %tid.x; mov.u32 %r6, %tid.y; mov.u32 %r7, %tid.z;
mov.u32 %r8, %nctaid.x; mov.u32 %r9, %nctaid.y; mov.u32 %r10, %ntid.x; mov.u32 %r11, %ntid.z;
mul.wide.u32 %d2, %r1, 16;
add.s64 %d1, %d1, %d2;
mad.lo.u32 %r2, %r3, 10, %r2; mad.lo.u32 %r2, %r4, 100, %r2;
mad.lo.u32 %r5, %r6, 10, %r5; mad.lo.u32 %r5, %r7, 100, %r5;
mad.lo.u32 %r8, %r9, 10, %r8; mad.lo.u32 %r10, %r11, 10, %r10;
st.global.v4.u32 [%d1+16], {%r2, %r5, %r8, %r10};
ret; }`))
	require.NoError(t, err)
	k, _ := m.Kernel("k")
	out := make([]byte, 16+16*6*30)
	r := start(t, k, testMemory{{Base: base, Data: out}}, Launch{Grid: [3]uint32{3, 1, 2}, Block: [3]uint32{3, 2, 5}, Params: params(uint64(base))})
	require.EqualValues(t, 6, r.Blocks())
	for i := range 6 {
		done, err := r.Step(1)
		require.NoError(t, err)
		require.Equal(t, i == 5, done)
	}
	v := valuesOf[uint32](out[16:])
	at := 0
	for bz := range uint32(2) {
		for bx := range uint32(3) {
			for tz := range uint32(5) {
				for ty := range uint32(2) {
					for tx := range uint32(3) {
						require.Equal(t, []uint32{bx + 100*bz, tx + 10*ty + 100*tz, 13, 53}, v[4*at:4*at+4])
						at++
					}
				}
			}
		}
	}
}

func TestStepAllocatesNothing(t *testing.T) {
	for _, name := range []string{"trips", "nested"} {
		k := kernel(t, "diverge.ptx", name)
		in := make([]int32, 512)
		for i := range in {
			in[i] = rand.Int32N(50)
		}
		var a arena
		l := grid(8, 64)
		l.Params = params(a.put(bytesOf(in)), a.put(make([]byte, 4*512)), uint32(512))
		r := start(t, k, a, l)
		require.Zero(t, testing.AllocsPerRun(10, func() {
			r.next, r.ended = 0, 0
			if _, err := r.Step(8); err != nil {
				panic(err)
			}
		}))
	}
}

// TestManyPredicates: predicates have slots of their own, apart from registers.
func TestManyPredicates(t *testing.T) {
	var s strings.Builder
	s.WriteString(".reg .pred %q<200>;\nsetp.lt.u32 %q0, %r1, 5;\n")
	for i := range 199 {
		fmt.Fprintf(&s, "%s.pred %%q%d, %%q%d;\n", []string{"mov", "not"}[i%2], i+1, i)
	}
	s.WriteString("xor.pred %q199, %q199, %q0;\n@%q199 st.global.u32 [%d1], 1;\nret;")
	k := flowKernel(t, s.String())
	require.Less(t, k.slots, 199)
	require.Equal(t, []uint32{1, 1, 1, 1, 1, 1, 1, 1}, runFlow(t, k, 8))
}

// TestLargeFlow: the time to load grows in proportion even where branches
// cross each other.
func TestLargeFlow(t *testing.T) {
	const n = 20000
	var s strings.Builder
	for i := range n {
		fmt.Fprintf(&s, "L%d: @%%p1 bra L%d;\n", i, (i*7919+n/2)%n)
	}
	s.WriteString("ret;")
	flowKernel(t, s.String())
	s.Reset()
	for i := range n {
		fmt.Fprintf(&s, "L%d: @%%p1 bra L%d;\n", i, n-1-i)
	}
	s.WriteString("ret;")
	flowKernel(t, s.String())
}
