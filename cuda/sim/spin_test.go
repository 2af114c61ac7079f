package sim

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

const spinHead = `.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 flag, .param .u64 out)
{
	.reg .pred %p<4>; .reg .b32 %r<16>; .reg .b64 %rd<8>;
	.shared .align 4 .b32 box;
	ld.param.u64 %rd1, [flag];
	ld.param.u64 %rd2, [out];
	mov.u32 %r1, %tid.x;
	mov.u32 %r2, %ctaid.x;
	mov.u32 %r3, %ntid.x;
	mad.lo.u32 %r4, %r2, %r3, %r1;
	mul.wide.u32 %rd3, %r4, 4;
	add.u64 %rd2, %rd2, %rd3;
`

// spinEnd stores %r8 at each thread's place.
const spinEnd = `
	st.global.u32 [%rd2], %r8;
	ret;
}
`

// waits are ways to wait for the word at %rd1 to be what %r8 is then; it is 0 before.
var waits = map[string]string{
	"volatile":  "W: ld.volatile.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"acquire":   "W: ld.acquire.gpu.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"generic":   "W: ld.relaxed.sys.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"nanosleep": "W: nanosleep.u32 100;\nld.volatile.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"backoff": "mov.u32 %r9, 8;\nW: nanosleep.u32 %r9;\nshl.b32 %r9, %r9, 1;\nmin.u32 %r9, %r9, 4096;\n" +
		"ld.volatile.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"counted":   "mov.u32 %r9, 0;\nW: add.u32 %r9, %r9, 1;\nld.volatile.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"atomic":    "W: atom.global.add.u32 %r8, [%rd1], 0;\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"cas":       "W: atom.global.cas.b32 %r8, [%rd1], 77, 78;\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"fence":     "W: membar.gl;\nld.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"plain":     "W: ld.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"one lane":  "setp.ne.u32 %p2, %r1, 0;\n@%p2 bra S;\nW: ld.volatile.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;\nS: bar.sync 0;\nld.volatile.global.u32 %r8, [%rd1];",
	"timer too": "W: mov.u64 %rd4, %globaltimer;\nld.volatile.global.u32 %r8, [%rd1];\nsetp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
	"call": "W: { .param .b64 a; st.param.b64 [a], %rd1; .param .b32 v; call.uni (v), look, (a); ld.param.b32 %r8, [v]; }\n" +
		"setp.eq.u32 %p1, %r8, 0;\n@%p1 bra W;",
}

const lookFunction = `
.func (.param .b32 v) look(.param .b64 a)
{
	.reg .b32 %r<2>; .reg .b64 %rd<2>;
	ld.param.b64 %rd1, [a];
	ld.volatile.u32 %r1, [%rd1];
	st.param.b32 [v], %r1;
	ret;
}
`

func spinText(wait string) string {
	return spinHead[:len(".version 8.0\n.target sm_80\n.address_size 64\n")] + lookFunction +
		spinHead[len(".version 8.0\n.target sm_80\n.address_size 64\n"):] + wait + spinEnd
}

func (r *rig) kernelOf(text string) cuda.Function {
	r.t.Helper()
	m, err := r.LoadModule([]byte(text))
	require.NoError(r.t, err)
	f, err := r.Function(m, "k")
	require.NoError(r.t, err)
	return f
}

func launchSpin(b *cuda.Batch, s cuda.Stream, f cuda.Function, flag, out cuda.DevicePtr, blocks uint32, threads uint16) {
	a := b.Launch(s, f, cuda.Geometry{Grid: [3]uint32{blocks, 1, 1}, Block: [3]uint16{threads, 1, 1}}, 16)
	binary.LittleEndian.PutUint64(a, uint64(flag))
	binary.LittleEndian.PutUint64(a[8:], uint64(out))
}

