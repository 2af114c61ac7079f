package cudatest

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// killing are the behaviours that leave a device dead. cuda.h says of the errors
// that do so (700, 702, 714 to 719) that the process has to be ended and started
// again, so that on hardware nothing else may come after them in a process.
var killing = map[string]bool{
	"blocking: all forms are told of an error":          true,
	"pair: a wait for one that dies ends with an error": true,
	"pair: access ends":                                 true,
	"pair: an error of one leaves the other alone":      true,
	"pair: who asks after one that died lives on":       true,
	"pair: without access a kernel may not":             true,
	"signal: not called after an error":                 true,
	"sticky: a wait under way is told":                  true,
	"sticky: an illegal address kills the device":       true,
	"sticky: work behind the fault never runs":          true,
	"word: a wait does not keep an error from a waiter": true,
}

// Kills says whether a behaviour leaves its device, or one of its two, dead.
func Kills(name string) bool { return killing[name] }

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
func verdict(name string, devices ...cuda.Device) error {
	dead := false
	for _, d := range devices {
		_, err := d.NewEvent()
		dead = dead || cuda.Sticky(err)
	}
	switch {
	case dead && !Kills(name):
		return fmt.Errorf("cudatest: %q left its device dead, and is not marked as one that does", name)
	case !dead && Kills(name):
		return fmt.Errorf("cudatest: %q left its device alive, and is marked as one that does not", name)
	}
	return nil
}

// judge requires, at the end of a test that neither failed nor was skipped, that
// the table has it right.
func judge(t *testing.T, name string, devices ...cuda.Device) {
	if !t.Failed() && !t.Skipped() {
		require.NoError(t, verdict(name, devices...))
	}
}
