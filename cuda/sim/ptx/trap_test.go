package ptx

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

const trapHead = `.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 p, .param .align 4 .b8 q[12]) {
.reg .pred %p<8>; .reg .b16 %h<8>; .reg .b32 %r<16>; .reg .b64 %d<8>;
.shared .align 16 .b8 box[64];
.local .align 16 .b8 own[32];
ld.param.u64 %d1, [p];
mov.u32 %r1, %tid.x; mov.u32 %r2, %tid.y; mad.lo.u32 %r1, %r2, 10, %r1; mov.u32 %r2, %tid.z; mad.lo.u32 %r1, %r2, 20, %r1;
mul.wide.u32 %d2, %r1, 4;
add.s64 %d3, %d1, %d2;
`

// access runs one instruction, on line 12, in two blocks of 40 threads; p is
// the base of a region of 256 bytes, and a read-only one of 64 lies 4096 above.
func access(t *testing.T, text string) (data []byte, err error) {
	t.Helper()
	m, err := Parse("access", []byte(trapHead+text+"\nret;\n}"))
	require.NoError(t, err)
	k, _ := m.Kernel("k")
	data = dirty(256)
	r := start(t, k, testMemory{{Base: base, Data: data}, {Base: base + 4096, Data: make([]byte, 64), ReadOnly: true}},
		Launch{Grid: [3]uint32{1, 2, 1}, Block: [3]uint32{10, 2, 2}, Params: params(uint64(base), make([]byte, 12))})
	_, err = r.Step(2)
	if err == nil {
		return data, nil
	}
	var trap *Trap
	require.ErrorAs(t, err, &trap)
	require.Equal(t, 12, trap.Line)
	require.Equal(t, "k", trap.Kernel)
	return data, err
}

func TestAccessTraps(t *testing.T) {
	for text, c := range map[string]struct {
		kind   error
		addr   uint64
		thread [3]uint32
		space  string
		detail string
	}{
		"st.global.u32 [%d3+136], %r1;":                {ErrOutOfBounds, base + 256, [3]uint32{0, 1, 1}, "global", "no memory there"},
		"st.global.u32 [%d3+-4], %r1;":                 {ErrOutOfBounds, base - 4, [3]uint32{}, "global", "no memory there"},
		"ld.global.u32 %r2, [%d1+256];":                {ErrOutOfBounds, base + 256, [3]uint32{}, "global", "no memory there"},
		"mov.u64 %d4, 0; ld.u32 %r2, [%d4];":           {ErrOutOfBounds, 0, [3]uint32{}, "global", "no memory there"},
		"st.global.u32 [%d3+2], %r1;":                  {ErrMisaligned, base + 2, [3]uint32{}, "global", ""},
		"ld.global.v2.u32 {%r2, %r3}, [%d1+4];":        {ErrMisaligned, base + 4, [3]uint32{}, "global", ""},
		"ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%d3];":   {ErrMisaligned, base + 4, [3]uint32{1}, "global", ""},
		"st.global.v2.u64 [%d1+8], {%d1, %d1};":        {ErrMisaligned, base + 8, [3]uint32{}, "global", ""},
		"st.global.u8 [%d1+4096], 0;":                  {ErrReadOnly, base + 4096, [3]uint32{}, "global", ""},
		"st.u64 [%d1+4096], 0;":                        {ErrReadOnly, base + 4096, [3]uint32{}, "global", ""},
		"red.global.add.u32 [%d1+4100], 1;":            {ErrReadOnly, base + 4100, [3]uint32{}, "global", ""},
		"atom.global.add.u64 %d4, [%d3], 1;":           {ErrMisaligned, base + 4, [3]uint32{1}, "global", ""},
		"atom.add.u32 %r2, [%d1+256], 1;":              {ErrOutOfBounds, base + 256, [3]uint32{}, "global", "no memory there"},
		"st.shared.u32 [box+64], %r1;":                 {ErrOutOfBounds, 64, [3]uint32{}, "shared", "the space has 64 bytes"},
		"ld.shared.u32 %r2, [%d2];":                    {ErrOutOfBounds, 64, [3]uint32{6, 1, 0}, "shared", "the space has 64 bytes"},
		"ld.shared.v2.u32 {%r2, %r3}, [box+4];":        {ErrMisaligned, 4, [3]uint32{}, "shared", ""},
		"st.local.u32 [own+-4], %r1;":                  {ErrOutOfBounds, 1<<64 - 4, [3]uint32{}, "local", "the space has 32 bytes"},
		"ld.local.u8 %h1, [%d2];":                      {ErrOutOfBounds, 32, [3]uint32{8}, "local", "the space has 32 bytes"},
		"ld.param.u32 %r2, [%d2];":                     {ErrOutOfBounds, 20, [3]uint32{5}, "param", "the space has 20 bytes"},
		"ld.param.u32 %r2, [q+12];":                    {ErrOutOfBounds, 20, [3]uint32{}, "param", "the space has 20 bytes"},
		"ld.param.u32 %r2, [q+2];":                     {ErrMisaligned, 10, [3]uint32{}, "param", ""},
		"cvta.shared.u64 %d4, box; st.u8 [%d4+64], 0;": {ErrOutOfBounds, 64, [3]uint32{}, "shared", "the space has 64 bytes"},
		"cvta.param.u64 %d4, q; st.u8 [%d4], 0;":       {ErrReadOnly, 8, [3]uint32{}, "param", ""},
	} {
		t.Run(text, func(t *testing.T) {
			_, err := access(t, text)
			require.ErrorIs(t, err, c.kind)
			var trap *Trap
			require.ErrorAs(t, err, &trap)
			for _, other := range []error{ErrOutOfBounds, ErrMisaligned, ErrReadOnly, ErrDivergentBarrier, ErrStepLimit} {
				require.Equal(t, other == c.kind, errors.Is(trap, other))
			}
			require.Equal(t, c.addr, trap.Addr)
			require.Equal(t, c.thread, trap.Thread)
			require.Equal(t, [3]uint32{}, trap.Block)
			require.Equal(t, c.space, trap.Space)
			require.Equal(t, c.detail, trap.Detail)
		})
	}
}