// TestKernelThatWaitsYields: a kernel waits for a word that another stream's fill, copy
// or kernel, or the host, writes later.
func TestKernelThatWaitsYields(t *testing.T) {
	const blocks, threads = 3, 64
	for name, wait := range waits {
		for _, real := range []bool{false, true} {
			for _, by := range []string{"fill", "copy", "kernel", "host"} {
				if real && by != "host" && by != "fill" {
					continue
				}
				t.Run(fmt.Sprintf("%s/%s/real %v", name, by, real), func(t *testing.T) {
					o := Options{Real: real}
					r := newRig(t, o)
					s, other := r.stream("waiter"), r.stream("setter")
					word := r.pinned("word", 4)
					clear(word.Host)
					flag := word.Device
					if by != "host" {
						flag = r.alloc("flag", 4)
						require.NoError(t, r.Write(flag, make([]byte, 4)))
					}
					out := r.alloc("out", 4*blocks*threads)
					f := r.kernelOf(spinText(wait))
					setter := r.storeKernel()
					r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, flag, out, blocks, threads) })
					require.NoError(t, r.Clock().Sleep(bg, 300*time.Microsecond))
					require.Equal(t, bytes.Repeat([]byte{0xff}, 4), r.read(out, 4), "the kernel did not wait")
					want := uint32(1)
					switch by {
					case "fill":
						r.submit(func(b *cuda.Batch) { b.Fill32(other, flag, 1, 1) })
					case "copy":
						binary.LittleEndian.PutUint32(word.Host, 1)
						r.submit(func(b *cuda.Batch) { b.Copy(other, flag, word.Device, 4) })
					case "kernel":
						r.submit(func(b *cuda.Batch) { store(b, other, setter, flag, 0, 1) })
					case "host":
						want = 5
						atomic.StoreUint32((*uint32)(unsafe.Pointer(&word.Host[0])), want)
					}
					require.NoError(t, r.Sync(bg))
					for i := range blocks * threads {
						require.Equal(t, want, binary.LittleEndian.Uint32(r.read(out+cuda.DevicePtr(4*i), 4)), "thread %d", i)
					}
				})
			}
		}
	}
}

// TestThreadsWaitForEachOther: for a lane of the same warp, for a warp of the same
// block, and for the blocks that begin after.
func TestThreadsWaitForEachOther(t *testing.T) {
	const acquire = "L: atom.global.cas.b32 %r8, [%rd1], 0, 1;\nsetp.ne.u32 %p1, %r8, 0;\n@%p1 bra L;\n"
	for name, c := range map[string]struct {
		text            string
		blocks, threads int
		want            func(thread int) uint32
		flag            uint32
	}{
		// Each lane takes the lock, counts, and lets go.
		"lock": {acquire + "ld.volatile.global.u32 %r9, [%rd1+4];\nadd.u32 %r9, %r9, 1;\nst.volatile.global.u32 [%rd1+4], %r9;\n" +
			"membar.gl;\natom.global.exch.b32 %r10, [%rd1], 0;\nmov.u32 %r8, 7;", 2, 64, func(int) uint32 { return 7 }, 0},
		// Even lanes wait for odd ones, whose turn comes later.
		"lane": {"and.b32 %r9, %r1, 1;\nsetp.ne.u32 %p2, %r9, 0;\n@%p2 bra ODD;\n" + waits["volatile"] + "\nbra.uni E;\n" +
			"ODD: mov.u32 %r8, 3;\nst.volatile.global.u32 [%rd1], %r8;\nE:", 1, 32, func(int) uint32 { return 3 }, 3},
		"warp": {"setp.ge.u32 %p2, %r1, 32;\n@%p2 bra SET;\nmov.u32 %r5, box;\nW: ld.volatile.shared.u32 %r8, [%r5];\nsetp.ne.u32 %p1, %r8, 9;\n@%p1 bra W;\nbra.uni E;\n" +
			"SET: mov.u32 %r8, 9;\nst.volatile.shared.u32 [box], %r8;\nE:", 2, 64, func(int) uint32 { return 9 }, 0},
		// A barrier of the whole grid: all blocks are resident.
		"grid": {"setp.ne.u32 %p2, %r1, 0;\n@%p2 bra S;\natom.add.release.gpu.global.u32 %r8, [%rd1], 1;\nW: ld.acquire.gpu.global.u32 %r8, [%rd1];\n" +
			"setp.lt.u32 %p1, %r8, 200;\n@%p1 bra W;\nS: bar.sync 0;\nld.volatile.global.u32 %r8, [%rd1];", 200, 64, func(int) uint32 { return 200 }, 200},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, Options{})
			s, flag, out := r.stream("s"), r.alloc("flag", 8), r.alloc("out", uint64(4*c.blocks*c.threads))
			require.NoError(t, r.Write(flag, make([]byte, 8)))
			f := r.kernelOf(spinText(c.text))
			r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, flag, out, uint32(c.blocks), uint16(c.threads)) })
			require.NoError(t, r.Sync(bg))
			for i := range c.blocks * c.threads {
				require.Equal(t, c.want(i), binary.LittleEndian.Uint32(r.read(out+cuda.DevicePtr(4*i), 4)), "thread %d", i)
			}
			require.Equal(t, c.flag, binary.LittleEndian.Uint32(r.read(flag, 4)))
			if name == "lock" {
				require.EqualValues(t, c.blocks*c.threads, binary.LittleEndian.Uint32(r.read(flag+4, 4)), "the lock did not exclude")
			}
		})
	}
}

