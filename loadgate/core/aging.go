package core

import (
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

// agingList chains the held transfers, oldest first, with one place between
// those that were reported and those that were not.
type agingList struct{ head, tail, due int32 } // one more than the index; 0 is none

func (a *agingList) add(c *Core, i int32) {
	tk := &c.tickets[i]
	tk.older, tk.newer = a.tail, 0
	if a.tail != 0 {
		c.tickets[a.tail-1].newer = i + 1
	} else {
		a.head = i + 1
	}
	a.tail = i + 1
	if a.due == 0 {
		a.due = i + 1
	}
}

func (a *agingList) remove(c *Core, i int32) {
	tk := &c.tickets[i]
	if a.due == i+1 {
		a.due = tk.newer
	}
	if tk.older != 0 {
		c.tickets[tk.older-1].newer = tk.newer
	} else {
		a.head = tk.newer
	}
	if tk.newer != 0 {
		c.tickets[tk.newer-1].older = tk.older
	} else {
		a.tail = tk.older
	}
	tk.older, tk.newer = 0, 0
}

// Tick tells the time. Transfers that have been held for longer than the limit
// are reported, each once.
func (c *Core) Tick(now kv.Instant) error {
	if now < c.now {
		return refuse("tick", fmt.Sprintf("%d before %d", now, c.now), ErrBackwards)
	}
	c.now = now
	if c.opts.HoldLimit == 0 {
		return nil
	}
	for c.aging.due != 0 {
		i := c.aging.due - 1
		tk := &c.tickets[i]
		if now-tk.since < c.opts.HoldLimit {
			break
		}
		c.aging.due = tk.newer
		c.counts.Overdue++
		why, _ := c.Reason(c.transferOf(i))
		c.emit(Action{Kind: TellOverdue, Transfer: c.transferOf(i), Holder: tk.holder,
			Err: fmt.Errorf("loadgate: %v %v held for %d ns: %s", tk.kind, c.transferOf(i), now-tk.since, why)})
	}
	return nil
}

// Deadline returns when [Core.Tick] will have something to report.
func (c *Core) Deadline() kv.Instant {
	if c.opts.HoldLimit == 0 || c.aging.due == 0 {
		return kv.Never
	}
	since := c.tickets[c.aging.due-1].since
	if c.opts.HoldLimit > kv.Never-since {
		return kv.Never
	}
	return since + c.opts.HoldLimit
}

// Reason says in words what a held transfer waits for.
func (c *Core) Reason(t Transfer) (string, error) {
	i, err := c.transfer("reason", t)
	if err != nil {
		return "", err
	}
	tk := &c.tickets[i]
	switch tk.waiting {
	case waitFence:
		l := c.lines[tk.point.Timeline]
		return fmt.Sprintf("fence %v (timeline is at %d)", tk.point, l.done), nil
	case waitLaunch:
		return fmt.Sprintf("%v that is not launched yet", c.launchs[tk.on].Filling), nil
	case waitPlan:
		return fmt.Sprintf("%v to be submitted", Plan(handle(tk.on, c.plans[tk.on].gen))), nil
	case waitTransfer:
		return fmt.Sprintf("%v on the same bytes, which is %v", c.transferOf(tk.on), c.tickets[tk.on].state), nil
	case waitStep:
		return "its turn among the steps", nil
	}
	return tk.state.String(), nil
}

// TransferState returns where a transfer is; [Over] for a dead handle.
func (c *Core) TransferState(t Transfer) State {
	i, gen := unpack(uint64(t))
	if i < 0 || int(i) >= len(c.tickets) || c.tickets[i].gen != gen {
		return Over
	}
	return c.tickets[i].state
}
