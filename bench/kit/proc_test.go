package main

import (
	"context"
	"errors"
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
	default:
		os.Exit(play(r))
	}
}

// hang never returns. Where all goroutines wait, a program without cgo ends by
// itself, so it waits in the kernel.
func hang() {
	for {
		_, _ = unix.Select(0, nil, nil, nil, nil)
	}
}

func play(r string) int {
	switch r {
	case "good":
		fmt.Println("hello")
	case "bad":
		return 7
	case "crash":
		_ = unix.Kill(os.Getpid(), unix.SIGSEGV)
		hang()
	case "flood":
		line := []byte(strings.Repeat("x", 1<<20))
		for {
			_, _ = os.Stdout.Write(line)
		}
	case "hang", "leave":
		cmd := exec.Command(os.Args[0])
		cmd.Env = []string{role + "=child"}
		cmd.Stdout = os.Stdout // the log: the child keeps it open
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			return 1
		}
		if r == "hang" {
			hang()
		}
		for { // until the child has said who it is
			if text, _ := os.ReadFile(os.Getenv("KVGATE_PROC_TEST_LOG")); strings.Contains(string(text), "child ") {
				return 0
			}
		}
	}
	return 0
}

func ownProgram(t *testing.T, r string, limit time.Duration) command {
	log := filepath.Join(t.TempDir(), "log")
	return command{Path: os.Args[0], Env: []string{role + "=" + r, "KVGATE_PROC_TEST_LOG=" + log}, Log: log, Limit: limit}
}

func text(t *testing.T, c command) string {
	b, err := os.ReadFile(c.Log)
	require.NoError(t, err)
	return string(b)
}

const long = time.Minute

func TestExecute(t *testing.T) {
	clk := clock.Wall()
	for _, c := range []struct {
		role   string
		limit  time.Duration
		ending ending
		exit   int
		reason string
	}{
		{"good", long, exited, 0, ""},
		{"bad", long, exited, 7, "exit status 7"},
		{"crash", long, signalled, -1, "signal: "},
		{"flood", long, flooded, -1, "killed: wrote more than 32 MiB"},
	} {
		t.Run(c.role, func(t *testing.T) {
			if c.role == "crash" {
				// A Go program dies of a SIGSEGV that is sent with a dump and
				// status 2; GOTRACEBACK=crash makes it the signal.
				t.Setenv("GOTRACEBACK", "crash")
			}
			x := ownProgram(t, c.role, c.limit)
			x.Env = append(x.Env, "GOTRACEBACK="+os.Getenv("GOTRACEBACK"))
			o := execute(context.Background(), clk, x)
			require.Equal(t, c.ending, o.Ending, "%+v", o)
			require.Equal(t, c.exit, o.Exit)
			require.Equal(t, c.reason == "", o.OK())
			require.Contains(t, o.Reason, c.reason)
			require.Positive(t, o.Took)
			if c.role == "good" {
				require.Equal(t, "hello\n", text(t, x))
			}
		})
	}
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
	c := ownProgram(t, "hang", time.Second)
	o := execute(context.Background(), clock.Wall(), c)
	require.Equal(t, timedOut, o.Ending)
	require.Equal(t, "killed after 1s, its limit", o.Reason)
	require.GreaterOrEqual(t, o.Took, c.Limit)
	require.Less(t, o.Took, c.Limit+overtime)
	require.Contains(t, text(t, c), "goroutine ", "what it was at")
	require.False(t, alive(t, text(t, c)))
}

func TestLeftProcesses(t *testing.T) {
	c := ownProgram(t, "leave", long)
	o := execute(context.Background(), clock.Wall(), c)
	require.Equal(t, exited, o.Ending)
	require.Zero(t, o.Exit)
	require.Equal(t, "left processes behind, which were killed", o.Reason)
	require.False(t, alive(t, text(t, c)))
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	clk := clock.Wall()
	c := ownProgram(t, "hang", long)
	clk.Go("interrupt", func() {
		_ = clk.Sleep(ctx, 300*time.Millisecond)
		cancel(errors.New("stopped by a test"))
	})
	o := execute(ctx, clk, c)
	require.Equal(t, interrupted, o.Ending)
	require.Equal(t, "stopped by a test", o.Reason)
}

func TestNotStarted(t *testing.T) {
	c := ownProgram(t, "good", long)
	c.Path = filepath.Join(t.TempDir(), "nothing")
	o := execute(context.Background(), clock.Wall(), c)
	require.Equal(t, notStarted, o.Ending)
	require.ErrorContains(t, errors.New(o.Reason), "no such file")
	c.Log = filepath.Join(t.TempDir(), "no", "folder")
	o = execute(context.Background(), clock.Wall(), c)
	require.Equal(t, notStarted, o.Ending)
	require.NotEmpty(t, o.Reason)
}