// TestKernelThatNeverEnds: it is ended with an error that says which, and where.
func TestKernelThatNeverEnds(t *testing.T) {
	never := map[string]string{
		"loop":         "W: add.u32 %r8, %r8, 1;\nbra.uni W;",
		"sleeps":       "W: nanosleep.u32 1000000;\nbra.uni W;",
		"another flag": "W: ld.volatile.global.u32 %r8, [%rd1];\nsetp.ne.u32 %p1, %r8, 99;\n@%p1 bra W;",
	}
	for name, w := range waits {
		never[name] = w
	}
	for name, wait := range never {
		for _, real := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/real %v", name, real), func(t *testing.T) {
				c := DefaultCosts()
				c.KernelTime = 2 * time.Millisecond
				r := newRig(t, Options{Costs: &c, Real: real})
				s, flag, out := r.stream("s"), r.alloc("flag", 4), r.alloc("out", 4096)
				require.NoError(t, r.Write(flag, make([]byte, 4)))
				f := r.kernelOf(spinText(wait))
				r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, flag, out, 2, 64) })
				err := r.Sync(bg)
				require.ErrorIs(t, err, cuda.ErrLaunchTimeout)
				var trap *ptx.Trap
				require.ErrorAs(t, err, &trap)
				require.ErrorIs(t, trap, ptx.ErrStepLimit)
				require.Equal(t, "k", trap.Kernel)
				require.Greater(t, trap.Line, 10)
				require.Less(t, trap.Block[0], uint32(2))
			})
		}
	}
}

// TestWaitingKernelHoldsNobodyUp: work of other streams goes on at its own time while a
// kernel waits, and the waiting costs few events.
func TestWaitingKernelHoldsNobodyUp(t *testing.T) {
	r := newRig(t, Options{})
	s, other := r.stream("waiter"), r.stream("other")
	flag, out, p := r.alloc("flag", 4), r.alloc("out", 4*64), r.alloc("p", 1<<20)
	require.NoError(t, r.Write(flag, make([]byte, 4)))
	alone := r.took(func(b *cuda.Batch) { b.Fill32(other, p, 0, 1<<18) })
	f := r.kernelOf(spinText(waits["nanosleep"]))
	r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, flag, out, 1, 64) })
	e := r.event()
	begin := r.Clock().Now()
	r.submit(func(b *cuda.Batch) {
		b.Fill32(other, p, 0, 1<<18)
		b.Record(other, e)
	})
	require.NoError(t, r.SyncEvent(bg, e))
	require.InDelta(t, float64(alone), float64(r.Clock().Now()-begin), float64(10*time.Microsecond))
	require.NoError(t, r.Clock().Sleep(bg, 50*time.Second))
	r.submit(func(b *cuda.Batch) { b.Fill32(other, flag, 1, 1) })
	require.NoError(t, r.Sync(bg))
}

