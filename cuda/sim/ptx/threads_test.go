package ptx

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRedux(t *testing.T) {
	for text, want := range map[string]uint32{
		"redux.sync.add.s32 %r3, %r2, -1;":                                                32*31/2*3 - 32*20 + 0,
		"redux.sync.min.s32 %r3, %r2, -1;":                                                ^uint32(19),
		"redux.sync.max.s32 %r3, %r2, -1;":                                                73,
		"redux.sync.min.u32 %r3, %r2, -1;":                                                1,
		"redux.sync.max.u32 %r3, %r2, -1;":                                                ^uint32(1),
		"redux.sync.or.b32 %r3, %r1, -1;":                                                 31,
		"redux.sync.and.b32 %r3, %r1, -1;":                                                0,
		"redux.sync.xor.b32 %r3, %r1, -1;":                                                0,
		"elect.sync %r3|%p1, 0xfffffff0; @!%p1 sub.u32 %r3, %r3, 4; @%p1 mov.u32 %r3, 0;": 0,
	} {
		k := flowKernel(t, "mad.lo.s32 %r2, %r1, 3, -20; "+text+" st.global.u32 [%d1], %r3; ret;")
		for i, v := range runFlow(t, k, 32) {
			require.Equal(t, want, v, "%s lane %d", text, i)
		}
	}
	// Lanes of two groups reduce apart.
	k := flowKernel(t, `
and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
@%p1 bra EVEN;
redux.sync.add.u32 %r3, %r1, 0xaaaaaaaa;
bra.uni END;
EVEN: redux.sync.max.u32 %r3, %r1, 0x55555555;
END: st.global.u32 [%d1], %r3; ret;`)
	for i, v := range runFlow(t, k, 32) {
		require.Equal(t, []uint32{30, 256}[i&1], v)
	}
}

// TestArrive: a producer goes on where the consumer waits.
func TestArrive(t *testing.T) {
	k := flowKernel(t, `
.shared .align 4 .b8 box[128];
.reg .b32 %q<4>;
shl.b32 %q1, %r1, 2; and.b32 %q1, %q1, 127;
mov.u32 %q2, box; add.u32 %q1, %q1, %q2;
setp.lt.u32 %p2, %r1, 32;
@%p2 bra CONSUME;
st.shared.u32 [%q1], %r1;
bar.arrive 3, 64;
st.global.u32 [%d1], 5;
ret;
CONSUME: bar.sync 3, 64;
ld.shared.u32 %r2, [%q1];
st.global.u32 [%d1], %r2;
ret;`)
	for i, v := range runFlow(t, k, 64) {
		want := uint32(5)
		if i < 32 {
			want = uint32(i + 32)
		}
		require.Equal(t, want, v)
	}
}

// TestClusterOfOne: a thread block is a cluster by itself.
func TestClusterOfOne(t *testing.T) {
	k := flowKernel(t, `
.shared .align 4 .b8 box[8];
mov.u32 %r2, %cluster_ctarank; mov.u32 %r3, %cluster_nctaid.x; mov.u32 %r4, %clusterid.x; add.u32 %r2, %r2, %r4;
setp.ne.u32 %p1, %r1, 63; @%p1 bra S; st.shared.u32 [box], 40;
S: barrier.cluster.arrive.release.aligned;
barrier.cluster.wait.acquire.aligned;
ld.shared.u32 %r5, [box];
mad.lo.u32 %r2, %r3, %r5, %r2;
st.global.u32 [%d1], %r2; ret;`)
	for _, v := range runFlow(t, k, 64) {
		require.EqualValues(t, 40, v)
	}
}

// TestAsyncCopies: they are there when they have been waited for, and not before.
func TestAsyncCopies(t *testing.T) {
	k := flowKernel(t, `
.shared .align 16 .b8 box[1024];
.reg .b64 %q<4>;
mov.u32 %r2, box;
shl.b32 %r3, %r1, 4; add.u32 %r2, %r2, %r3;
st.shared.v4.u32 [%r2], {1, 1, 1, 1};
ld.param.u64 %q1, [out];
cvt.u64.u32 %q2, %r3; add.u64 %q1, %q1, %q2;
cp.async.ca.shared.global [%r2], [%q1+1024], 8;
cp.async.commit_group;
cp.async.ca.shared.global.L2::128B [%r2+8], [%q1+1032], 8, 4;
cp.async.commit_group;
ld.shared.u32 %r4, [%r2];
cp.async.wait_group 1;
ld.shared.v4.u32 {%r5, %r6, %r7, %r8}, [%r2];
cp.async.wait_all;
ld.shared.v2.u32 {%r9, %r10}, [%r2+8];
mad.lo.u32 %r4, %r4, 10, %r5; mad.lo.u32 %r4, %r4, 10, %r6; mad.lo.u32 %r4, %r4, 10, %r7; mad.lo.u32 %r4, %r4, 10, %r8;
mad.lo.u32 %r4, %r4, 10, %r9; mad.lo.u32 %r4, %r4, 10, %r10;
st.global.u32 [%d1], %r4;
ret;`)
	data := make([]byte, 2048)
	for i := range 64 {
		copy(data[1024+16*i:], params(uint32(2), uint32(3), uint32(4), uint32(9)))
	}
	l := grid(1, 64)
	l.Params = params(uint64(base))
	runAll(t, k, testMemory{{Base: base, Data: data}}, l)
	for i, v := range valuesOf[uint32](data[:256]) {
		require.EqualValues(t, 1231140, v, "thread %d", i)
	}
}

