package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

// role makes the test binary the program that is run.
const role = "KVGATE_PROC_TEST_ROLE"

func TestMain(m *testing.M) {
	switch r := os.Getenv(role); r {
	case "":
		goleak.VerifyTestMain(m)
	case "child":
		fmt.Printf("child %d\n", os.Getpid())
		hang()
	case "flood":
		for line := []byte(strings.Repeat("x", 1<<20)); ; {
			_, _ = os.Stdout.Write(line)
		}
	default: // "hang", "leave"
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{role + "=child"}
		cmd.Stdout = os.Stdout // the log: the child keeps it open
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		if r == "hang" {
			hang()
		}
		for { // until the child has said who it is
			if text, _ := os.ReadFile(os.Getenv("KVGATE_PROC_TEST_LOG")); strings.Contains(string(text), "child ") {
				os.Exit(0)
			}
		}
	}
}

// hang never returns. Where all goroutines wait, a program without cgo ends by
// itself, so it waits in the kernel.
func hang() {
	for {
		_, _ = unix.Select(0, nil, nil, nil, nil)
	}
}

// play runs this program in a role, and returns what it wrote.
func play(t *testing.T, r string, limit time.Duration) (outcome, string) {
	log := filepath.Join(t.TempDir(), "log")
	o := execute(context.Background(), clock.Wall(), command{path: os.Args[0],
		env: []string{role + "=" + r, "KVGATE_PROC_TEST_LOG=" + log}, log: log, limit: limit})
	text, err := os.ReadFile(log)
	require.NoError(t, err)
	return o, string(text)
}

// alive waits a little: who is killed takes a moment to go.
func alive(t *testing.T, log string) bool {
	i := strings.Index(log, "child ")
	require.GreaterOrEqual(t, i, 0, "no child in %q", log)
	pid, err := strconv.Atoi(strings.Fields(log[i:])[1])
	require.NoError(t, err)
	clk := clock.Wall()
	gone := clock.Func("the end of the child", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil || strings.Contains(string(stat), ") Z ") // nobody may reap it here
	})
	return clk.WaitUntil(context.Background(), gone, clk.Now()+5*time.Second) != nil
}

func TestHangingProgramIsKilledWithItsChildren(t *testing.T) {
	o, log := play(t, "hang", time.Second)
	require.True(t, o.late)
	require.Equal(t, "killed after 1s, its limit", o.reason)
	require.GreaterOrEqual(t, o.took, time.Second)
	require.Less(t, o.took, time.Second+overtime)
	require.Contains(t, log, "goroutine ", "what it was at")
	require.False(t, alive(t, log))
}

func TestLeftProcesses(t *testing.T) {
	o, log := play(t, "leave", time.Minute)
	require.Equal(t, "left processes behind, which were killed", o.reason)
	require.False(t, alive(t, log))
}

func TestFlood(t *testing.T) {
	o, _ := play(t, "flood", time.Minute)
	require.True(t, o.started)
	require.False(t, o.late)
	require.Equal(t, "killed: wrote more than 32 MiB", o.reason)
}

func TestNoLog(t *testing.T) {
	o := execute(context.Background(), clock.Wall(), command{path: os.Args[0], log: filepath.Join(t.TempDir(), "no", "folder")})
	require.False(t, o.started)
	require.NotEmpty(t, o.reason)
}
