package outcome

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

func TestJudge(t *testing.T) {
	require.NoError(t, Judge(nil))
	require.NoError(t, Judge([]Run{{"Ungated", false, 8, 8}, {"PerBlock", true, 8, 0}, {"SkipCovered", false, 8, 1}, {"SkipCovered", false, 8, 0}}))
	require.EqualError(t, Judge([]Run{{"Ungated", false, 8, 0}}), "Ungated corrupted none of 8 blocks: the race did not show")
	require.EqualError(t, Judge([]Run{{"PerBlock", true, 8, 1}}), "PerBlock is gated, and 1 of 8 blocks were corrupted")
}

func TestUnshown(t *testing.T) {
	require.Empty(t, Unshown([]Run{{"PerBlock", true, 8, 0}, {"SkipCovered", false, 8, 1}}))
	require.Equal(t, "only gated modes ran: that the race occurs was not shown", Unshown([]Run{{"PerBlock", true, 8, 0}}))
	require.Equal(t, "SkipCovered lost nothing and Ungated did not run: that the race occurs was not shown",
		Unshown([]Run{{"PerBlock", true, 8, 0}, {"SkipCovered", false, 8, 0}}))
}

func TestParseModes(t *testing.T) {
	all, err := ParseModes("")
	require.NoError(t, err)
	require.Equal(t, core.Modes(), all)
	some, err := ParseModes("PerBlock,Ungated")
	require.NoError(t, err)
	require.Equal(t, []loadgate.Mode{core.PerBlock, core.Ungated}, some)
	for list, want := range map[string]string{
		"perblock": `-mode "perblock": want one of Ungated, FullSync`, "PerBlock,": `-mode "": want one of`,
		"PerBlock,Ungated,PerBlock": "-mode PerBlock: twice",
	} {
		_, err := ParseModes(list)
		require.ErrorContains(t, err, want)
	}
}
