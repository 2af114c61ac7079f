package scenario

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestEveryVerbIsDescribed(t *testing.T) {
	for _, line := range strings.Split(help(), "\n") {
		require.NotEqual(t, "\t", line, help())
	}
}
