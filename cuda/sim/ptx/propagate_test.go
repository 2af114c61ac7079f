package ptx

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPropagate: copies of fixed slots go, and nothing else does.
func TestPropagate(t *testing.T) {
	for name, c := range map[string]struct {
		body string
		movs int
		want uint32
	}{
		"constant":        {"mov.u32 %r2, 7; mov.u32 %r3, %r2; st.global.u32 [%d1], %r3; ret;", 0, 7},
		"guarded":         {"mov.u32 %r2, 7; setp.eq.u32 %p1, %r1, 99; @%p1 mov.u32 %r2, 8; st.global.u32 [%d1], %r2; ret;", 2, 7},
		"defined twice":   {"mov.u32 %r2, 7; st.global.u32 [%d1], %r2; mov.u32 %r2, 9; st.global.u32 [%d1], %r2; ret;", 2, 9},
		"copy of a sum":   {"add.u32 %r2, %r1, 3; mov.u32 %r3, %r2; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r3; ret;", 1, 3},
		"loaded later":    {"mov.u32 %r2, 7; st.global.u32 [%d1], %r2; ld.global.u32 %r2, [%d1]; add.u32 %r2, %r2, 1; st.global.u32 [%d1], %r2; ret;", 1, 8},
		"vector":          {"mov.u32 %r2, 7; mov.b64 %d3, {%r2, %r2}; mov.b64 {%r3, %r4}, %d3; st.global.u32 [%d1], %r4; ret;", 0, 7},
		"shuffle's mask":  {"mov.u32 %r2, -1; mov.u32 %r3, 0; shfl.sync.idx.b32 %r4, %r1, %r3, %r3, %r2; st.global.u32 [%d1], %r4; ret;", 0, 0},
		"loop":            {"mov.u32 %r2, 0; L: mov.u32 %r3, 5; add.u32 %r2, %r2, %r3; setp.lt.u32 %p1, %r2, 20; @%p1 bra L; st.global.u32 [%d1], %r2; ret;", 1, 20},
		"atomic's result": {"mov.u32 %r2, 5; atom.global.add.u32 %r2, [%d1], 2; st.global.u32 [%d1], %r2; ret;", 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := flowKernel(t, c.body)
			movs := -1 // that of the address, in the head
			for _, n := range k.code {
				if n.op == opMov {
					movs++
				}
			}
			require.Equal(t, c.movs, movs)
			require.Equal(t, c.want, runFlow(t, k, 1)[0])
		})
	}
}