func TestAccessesThatFit(t *testing.T) {
	for _, text := range []string{
		"ld.global.u32 %r2, [%d1+252];", "st.global.v2.u64 [%d1+240], {%d1, %d2};", "st.global.u32 [%d3+96], %r1;",
		"ld.global.v4.u32 {%r2,%r3,%r4,%r5}, [%d1+4144];", "ld.shared.u8 %h1, [box+63];", "ld.local.v4.u32 {%r2,%r3,%r4,%r5}, [own+16];",
		"ld.param.u32 %r2, [q+8];", "mov.u64 %d4, q; ld.param.u32 %r2, [%d4+8];", "ld.param.v2.u32 {%r2, %r3}, [p];",
		"cvta.param.u64 %d4, q; ld.u32 %r2, [%d4];", "ld.global.u8 %r2, [%d1+255];", "mov.u64 %d4, 0; setp.eq.u32 %p1, %r1, %r1; @%p1 bra SKIP; st.u8 [%d4], 0; SKIP:",
		"prefetch.global.L2 [%d1]; membar.gl; fence.acq_rel.gpu; nanosleep.u32 10;",
		"ld.volatile.global.u32 %r2, [%d1]; ld.relaxed.gpu.global.u32 %r2, [%d1]; ld.global.ca.nc.u32 %r2, [%d1]; st.global.cs.u32 [%d1], 0; st.release.sys.u32 [%d1], 0;",
		"atom.global.gpu.add.u32 %r2, [%d1], 1; atom.acq_rel.sys.global.cas.b32 %r2, [%d1], 0, 1; red.shared.max.s32 [box], 1;",
		"ld.global.L1::no_allocate.L2::128B.u32 %r2, [%d1]; ld.local.u32 %r2, [28];",
	} {
		_, err := access(t, text)
		require.NoError(t, err, text)
	}
}

