// Package clock is where time comes from. Beside a GPU that is the clock of the
// machine ([Wall]). For simulated devices and fabrics it is a World of package
// clock/vtime: on virtual time waiting costs nothing, and every run can be
// replayed. The same code runs on all of them.
//
// A device says which clock it runs on; whatever waits for the device uses that
// one. Start goroutines with [Clock.Go], and wait with [Clock.Sleep] and
// [Clock.WaitUntil]: on virtual time a goroutine that starts or blocks in another
// way stops the world. A context cancels a wait; it is not a clock.
package clock

import (
	"context"
	"math"
	"sync/atomic"
	"time"
)

// Never is the deadline of a wait without one.
const Never time.Duration = math.MaxInt64

// Cond is what a wait waits for. Done must be cheap; it must not block, take a
// lock that can be held across a wait, or use the clock: on virtual time it is
// evaluated by whichever goroutine runs. String names what is waited for; it
// is printed in deadlock reports.
type Cond interface {
	Done() bool
	String() string
}

// Clock is a source of time and of waiting. Instants are durations since the
// clock's own epoch. All methods are safe for use by several goroutines.
type Clock interface {
	// Now returns the time since the clock's epoch.
	Now() time.Duration
	// Sleep blocks for d, or until ctx is done; it then returns ctx's cause.
	Sleep(ctx context.Context, d time.Duration) error
	// WaitUntil blocks until c is done and returns nil. At the deadline it
	// returns [context.DeadlineExceeded], and when ctx is done ctx's cause.
	// When c is done, that wins over both.
	WaitUntil(ctx context.Context, c Cond, deadline time.Duration) error
	// Notify says that a Cond may have become true by something that the
	// clock cannot see. It never blocks.
	Notify()
	// Go runs fn on a goroutine of its own that is known to the clock.
	Go(name string, fn func())
	// Virtual reports whether time stands still while code runs. Where it
	// does, a goroutine that blocks outside the clock stops the world.
	Virtual() bool
}

// Func makes a Cond of a function.
func Func(what string, done func() bool) Cond { return &funcCond{what, done} }

type funcCond struct {
	what string
	done func() bool
}

func (f *funcCond) Done() bool     { return f.done() }
func (f *funcCond) String() string { return f.what }

// Within runs fn, which waits for something outside the clock, such as the
// network, on a goroutine of its own. It ends fn's context when ctx is done, or
// when the deadline has come, which is an instant of clk. It does not return before
// fn has, and returns what fn does.
func Within(ctx context.Context, clk Clock, what string, deadline time.Duration, fn func(ctx context.Context) error) error {
	one, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var done atomic.Bool
	var err error
	clk.Go(what, func() {
		err = fn(one)
		done.Store(true)
		clk.Notify()
	})
	over := Func(what, done.Load)
	if end := clk.WaitUntil(ctx, over, deadline); end != nil {
		cancel(end)
		_ = clk.WaitUntil(context.WithoutCancel(ctx), over, Never)
	}
	return err
}
