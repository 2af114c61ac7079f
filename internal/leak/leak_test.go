package leak

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReport(t *testing.T) {
	require.Nil(t, Open("stream", "before"))
	Enable()
	defer on.Store(false)
	a, b := Open("stream", "a"), Open("buffer", "b")
	lines := Report()
	require.Len(t, lines, 2)
	require.Contains(t, lines[0], `stream "a" is open`)
	require.Contains(t, lines[0], "TestReport")
	require.Contains(t, lines[1], `buffer "b" is open`)
	a.Close()
	a.Close()
	require.Len(t, Report(), 1)
	b.Close()
	require.Empty(t, Report())
	(*Ticket)(nil).Close()
}
