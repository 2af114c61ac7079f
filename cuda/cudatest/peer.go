package cudatest

import (
	"encoding/hex"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// Behaviours between processes start the test's program once more, as a peer:
// [Run] finds these in its environment and runs what they name instead of the
// table.
const (
	peerName   = "KVGATE_CONFORMANCE_PEER"
	peerHandle = "KVGATE_CONFORMANCE_HANDLE"
	peerDone   = "cudatest: the peer is done"
)

// peer is what a peer does with memory of the process that started it.
type peer func(t *testing.T, d cuda.Device, h cuda.MemoryHandle)

func runPeer(t *testing.T, name string, open func(t *testing.T) cuda.Device) {
	t.Run("peer", func(t *testing.T) {
		d := open(t)
		t.Cleanup(func() {
			require.NoError(t, closeInTime(t, d))
			if !t.Failed() {
				t.Log(peerDone)
			}
		})
		require.Contains(t, peers, name)
		var h cuda.MemoryHandle
		n, err := hex.Decode(h[:], []byte(os.Getenv(peerHandle)))
		require.NoError(t, err)
		require.Equal(t, len(h), n)
		peers[name](t, d, h)
	})
}

// startPeer runs a peer to its end, on the device that the test's own was
// opened as.
func startPeer(t *testing.T, name string, h cuda.MemoryHandle) {
	t.Helper()
	require.Contains(t, again(t, "peer", peerName+"="+name, peerHandle+"="+hex.EncodeToString(h[:])), peerDone)
}

// again runs the test's program once more, with what is added to its
// environment, up to the test that runs the table and there the subtest that is
// named. It returns what the program said.
func again(t *testing.T, subtest string, env ...string) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	var pattern []string
	levels := strings.Split(t.Name(), "/")
	for _, level := range levels[:len(levels)-1] { // the last is the behaviour's
		pattern = append(pattern, "^"+regexp.QuoteMeta(level)+"$")
	}
	cmd := exec.Command(self, "-test.run", strings.Join(pattern, "/")+"/^"+subtest+"$", "-test.v", "-test.timeout", (2 * patienceSimulated).String())
	cmd.Env = append(os.Environ(), env...)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s\n%s", cmd, out)
	return string(out)
}
