package ptx

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// A kernel of known work: each thread loads a word, half of the lanes branch, and all
// store 16 bytes at a stride.
const counted = `
.version 7.8
.target sm_70
.address_size 64
.visible .entry k(.param .u64 k_p, .param .u32 k_stride)
{
	.reg .pred %p<2>;
	.reg .b32 %r<5>;
	.reg .b64 %rd<6>;
	ld.param.u64 %rd1, [k_p];
	ld.param.u32 %r1, [k_stride];
	mov.u32 %r2, %tid.x;
	mul.wide.u32 %rd2, %r2, 4;
	add.s64 %rd3, %rd1, %rd2;
	ld.global.u32 %r3, [%rd3];
	setp.lt.u32 %p1, %r2, 16;
	@%p1 bra $skip;
	add.s32 %r3, %r3, 1;
$skip:
	mul.wide.u32 %rd4, %r2, %r1;
	add.s64 %rd5, %rd1, %rd4;
	st.global.v4.u32 [%rd5], {%r3, %r3, %r3, %r3};
	atom.global.add.u32 %r4, [%rd1], 1;
	ret;
}
`

type flatMemory []byte

func (m flatMemory) Region(uint64) (Region, bool) { return Region{Base: 4096, Data: m}, true }

func TestCount(t *testing.T) {
	m, err := Parse("k", []byte(counted))
	require.NoError(t, err)
	k, ok := m.Kernel("k")
	require.True(t, ok)
	for _, c := range []struct {
		name    string
		base    uint64
		stride  uint32
		threads uint32
		want    Count
	}{
		// mul, add, ld, setp, bra, (add), mul, add, st, atom, ret: 11.
		{"coalesced", 4096, 16, 32, Count{11, 11, 2, 2, 64, 4 + 1, 16 + 1}},
		{"off by half a sector", 4096 + 16, 16, 32, Count{11, 11, 2, 2, 64, 5 + 1, 17 + 1}},
		{"apart", 4096, 64, 32, Count{11, 11, 2, 2, 64, 4 + 1, 32 + 1}},
		{"two warps", 4096, 16, 64, Count{22, 11, 4, 4, 128, 8 + 2, 32 + 2}},
		{"part of a warp", 4096, 16, 24, Count{11, 11, 2, 2, 48, 3 + 1, 12 + 1}},
	} {
		mem := make(flatMemory, 1<<13)
		params := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint64(nil, c.base), c.stride)
		r, err := k.Start(mem, Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{c.threads, 1, 1}, Params: params})
		require.NoError(t, err)
		_, err = r.Step(1)
		require.NoError(t, err)
		require.Equal(t, c.want, r.Count(), c.name)
		sum := r.Count()
		sum.Add(c.want)
		sum.Sub(r.Count())
		require.Equal(t, c.want, sum)
	}
}
