package proc

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
		_ = unix.Pause()
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

func command(t *testing.T, r string, limit time.Duration) Command {
	log := filepath.Join(t.TempDir(), "log")
	return Command{Path: os.Args[0], Env: []string{role + "=" + r, "KVGATE_PROC_TEST_LOG=" + log}, Log: log, Limit: limit}
}

func text(t *testing.T, c Command) string {
	b, err := os.ReadFile(c.Log)
	require.NoError(t, err)
	return string(b)
}

const long = time.Minute

func TestRun(t *testing.T) {
	clk := clock.Wall()
	for _, c := range []struct {
		role   string
		limit  time.Duration
		ending Ending
		exit   int
		reason string
	}{
		{"good", long, Exited, 0, ""},
		{"bad", long, Exited, 7, "exit status 7"},
		{"crash", long, Signalled, -1, "signal: "},
		{"flood", long, Flooded, -1, "killed: wrote more than 32 MiB"},
	} {
		t.Run(c.role, func(t *testing.T) {
			if c.role == "crash" {
				// A Go program dies of a SIGSEGV that is sent with a dump and
				// status 2; GOTRACEBACK=crash makes it the signal.
				t.Setenv("GOTRACEBACK", "crash")
			}
			x := command(t, c.role, c.limit)
			x.Env = append(x.Env, "GOTRACEBACK="+os.Getenv("GOTRACEBACK"))
			o := Run(context.Background(), clk, x)
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

func TestStandardOutputApart(t *testing.T) {
	c := command(t, "good", long)
	c.Out = c.Log + ".out"
	require.True(t, Run(context.Background(), clock.Wall(), c).OK())
	require.Empty(t, text(t, c))
	out, err := os.ReadFile(c.Out)
	require.NoError(t, err)
	require.Equal(t, "hello\n", string(out))
	c.Out = filepath.Join(t.TempDir(), "no", "folder")
	require.Equal(t, NotStarted, Run(context.Background(), clock.Wall(), c).Ending)
}

func TestHangingProgramIsKilledWithItsChildren(t *testing.T) {
	c := command(t, "hang", time.Second)
	o := Run(context.Background(), clock.Wall(), c)
	require.Equal(t, TimedOut, o.Ending)
	require.Equal(t, "killed after 1s, its limit", o.Reason)
	require.GreaterOrEqual(t, o.Took, c.Limit)
	require.Less(t, o.Took, c.Limit+Overtime)
	require.Contains(t, text(t, c), "goroutine ", "what it was at")
	require.False(t, alive(t, text(t, c)))
}

func TestLeftProcesses(t *testing.T) {
	c := command(t, "leave", long)
	o := Run(context.Background(), clock.Wall(), c)
	require.Equal(t, Exited, o.Ending)
	require.Zero(t, o.Exit)
	require.Equal(t, "left processes behind, which were killed", o.Reason)
	require.False(t, alive(t, text(t, c)))
}

func TestInterrupt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(context.Background())
	clk := clock.Wall()
	c := command(t, "hang", long)
	clk.Go("interrupt", func() {
		_ = clk.Sleep(ctx, 300*time.Millisecond)
		cancel(errors.New("stopped by a test"))
	})
	o := Run(ctx, clk, c)
	require.Equal(t, Interrupted, o.Ending)
	require.Equal(t, "stopped by a test", o.Reason)
}

func TestNotStarted(t *testing.T) {
	c := command(t, "good", long)
	c.Path = filepath.Join(t.TempDir(), "nothing")
	o := Run(context.Background(), clock.Wall(), c)
	require.Equal(t, NotStarted, o.Ending)
	require.ErrorContains(t, errors.New(o.Reason), "no such file")
	c.Log = filepath.Join(t.TempDir(), "no", "folder")
	o = Run(context.Background(), clock.Wall(), c)
	require.Equal(t, NotStarted, o.Ending)
	require.NotEmpty(t, o.Reason)
}
