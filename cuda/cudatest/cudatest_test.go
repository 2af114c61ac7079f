package cudatest

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestBehaviours(t *testing.T) {
	all := slices.Concat(behaviours, pairBehaviours)
	names := map[string]bool{}
	vendor := 0
	for _, b := range all {
		require.NotEmpty(t, b.name)
		require.False(t, names[b.name], "two behaviours are called %q", b.name)
		names[b.name] = true
		require.NotEmpty(t, b.page, b.name)
		require.True(t, (b.one != nil) != (b.two != nil), b.name)
		if b.page != ownPage {
			vendor++
		}
	}
	require.GreaterOrEqual(t, len(all), 60)
	t.Logf("%d behaviours, %d of them stated by the vendor", len(all), vendor)
}
