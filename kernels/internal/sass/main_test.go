package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// text is the form of nvdisasm's output, cut down: a loop of two stores in one of a
// load, and behind it a shorter one.
const text = `
	.section	.text.k,"ax",@progbits
.text.k:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/               @P1 EXIT ;
.L_x_1:
        /*0020*/                   LDG.E.CONSTANT R4, desc[UR6][R2.64] ;
        /*0030*/                   LDG.E.128.CONSTANT R8, desc[UR6][R12.64] ;
        /*0040*/                   LDG.E.64.CONSTANT R6, desc[UR6][R12.64+0x18] ;
        /*0050*/               @P0 BRA ` + "`(.L_x_4)" + ` ;
.L_x_2:
        /*0060*/                   STG.E.EF.128 desc[UR6][R6.64], RZ ;
        /*0070*/              @!P0 STG.E.EF.128 desc[UR6][R6.64+0x200], RZ ;
        /*0080*/                   IADD3 R12, P1, R12, 0x400, RZ ;
        /*0090*/               @P0 BRA ` + "`(.L_x_2)" + ` ;
.L_x_3:
        /*00a0*/                   STG.E.U8 desc[UR6][R6.64], RZ ;
        /*00b0*/               @P0 BRA ` + "`(.L_x_3)" + ` ;
.L_x_4:
        /*00c0*/              @!P1 BRA ` + "`(.L_x_1)" + ` ;
        /*00d0*/                   EXIT ;
.L_x_9:
        /*00e0*/                   BRA ` + "`(.L_x_9)" + `;
.text.flat:
        /*0000*/                   STG.E desc[UR6][R6.64], RZ ;
        /*0010*/                   EXIT ;
`

func TestTable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	var out strings.Builder
	require.NoError(t, run([]string{"sm_90=" + path}, &out))
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	require.Equal(t, []string{"k", "sm_90", "4", "2", "0", "1024", "4.00", "2.00", "3"}, strings.Fields(lines[1]))
	require.Equal(t, []string{"flat", "sm_90", "2", "1", "0", "128", "16.00", "8.00", "0"}, strings.Fields(lines[2]))
}

func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "k")
	require.NoError(t, os.WriteFile(path, []byte("nothing"), 0o644))
	for says, args := range map[string][]string{
		"no files given":       nil,
		`"k": want LABEL=FILE`: {"k"},
		"no such file":         {"x=/no/such/file"},
		"no kernels in it":     {"x=" + path},
	} {
		require.ErrorContains(t, run(args, &strings.Builder{}), says)
	}
	require.NoError(t, os.WriteFile(path, []byte(".text.k:\n        /*0000*/   EXIT ;\n"), 0o644))
	require.ErrorContains(t, run([]string{"x=" + path}, &strings.Builder{}), "k: no loop that loads or stores")
}
