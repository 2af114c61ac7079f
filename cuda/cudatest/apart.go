package cudatest

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// A process that was started for one behaviour finds its name in apartName, and
// runs it as the subtest "apart".
const (
	apartName = "KVGATE_CONFORMANCE_APART"
	apartDone = "cudatest: the behaviour has been shown"
)

// runApart is what a process that was started for one behaviour runs in place of
// the table.
func runApart(t *testing.T, run func(t *testing.T)) {
	t.Run("apart", func(t *testing.T) {
		t.Cleanup(func() {
			if !t.Failed() && !t.Skipped() {
				t.Log(apartDone)
			}
		})
		run(t)
	})
}

// startApart runs a behaviour in a process of its own, to its end. It is skipped
// where that process skipped it, for the same reason.
func startApart(t *testing.T, name string) {
	t.Helper()
	out := again(t, "apart", apartName+"="+name)
	if reason := skipReason(out); reason != "" {
		t.Skip(reason)
	}
	require.Contains(t, out, apartDone)
}

var (
	wasSkipped = regexp.MustCompile(`(?m)^ *--- SKIP: \S+/apart `)
	logged     = regexp.MustCompile(`(?m)^ +\S+\.go:\d+: (.*)$`)
)

// skipReason returns why the behaviour was skipped in a process whose verbose
// output is given, or "" if it was not.
func skipReason(out string) string {
	lines := logged.FindAllStringSubmatch(out, -1)
	if !wasSkipped.MatchString(out) || len(lines) == 0 {
		return ""
	}
	return lines[len(lines)-1][1]
}

// verdict compares whether a behaviour left a device dead with what the table
// says of it.
func (b behaviour) verdict(devices ...cuda.Device) error {
	dead := false
	for _, d := range devices {
		_, err := d.NewEvent()
		dead = dead || cuda.Sticky(err)
	}
	switch {
	case dead && !b.kills:
		return fmt.Errorf("cudatest: %q left its device dead, and is not marked as one that does", b.name)
	case !dead && b.kills:
		return fmt.Errorf("cudatest: %q left its device alive, and is marked as one that kills it", b.name)
	}
	return nil
}

// judge requires, at the end of a test that neither failed nor was skipped, that
// the table has it right.
func (b behaviour) judge(t *testing.T, devices ...cuda.Device) {
	if !t.Failed() && !t.Skipped() {
		require.NoError(t, b.verdict(devices...))
	}
}
