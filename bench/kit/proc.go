package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

// command is a program to be run. It runs in a process group of its own,
// without input, and all that it writes goes to log, a file.
type command struct {
	path  string
	args  []string
	env   []string
	dir   string
	log   string
	limit time.Duration // how long it may run
}

// outcome is what became of a program.
type outcome struct {
	took time.Duration
	// reason says in words what went wrong; empty after exit status 0 with
	// nothing left behind.
	reason string
	// started is false where it could not be, and late true where it was killed at
	// its limit.
	started, late bool
}

const (
	// maxLog is how much a program may write, in bytes.
	maxLog = 32 << 20
	// dumpTime is what a program gets after SIGQUIT, on which a Go program
	// writes what its goroutines were at.
	dumpTime = 2 * time.Second
	// reapTime is how long a killed program is waited for. One that hangs in
	// the kernel can not be killed, and is left.
	reapTime = 3 * time.Second
	// overtime is the most that execute takes beyond a command's limit.
	overtime = dumpTime + reapTime + time.Second
)

// execute runs a program to its end. What the program started and left in its
// process group is killed too, and counts as a fault. It returns at most
// [overtime] after the limit.
func execute(ctx context.Context, clk clock.Clock, c command) outcome {
	log, err := os.Create(c.log)
	if err != nil {
		return outcome{reason: err.Error()}
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	// A file, not a pipe: a process that survives can't keep us from the end.
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.env, c.dir, log, log
	cmd.SysProcAttr = ofTheKit()
	start := clk.Now()
	if err := cmd.Start(); err != nil {
		return outcome{reason: err.Error()}
	}
	ended := make(chan error, 1)
	clk.Go("wait for "+c.path, func() {
		ended <- cmd.Wait()
		clk.Notify()
	})
	over := clock.Func("the end of "+c.path, func() bool { return len(ended) > 0 })
	o := outcome{started: true}
	for {
		// The log grows without telling anybody.
		err := clk.WaitUntil(ctx, over, min(start+c.limit, clk.Now()+100*time.Millisecond))
		i, _ := log.Stat()
		switch {
		case err == nil:
			o.reason = finished(cmd, <-ended)
		case ctx.Err() != nil:
			o.reason = context.Cause(ctx).Error() + kill(clk, cmd, over)
		case i != nil && i.Size() > maxLog:
			o.reason = fmt.Sprintf("killed: wrote more than %d MiB%s", maxLog>>20, kill(clk, cmd, over))
		case clk.Now() >= start+c.limit:
			o.late, o.reason = true, fmt.Sprintf("killed after %s, its limit%s", c.limit, kill(clk, cmd, over))
		default:
			continue
		}
		o.took = clk.Now() - start
		return o
	}
}

// finished says what is wrong with a program that has ended by itself.
func finished(cmd *exec.Cmd, err error) string {
	left := error(nil)
	// The group lives as long as anybody is in it.
	if unix.Kill(-cmd.Process.Pid, unix.SIGKILL) == nil {
		left = errors.New("left processes behind, which were killed")
	}
	if err != nil && left != nil {
		err, left = fmt.Errorf("%w; %w", err, left), nil
	}
	if err := errors.Join(err, left); err != nil {
		return err.Error()
	}
	return ""
}

// kill ends the whole group, and returns what is to be said about that.
func kill(clk clock.Clock, cmd *exec.Cmd, over clock.Cond) string {
	_ = unix.Kill(cmd.Process.Pid, unix.SIGQUIT) // the program alone: only it is to tell
	bg := context.Background()
	_ = clk.WaitUntil(bg, over, clk.Now()+dumpTime)
	_ = unix.Kill(-cmd.Process.Pid, unix.SIGKILL)
	if clk.WaitUntil(bg, over, clk.Now()+reapTime) != nil {
		return "; it does not end even so, and is left behind"
	}
	return ""
}
