package nixl

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/kvgate/kvgate/clock"
)

// Inbox keeps the messages of one agent until somebody asks for them. A
// message may well come before whoever it is for: a peer can be done with a
// request that is not known here yet. All who want messages of an agent share
// its inbox, since the agent gives each message out once. Methods are safe for
// use by several goroutines.
type Inbox struct {
	agent Agent
	clk   clock.Clock
	limit int

	mu       sync.Mutex // never held across a wait or a call of the agent
	kept     []Notification
	dropped  uint64
	arrivals uint64 // of messages, as far as taken in
}

// NewInbox returns an inbox that keeps at most limit messages (at least one);
// the oldest makes place for one too many, and is counted.
func NewInbox(a Agent, clk clock.Clock, limit int) *Inbox {
	return &Inbox{agent: a, clk: clk, limit: max(limit, 1)}
}

// Poll takes in what has arrived.
func (b *Inbox) Poll() error {
	got, err := b.agent.Notifications(nil)
	if len(got) == 0 {
		return err
	}
	b.mu.Lock()
	b.kept = append(b.kept, got...)
	b.arrivals += uint64(len(got))
	if over := len(b.kept) - b.limit; over > 0 {
		b.kept = slices.Delete(b.kept, 0, over)
		b.dropped += uint64(over)
	}
	b.mu.Unlock()
	b.clk.Notify()
	return err
}

// Take removes and returns the oldest kept message for which match holds. It
// does not poll.
func (b *Inbox) Take(match func(Notification) bool) (Notification, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	i := slices.IndexFunc(b.kept, match)
	if i < 0 {
		return Notification{}, false
	}
	n := b.kept[i]
	b.kept = slices.Delete(b.kept, i, i+1)
	return n, true
}

// Wait polls until there is a message for which match holds, and takes it. It
// returns [context.DeadlineExceeded] at the deadline (an instant of the clock;
// messages do get lost, so [clock.Never] is seldom right), ctx's cause when
// ctx is done, and the agent's error when polling fails.
func (b *Inbox) Wait(ctx context.Context, match func(Notification) bool, deadline time.Duration) (Notification, error) {
	w := arrival{inbox: b, activity: activity{agent: b.agent, what: "notification"}}
	for {
		// Both are read first, so that what comes behind the poll is not missed.
		w.seen, w.arrivals = b.agent.Activity(), b.count()
		err := b.Poll()
		if n, ok := b.Take(match); ok {
			return n, nil
		}
		if err != nil {
			return Notification{}, err
		}
		if err := over(ctx, b.clk, deadline); err != nil {
			return Notification{}, err
		}
		if err := b.clk.WaitUntil(ctx, &w, deadline); err != nil {
			return Notification{}, err
		}
	}
}

// Len returns how many messages are kept.
func (b *Inbox) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.kept)
}

// Dropped returns how many messages made place for others.
func (b *Inbox) Dropped() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.dropped
}

func (b *Inbox) count() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.arrivals
}

// arrival is done when the agent may have something new or somebody else took
// something in.
type arrival struct {
	activity
	inbox    *Inbox
	arrivals uint64
}

func (w *arrival) Done() bool { return w.activity.Done() || w.inbox.count() != w.arrivals }
