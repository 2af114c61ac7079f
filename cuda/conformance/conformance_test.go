package conformance

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryBehaviourHasItsPage(t *testing.T) {
	all := Behaviours()
	vendor := 0
	for name := range all {
		require.NotEmpty(t, Page(name), name)
		if Page(name) != Own {
			vendor++
		}
	}
	require.Len(t, allPages(), len(all), "a page of a behaviour that is not there")
	require.GreaterOrEqual(t, len(all), 60)
	t.Logf("%d behaviours, %d of them stated by the vendor", len(all), vendor)
}
