package decode

import (
	"time"

	"github.com/kvgate/kvgate/loadgate"
)

// Round is what a round came to. Times are of the device's clock.
type Round struct {
	// Of the window: from when the batch was first full, or half of the round was
	// over, to the end.
	Span        time.Duration
	Steps       int
	Tokens      int
	StepTimes   []time.Duration // from the end of a step, as the host saw it, to that of the next
	HostBlocked time.Duration   // in waits that the mode asks for
	Submits     uint64          // crossings into the driver
	Polls       uint64

	// Of the whole round.
	Loads             int
	HeldLoads         int
	Holds             []time.Duration
	LoadTimes         []time.Duration // from when the gate let a load go until it knew that it had come
	Requests          int             // that a step used
	Blocks            int             // of them
	CorruptedRequests int
	CorruptedBlocks   int
	ZeroedBytes       uint64
	LoadedBytes       uint64
}

// meter measures a round.
type meter struct {
	Round
	open     bool          // the window is
	shut     bool          // it was, for good
	from     time.Duration // when it was opened
	latest   time.Duration // when it is at the latest, by the wall
	lastEnd  time.Duration
	follows  bool // the next step follows that
	crossed0 crossings
}

type crossings struct{ submits, polls uint64 }

func (r *round) crossings() crossings {
	return crossings{r.dev.submits.Load(), r.dev.polls.Load()}
}

// over notes that the host has seen the end of a step.
func (r *round) over(batch int) {
	now := r.clk.Now()
	switch {
	case r.open:
		r.Steps++
		r.Tokens += batch
		if r.follows {
			r.StepTimes = append(r.StepTimes, now-r.lastEnd)
		}
		r.Span = now - r.from
	case !r.shut && (batch == r.cfg.Requests || r.wall.Now() >= r.latest):
		r.open, r.from, r.crossed0 = true, now, r.crossings()
	}
	r.lastEnd, r.follows = now, true
}

// pause says that the next step does not follow the one before it.
func (r *round) pause() { r.follows = false }

// closeWindow ends the window.
func (r *round) closeWindow() {
	if r.open {
		c := r.crossings()
		r.Submits, r.Polls = c.submits-r.crossed0.submits, c.polls-r.crossed0.polls
	}
	r.open, r.shut = false, true
}

// blocked notes a wait of the host.
func (r *round) blocked(d time.Duration) {
	if r.open {
		r.HostBlocked += d
	}
}

// listener is what the gate tells.
func (r *round) listener() loadgate.Listener {
	held, left := map[loadgate.Transfer]time.Duration{}, map[loadgate.Transfer]time.Duration{}
	return loadgate.Listener{
		Launched: func(i loadgate.LaunchInfo) { r.ZeroedBytes += uint64(len(i.Blocks)) * r.cfg.BlockBytes() },
		Held:     func(i loadgate.TransferInfo) { held[i.Transfer] = r.clk.Now() },
		Left: func(i loadgate.TransferInfo) {
			now := r.clk.Now()
			left[i.Transfer] = now
			if since, ok := held[i.Transfer]; ok {
				r.Holds = append(r.Holds, now-since)
				delete(held, i.Transfer)
			}
		},
		Done: func(i loadgate.TransferInfo) {
			if since, ok := left[i.Transfer]; ok && i.Err == nil {
				r.LoadTimes = append(r.LoadTimes, r.clk.Now()-since)
			}
			delete(left, i.Transfer)
		},
	}
}