// TestTrapAtRegionEnd: an access that straddles the end says where it is.
func TestTrapAtRegionEnd(t *testing.T) {
	m, err := Parse("end", []byte(trapHead+"st.global.u64 [%d1+8], 0;\nret;\n}"))
	require.NoError(t, err)
	k, _ := m.Kernel("k")
	for _, size := range []int{8, 9, 15, 16} {
		data := dirty(size)
		// Another region follows at once: an access may not run over into it.
		r := start(t, k, testMemory{{Base: base, Data: data}, {Base: base + uint64(size), Data: dirty(64)}},
			Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{1, 1, 1}, Params: params(uint64(base), make([]byte, 12))})
		_, err := r.Step(1)
		if size == 8 || size == 16 {
			require.NoError(t, err)
			continue
		}
		require.ErrorIs(t, err, ErrOutOfBounds)
		require.Equal(t, dirty(size), data)
		require.ErrorContains(t, err, "the region ends at 0x7f00000000")
	}
}

// TestWholeWarps: what a full warp does to consecutive addresses at once obeys
// the same rules.
func TestWholeWarps(t *testing.T) {
	run := func(text string, mem testMemory) error {
		m, err := Parse("whole", []byte(trapHead+text+"\nret;\n}"))
		require.NoError(t, err)
		k, _ := m.Kernel("k")
		r := start(t, k, mem, Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: params(uint64(base), make([]byte, 12))})
		_, err = r.Step(1)
		return err
	}
	data := dirty(256)
	err := run("st.global.u32 [%d3], %r1;", testMemory{{Base: base, Data: data, ReadOnly: true}})
	require.ErrorIs(t, err, ErrReadOnly)
	require.Equal(t, dirty(256), data)

	require.NoError(t, run("add.s64 %d3, %d3, %d2; st.global.v2.u32 [%d3], {0, 7};", testMemory{{Base: base, Data: data}}))
	for i, v := range valuesOf[uint32](data) {
		require.EqualValues(t, 7*(i%2), v)
	}

	// Half of the warp lies in one region, half in the next.
	low, high := dirty(64), dirty(64)
	require.NoError(t, run("st.global.u32 [%d3], %r1;", testMemory{{Base: base, Data: low}, {Base: base + 64, Data: high}}))
	for i, v := range append(valuesOf[uint32](low), valuesOf[uint32](high)...) {
		require.EqualValues(t, i, v)
	}

	short := dirty(124)
	err = run("st.global.u32 [%d3], %r1;", testMemory{{Base: base, Data: short}})
	require.ErrorIs(t, err, ErrOutOfBounds)
	require.ErrorContains(t, err, "thread (31,0,0)")
}

func TestTrapMessage(t *testing.T) {
	m, err := Parse("message", []byte(trapHead+"mov.u32 %r2, %ctaid.y; setp.eq.u32 %p1, %r2, 1; @%p1 st.global.v2.u32 [%d1+256], {%r1, %r1};\nret;\n}"))
	require.NoError(t, err)
	k, _ := m.Kernel("k")
	r := start(t, k, testMemory{{Base: base, Data: dirty(256)}},
		Launch{Grid: [3]uint32{1, 2, 1}, Block: [3]uint32{3, 1, 1}, Params: params(uint64(base), make([]byte, 12))})
	done, err := r.Step(1)
	require.NoError(t, err)
	require.False(t, done)
	_, err = r.Step(1)
	require.EqualError(t, err, "ptx: kernel k, line 12 (st.global.v2.u32), block (0,1,0), thread (0,0,0): "+
		"access out of bounds: 8 bytes at global address 0x7f0000000100: no memory there")
}

func TestTrapInstruction(t *testing.T) {
	_, err := access(t, "setp.gt.u32 %p1, %r1, 34; @%p1 trap;")
	require.ErrorIs(t, err, ErrTrapped)
	require.ErrorContains(t, err, "thread (5,1,1)")
}

