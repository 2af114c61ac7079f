// Package proc runs a program of a kit within bounds of time and output, and
// ends it with all that it started.
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
)

// Command is a program to be run. It runs in a process group of its own,
// without input, and all that it writes goes to Log.
type Command struct {
	Path  string
	Args  []string
	Env   []string
	Dir   string
	Log   string        // the file; what is there is replaced
	Out   string        // a file for what it writes to standard output, if that is not for the log
	Limit time.Duration // how long it may run
}

// Ending says how a program came to its end.
type Ending uint8

const (
	Exited      Ending = iota // on its own: see Exit
	Signalled                 // a signal that was not ours: a crash
	TimedOut                  // killed at its limit
	Flooded                   // killed for writing more than MaxLog
	Interrupted               // killed since the context was done
	NotStarted
)

func (e Ending) String() string {
	return [...]string{"exited", "signalled", "timed out", "flooded", "interrupted", "not started"}[e]
}

// Outcome is what became of a program.
type Outcome struct {
	Ending Ending
	Exit   int // status of one that exited, else -1
	Took   time.Duration
	// Reason says in words what went wrong; empty after exit status 0 with
	// nothing left behind.
	Reason string
}

// OK reports that the program exited with status 0, and left no process.
func (o Outcome) OK() bool { return o.Reason == "" }

const (
	// MaxLog is how much a program may write, in bytes.
	MaxLog = 32 << 20
	// dumpTime is what a program gets after SIGQUIT, on which a Go program
	// writes what its goroutines were at.
	dumpTime = 2 * time.Second
	// reapTime is how long a killed program is waited for. One that hangs in
	// the kernel can not be killed, and is left.
	reapTime = 3 * time.Second
	// Overtime is the most that Run takes beyond a command's limit.
	Overtime = dumpTime + reapTime + time.Second
)

// Run runs a program to its end and reports it. What the program started and
// left in its process group is killed too, and counts as a fault. Run
// returns at most [Overtime] after the limit.
func Run(ctx context.Context, clk clock.Clock, c Command) Outcome {
	log, err := os.Create(c.Log)
	if err != nil {
		return Outcome{Ending: NotStarted, Exit: -1, Reason: err.Error()}
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	// A file, not a pipe: a process that survives can't keep us from the end.
	cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = c.Env, c.Dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.Out != "" {
		out, err := os.Create(c.Out)
		if err != nil {
			return Outcome{Ending: NotStarted, Exit: -1, Reason: err.Error()}
		}
		defer out.Close()
		cmd.Stdout = out
	}
	start := clk.Now()
	if err := cmd.Start(); err != nil {
		return Outcome{Ending: NotStarted, Exit: -1, Reason: err.Error()}
	}
	r := &running{clk: clk, cmd: cmd, ended: make(chan error, 1)}
	clk.Go("wait for "+c.Path, func() {
		r.ended <- cmd.Wait()
		clk.Notify()
	})
	o := r.until(ctx, start+c.Limit)
	o.Took = clk.Now() - start
	if o.Ending == TimedOut {
		o.Reason = fmt.Sprintf("killed after %s, its limit%s", c.Limit, o.Reason)
	}
	return o
}

type running struct {
	clk   clock.Clock
	cmd   *exec.Cmd
	ended chan error
}

// until waits for the end, and brings it about where it has to.
func (r *running) until(ctx context.Context, deadline time.Duration) Outcome {
	flooded := false
	over := clock.Func("the end of "+r.cmd.Path, func() bool { return len(r.ended) > 0 })
	for {
		// The log grows without telling anybody.
		err := r.clk.WaitUntil(ctx, over, min(deadline, r.clk.Now()+100*time.Millisecond))
		if err == nil {
			return r.finished(<-r.ended)
		}
		for _, w := range []io.Writer{r.cmd.Stdout, r.cmd.Stderr} {
			if i, err := w.(*os.File).Stat(); err == nil && i.Size() > MaxLog {
				flooded = true
			}
		}
		switch {
		case ctx.Err() != nil:
			return Outcome{Ending: Interrupted, Exit: -1, Reason: fmt.Sprintf("%v%s", context.Cause(ctx), r.kill())}
		case flooded:
			return Outcome{Ending: Flooded, Exit: -1, Reason: fmt.Sprintf("killed: wrote more than %d MiB%s", MaxLog>>20, r.kill())}
		case r.clk.Now() >= deadline:
			return Outcome{Ending: TimedOut, Exit: -1, Reason: r.kill()}
		}
	}
}

// finished looks at a program that has ended by itself.
func (r *running) finished(err error) Outcome {
	o := Outcome{Ending: Exited}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		o.Exit = exit.ExitCode()
		o.Reason = exit.Error()
	default:
		o.Ending, o.Exit, o.Reason = Signalled, -1, err.Error()
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
func (r *running) kill() string {
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