func TestPrintf(t *testing.T) {
	const text = `.version 8.0
.target sm_70
.address_size 64
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.global .align 1 .b8 fmt[10] = {116, 32, 37, 100, 58, 32, 37, 115, 10, 0};
.global .align 1 .b8 word[3] = {104, 105, 0};
.visible .entry k(.param .u64 flag, .param .u64 out)
{
	.local .align 8 .b8 args[16];
	.reg .b32 %r<4>; .reg .b64 %rd<8>;
	mov.u32 %r1, %tid.x;
	mov.u64 %rd1, args;
	st.local.u32 [%rd1], %r1;
	mov.u64 %rd2, word;
	cvta.global.u64 %rd2, %rd2;
	st.local.u64 [%rd1+8], %rd2;
	cvta.local.u64 %rd1, %rd1;
	mov.u64 %rd3, fmt;
	{
		.param .b64 f; st.param.b64 [f], %rd3;
		.param .b64 a; st.param.b64 [a], %rd1;
		.param .b32 r;
		call.uni (r), vprintf, (f, a);
		ld.param.b32 %r2, [r];
	}
	ld.param.u64 %rd4, [out];
	st.global.u32 [%rd4], %r2;
	ret;
}
`
	var printed bytes.Buffer
	r := newRig(t, Options{Printf: &printed})
	s, out := r.stream("s"), r.alloc("out", 4)
	f := r.kernelOf(text)
	r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, out, out, 1, 3) })
	require.NoError(t, r.Sync(bg))
	require.Equal(t, "t 0: hi\nt 1: hi\nt 2: hi\n", printed.String())
	require.EqualValues(t, 2, binary.LittleEndian.Uint32(r.read(out, 4)), "vprintf returns how many arguments there were")
}

// TestModuleVariables: they keep what a launch leaves in them, each load has its own,
// and unloading gives their memory back after the work.
func TestModuleVariables(t *testing.T) {
	const text = `.version 8.0
.target sm_70
.address_size 64
.const .align 4 .u32 step = 5;
.global .align 4 .u32 count = 100;
.visible .entry k(.param .u64 flag, .param .u64 out)
{
	.reg .b32 %r<4>; .reg .b64 %rd<4>;
	ld.const.u32 %r1, [step];
	atom.global.add.u32 %r2, [count], %r1;
	ld.param.u64 %rd1, [out];
	st.global.u32 [%rd1], %r2;
	ret;
}
`
	r := newRig(t, Options{})
	used := r.mem.used
	s, out := r.stream("s"), r.alloc("out", 4)
	var modules []cuda.Module
	for range 2 {
		m, err := r.LoadModule([]byte(text))
		require.NoError(t, err)
		modules = append(modules, m)
		f, err := r.Function(m, "k")
		require.NoError(t, err)
		for i := range uint32(3) {
			r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, out, out, 1, 1) })
			require.NoError(t, r.Sync(bg))
			require.Equal(t, 100+5*i, binary.LittleEndian.Uint32(r.read(out, 4)))
		}
		r.submit(func(b *cuda.Batch) { launchSpin(b, s, f, out, out, 1, 1) })
		require.NoError(t, r.UnloadModule(m), "while its kernel runs")
	}
	require.NoError(t, r.Sync(bg))
	require.Error(t, r.UnloadModule(modules[0]))
	r.world.Enter(0)
	r.dropVariables()
	r.world.Exit()
	require.NoError(t, r.Free(out))
	require.Equal(t, used, r.mem.used)
}
