//go:build cgo && linux

package libnixl

import (
	"debug/elf"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documented reads the two tables of SYMBOLS.md: what is bound, with the shims
// or methods that use it, and what is left out, with the reason.
func documented(t *testing.T) (bound, left map[string]string) {
	text, err := os.ReadFile("SYMBOLS.md")
	require.NoError(t, err)
	bound, left = map[string]string{}, map[string]string{}
	into := bound
	row := regexp.MustCompile("^\\| `(\\w+)` \\| (.+) \\|$")
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "## Left out" {
			into = left
		}
		if m := row.FindStringSubmatch(line); m != nil {
			into["nixl_capi_"+m[1]] = m[2]
		}
	}
	return bound, left
}

func names(m map[string]string) []string {
	var s []string
	for k := range m {
		s = append(s, k)
	}
	slices.Sort(s)
	return s
}

func TestEverySymbolIsBoundOrLeftOut(t *testing.T) {
	f, err := elf.Open(library(t).Path())
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	require.NoError(t, err)
	var exported []string
	for _, s := range symbols {
		if strings.HasPrefix(s.Name, "nixl_capi_") && s.Section != elf.SHN_UNDEF {
			exported = append(exported, s.Name)
		}
	}
	slices.Sort(exported)
	bound, left := documented(t)
	for n := range left {
		require.NotContains(t, bound, n)
	}
	require.Equal(t, exported, slices.Sorted(slices.Values(append(names(bound), names(left)...))))

	inTable := boundSymbols()
	slices.Sort(inTable)
	require.Equal(t, inTable, names(bound))
}

// Everything in the table of functions resolves.
func TestEverySymbolResolves(t *testing.T) {
	n := library(t).d.(*native)
	for i := range boundSymbols() {
		require.NoError(t, n.need(i))
	}
}