func TestMoreAtomics(t *testing.T) {
	for _, c := range []struct {
		text      string
		old, want []byte
	}{
		{"atom.global.add.noftz.f16 %h1, [%d1], %h2;", params(uint32(0x00013c00)), params(uint32(0x00014000))},
		{"atom.add.noftz.global.gpu.relaxed.bf16x2 %r2, [%d1], %r3;", params(uint32(0x3f803f80)), params(uint32(0x40003f80))},
		{"atom.global.cas.b16 %h1, [%d1], 7, 9;", params(uint32(0x10007)), params(uint32(0x10009))},
		{"atom.cas.acq_rel.cta.b16 %h1, [%d1], 7, 9;", params(uint32(0x10008)), params(uint32(0x10008))},
		{"red.relaxed.gpu.global.add.v2.f32 [%d1], {%f1, %f1};", params(float32(1), float32(2)), params(float32(2), float32(3))},
		{"red.global.add.noftz.v2.f16x2 [%d1], {%r4, %r4};", params(uint64(0)), params(uint64(0x3c0040003c004000))},
		{"atom.global.v2.max.noftz.bf16 {%h1, _}, [%d1], {%h3, %h3};", params(uint32(0x40003f00)), params(uint32(0x40003f80))},
		{"red.shared::cta.add.u32 [box], 3; ld.shared.u32 %r2, [box]; st.global.u32 [%d1], %r2;", params(uint32(0)), params(uint32(0xcbcbcbce))},
		{"atom.global.add.f64 %d3, [%d1], 0d3FF0000000000000;", params(1.5), params(2.5)},
		{"atom.global.sys.release.add.f32 %f2, [%d1], %f1;", params(float32(1.5)), params(float32(2.5))},
		{"isspacep.global %p1, %d1; @!%p1 trap; mov.u64 %d3, box; cvta.shared.u64 %d3, %d3; isspacep.shared %p1, %d3; @!%p1 trap; isspacep.local %p1, %d3; @%p1 trap;",
			params(uint32(4)), params(uint32(4))},
	} {
		k := flowKernel(t, `.shared .align 4 .b8 box[16]; .reg .b16 %h<4>; .reg .f32 %f<3>; mov.b16 %h2, 0x3c00; mov.b16 %h3, 0x3f80; mov.b32 %r3, 0x3f800000;
mov.b32 %r4, 0x3c004000; mov.f32 %f1, 0f3F800000;`+"\n"+c.text+" ret;")
		data := bytes.Clone(c.old)
		l := grid(1, 1)
		l.Params = params(uint64(base))
		runAll(t, k, testMemory{{Base: base, Data: data}}, l)
		require.Equal(t, c.want, data, c.text)
	}
}

// TestInitialValues: the forms that a variable's content may have.
func TestInitialValues(t *testing.T) {
	m, err := Parse("init", []byte(`.version 8.0
.target sm_70
.address_size 64
.const .align 8 .f64 half = 0.5;
.global .u8 bytes[] = {1, 2, 255};
.global .align 4 .s32 rows[2][3] = {{-1, 2}, {3}};
.global .v2 .f32 vec = {1.0, 0f40000000};
.global .u64 to = rows + 4;
.global .u64 more[2] = {generic(bytes)+1, to};
.global .align 8 .u8 parts[8] = {0xff(rows), 0xff00(rows), 0xff0000(rows), 0xff000000(rows), 0xff00000000(rows), 0xff0000000000(rows), 0xff000000000000(rows), 0xff00000000000000(rows)};
.visible .global .align 16 .b8 zeros[5];
.visible .entry k() { ret; }
`))
	require.NoError(t, err)
	const at = 0x123456789000
	image := m.Image(at)
	require.EqualValues(t, len(image), m.ImageSize())
	find := func(name string) (uint64, []byte) {
		v := m.tree.global.vars[name]
		return at + v.image, image[v.image : v.image+v.size]
	}
	rowsAt, rows := find("rows")
	bytesAt, b := find("bytes")
	toAt, to := find("to")
	_, half := find("half")
	_, vec := find("vec")
	_, more := find("more")
	_, parts := find("parts")
	zerosAt, zeros := find("zeros")
	require.Equal(t, params(0.5), half)
	require.Equal(t, []byte{1, 2, 255}, b)
	require.Equal(t, params(int32(-1), int32(2), int32(0), int32(3), int32(0), int32(0)), rows)
	require.Equal(t, params(float32(1), float32(2)), vec)
	require.Equal(t, params(rowsAt+4), to)
	require.Equal(t, params(bytesAt+1, toAt), more)
	require.Equal(t, params(rowsAt), parts)
	require.Equal(t, make([]byte, 5), zeros)
	require.Zero(t, zerosAt%16)
}
