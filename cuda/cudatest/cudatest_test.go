package cudatest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryBehaviourHasItsPage(t *testing.T) {
	var all []string
	for name := range Behaviours() {
		all = append(all, name)
	}
	for name := range Pairs() {
		all = append(all, name)
	}
	vendor := 0
	for _, name := range all {
		require.NotEmpty(t, Page(name), name)
		if Page(name) != Own {
			vendor++
		}
	}
	require.Len(t, allPages(), len(all), "a page of a behaviour that is not there")
	require.GreaterOrEqual(t, len(all), 60)
	t.Logf("%d behaviours, %d of them stated by the vendor", len(all), vendor)
}