// TestStoresBeforeTrap: lanes before the one that traps have stored.
func TestStoresBeforeTrap(t *testing.T) {
	data, err := access(t, "st.global.u32 [%d3+156], %r1;")
	require.ErrorIs(t, err, ErrOutOfBounds)
	require.ErrorContains(t, err, "thread (5,0,1)")
	require.Equal(t, []uint32{0, 1, 24}, []uint32{valuesOf[uint32](data)[39], valuesOf[uint32](data)[40], valuesOf[uint32](data)[63]})
}

// TestRegionsAreForgotten: what a Step may access is asked for anew.
func TestRegionsAreForgotten(t *testing.T) {
	k := kernel(t, "zero.ptx", "zero_flat")
	mem := testMemory{{Base: base, Data: dirty(4096)}}
	l := grid(4, 32)
	l.Params = params(uint64(base), uint64(128))
	r := start(t, k, mem, l)
	_, err := r.Step(1)
	require.NoError(t, err)
	mem[0].Data = mem[0].Data[:512]
	_, err = r.Step(1)
	require.ErrorIs(t, err, ErrOutOfBounds)
}

func TestStartRefuses(t *testing.T) {
	m, err := Parse("limits", []byte(`.version 7.8
.target sm_70
.address_size 64
.extern .shared .align 16 .b8 dyn[];
.visible .entry a(.param .u64 p, .param .u32 q) .maxntid 64, 2, 1 { .shared .b8 s[40000]; .reg .b64 %d<3>; mov.u64 %d1, s; mov.u64 %d2, dyn; ret; }
.visible .entry b() .reqntid 32 { ret; }
`))
	require.NoError(t, err)
	a, _ := m.Kernel("a")
	b, _ := m.Kernel("b")
	require.Equal(t, 128, a.MaxThreads())
	require.Equal(t, 40000, a.StaticShared())
	require.Equal(t, 12, a.ParamBytes())
	ok := Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Params: make([]byte, 12)}
	with := func(change func(l *Launch)) Launch {
		l := ok
		change(&l)
		return l
	}
	for name, l := range map[string]Launch{
		"grid of 0":          with(func(l *Launch) { l.Grid[1] = 0 }),
		"grid too large":     with(func(l *Launch) { l.Grid[2] = 65536 }),
		"grid x too large":   with(func(l *Launch) { l.Grid[0] = 1 << 31 }),
		"block of 0":         with(func(l *Launch) { l.Block[0] = 0 }),
		"block too large":    with(func(l *Launch) { l.Block = [3]uint32{32, 32, 2} }),
		"block z too large":  with(func(l *Launch) { l.Block = [3]uint32{1, 1, 65} }),
		"block wraps around": with(func(l *Launch) { l.Block = [3]uint32{1 << 31, 2, 1} }),
		"above maxntid":      with(func(l *Launch) { l.Block[0] = 129 }),
		"no parameters":      with(func(l *Launch) { l.Params = nil }),
		"a byte too few":     with(func(l *Launch) { l.Params = make([]byte, 11) }),
		"too many":           with(func(l *Launch) { l.Params = make([]byte, 17) }),
		"shared memory":      with(func(l *Launch) { l.DynamicShared = 10000 }),
		"much shared memory": with(func(l *Launch) { l.DynamicShared = 1<<32 - 1 }),
	} {
		r, err := a.Start(nil, l)
		require.ErrorIs(t, err, ErrLaunch, name)
		require.Nil(t, r)
		require.ErrorContains(t, err, "kernel a")
	}
	_, err = a.Start(nil, with(func(l *Launch) { l.Params = make([]byte, 16); l.DynamicShared = 9152; l.Block[0] = 128 }))
	require.NoError(t, err)
	_, err = b.Start(nil, Launch{Grid: ok.Grid, Block: [3]uint32{64, 1, 1}})
	require.ErrorIs(t, err, ErrLaunch)
	_, err = b.Start(nil, Launch{Grid: ok.Grid, Block: ok.Block})
	require.NoError(t, err)
}
