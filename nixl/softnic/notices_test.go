package softnic_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl/nixltest"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// A table that passes whatever the fabric does would be worth nothing: each
// fault has to make the behaviours fail that it breaks. They fail in a child
// process, which runs this very test with the fault's name in its environment.
func TestConformanceNoticesFaults(t *testing.T) {
	const env = "KVGATE_TEST_FAULT"
	for kind, broken := range map[softnic.FaultKind]string{
		softnic.FailPost:              "read moves exactly its bytes",
		softnic.FailHalfWay:           "write moves exactly its bytes",
		softnic.FailLate:              "states in order",
		softnic.Hang:                  "repost moves what is there now",
		softnic.LoseNotification:      "message without transfer",
		softnic.EarlyNotification:     "notification leaves with the poll",
		softnic.DuplicateNotification: "notification after the bytes",
	} {
		switch os.Getenv(env) {
		case kind.String():
			nixltest.Run(t, func(t *testing.T) nixltest.Pair {
				o := softnic.Options{Bandwidth: 5e7, Chunk: 8 << 10}
				p, f := openFaulty(t, vtime.NewVirtual(vtime.Options{}), o)
				f.Inject(func(softnic.TransferInfo) softnic.Fault { return softnic.Fault{Kind: kind} })
				return p
			})
		case "":
			t.Run(kind.String(), func(t *testing.T) {
				cmd := exec.Command(os.Args[0], "-test.run", "^TestConformanceNoticesFaults$", "-test.v")
				cmd.Env = append(os.Environ(), env+"="+kind.String())
				out, err := cmd.CombinedOutput()
				var exit *exec.ExitError
				require.ErrorAs(t, err, &exit, "%s", out)
				failure := "--- FAIL: TestConformanceNoticesFaults/" + strings.ReplaceAll(broken, " ", "_")
				require.Contains(t, string(out), failure)
				require.NotContains(t, string(out), "panic:")
			})
		}
	}
}
