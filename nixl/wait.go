package nixl

import (
	"context"
	"time"

	"github.com/kvgate/kvgate/clock"
)

// Wait polls a posted transfer of agent a until its end. It returns nil when
// the transfer is done, its error when it failed, [context.DeadlineExceeded]
// at the deadline (an instant of clk; [clock.Never] for none), and ctx's cause
// when ctx is done. After the last two the transfer is still in flight and
// somebody has to poll it to its end.
//
// A transfer that was not posted gives [ErrNotPosted].
func Wait(ctx context.Context, clk clock.Clock, a Agent, t Transfer, deadline time.Duration) error {
	w := activity{agent: a, what: "transfer"}
	for {
		// Read before the poll, so that what ends behind it is not missed.
		w.seen = a.Activity()
		switch s, err := t.Status(); s {
		case Done:
			return nil
		case Failed:
			return err
		case Idle:
			return Refuse("wait", t.Spec().Peer.Name, ErrNotPosted, "")
		}
		if err := over(ctx, clk, deadline); err != nil {
			return err
		}
		if err := clk.WaitUntil(ctx, &w, deadline); err != nil {
			return err
		}
	}
}

// over ends a wait whose agent has something new whenever it is asked: a wait
// of the clock alone would never look at ctx and deadline.
func over(ctx context.Context, clk clock.Clock, deadline time.Duration) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if deadline != clock.Never && clk.Now() >= deadline {
		return context.DeadlineExceeded
	}
	return nil
}

// activity is done when the agent may have something new.
type activity struct {
	agent Agent
	seen  uint64
	what  string
}

func (w *activity) Done() bool     { return w.agent.Activity() != w.seen }
func (w *activity) String() string { return w.what + " of agent " + w.agent.Name() }
