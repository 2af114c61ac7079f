package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

// command is a program to be run. It runs in a process group of its own,
// without input, and all that it writes goes to Log.
type command struct {
	Path  string
	Args  []string
	Env   []string
	Dir   string
	Log   string        // the file; what is there is replaced
	Limit time.Duration // how long it may run
}

// ending says how a program came to its end.
type ending uint8

const (
	exited      ending = iota // on its own: see Exit
	signalled                 // a signal that was not ours: a crash
	timedOut                  // killed at its limit
	flooded                   // killed for writing more than maxLog
	interrupted               // killed since the context was done
	notStarted
)

func (e ending) String() string {
	return [...]string{"exited", "signalled", "timed out", "flooded", "interrupted", "not started"}[e]
}

// outcome is what became of a program.
type outcome struct {
	Ending ending
	Exit   int // status of one that exited, else -1
	Took   time.Duration
	// Reason says in words what went wrong; empty after exit status 0 with
	// nothing left behind.
	Reason string
}

// OK reports that the program exited with status 0, and left no process.
func (o outcome) OK() bool { return o.Reason == "" }

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

// execute runs a program to its end and reports it. What the program started and
// left in its process group is killed too, and counts as a fault. It
// returns at most [overtime] after the limit.
func execute(ctx context.Context, clk clock.Clock, c command) outcome {
	log, err := os.Create(c.Log)
	if err != nil {
		return outcome{Ending: notStarted, Exit: -1, Reason: err.Error()}
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	// A file, not a pipe: a process that survives can't keep us from the end.
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	start := clk.Now()
	if err := cmd.Start(); err != nil {
		return outcome{Ending: notStarted, Exit: -1, Reason: err.Error()}
	}
	r := &process{clk: clk, cmd: cmd, ended: make(chan error, 1)}
	clk.Go("wait for "+c.Path, func() {
		r.ended <- cmd.Wait()
		clk.Notify()
	})
	o := r.until(ctx, start+c.Limit)
	o.Took = clk.Now() - start
	if o.Ending == timedOut {
		o.Reason = fmt.Sprintf("killed after %s, its limit%s", c.Limit, o.Reason)
	}
	return o
}

type process struct {
	clk   clock.Clock
	cmd   *exec.Cmd
	ended chan error
}

// until waits for the end, and brings it about where it has to.
func (r *process) until(ctx context.Context, deadline time.Duration) outcome {
	tooMuch := false
	over := clock.Func("the end of "+r.cmd.Path, func() bool { return len(r.ended) > 0 })
	for {
		// The log grows without telling anybody.
		err := r.clk.WaitUntil(ctx, over, min(deadline, r.clk.Now()+100*time.Millisecond))
		if err == nil {
			return r.finished(<-r.ended)
		}
		if i, err := r.cmd.Stdout.(*os.File).Stat(); err == nil && i.Size() > maxLog {
			tooMuch = true
		}
		switch {
		case ctx.Err() != nil:
			return outcome{Ending: interrupted, Exit: -1, Reason: fmt.Sprintf("%v%s", context.Cause(ctx), r.kill())}
		case tooMuch:
			return outcome{Ending: flooded, Exit: -1, Reason: fmt.Sprintf("killed: wrote more than %d MiB%s", maxLog>>20, r.kill())}
		case r.clk.Now() >= deadline:
			return outcome{Ending: timedOut, Exit: -1, Reason: r.kill()}
		}
	}
}

// finished looks at a program that has ended by itself.
func (r *process) finished(err error) outcome {
	o := outcome{Ending: exited}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		o.Exit = exit.ExitCode()
		o.Reason = exit.Error()
	default:
		o.Ending, o.Exit, o.Reason = signalled, -1, err.Error()
	}
	// The group lives as long as anybody is in it.
	if unix.Kill(-r.cmd.Process.Pid, unix.SIGKILL) == nil {
		if o.Reason != "" {
			o.Reason += "; "
		}
		o.Reason += "left processes behind, which were killed"
	}
	return o
}

// kill ends the whole group, and returns what is to be said about that.
func (r *process) kill() string {
	group := -r.cmd.Process.Pid
	_ = unix.Kill(r.cmd.Process.Pid, unix.SIGQUIT) // the program alone: only it is to tell
	over := clock.Func("the end of a killed program", func() bool { return len(r.ended) > 0 })
	bg := context.Background()
	_ = r.clk.WaitUntil(bg, over, r.clk.Now()+dumpTime)
	_ = unix.Kill(group, unix.SIGKILL)
	if r.clk.WaitUntil(bg, over, r.clk.Now()+reapTime) != nil {
		return "; it does not end even so, and is left behind"
	}
	<-r.ended
	return ""
}
