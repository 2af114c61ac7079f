package engine

import (
	"slices"
	"time"

	"github.com/kvgate/kvgate/cuda/sim"
)

// meter measures a run.
type meter struct {
	tokens    int
	completed int
	batch     int // the largest
	ttft      []time.Duration
	end       time.Duration // of the last request

	loads     int
	heldLoads int
	holds     []time.Duration
	loaded    float64

	blocked   time.Duration // the host, by the mode
	blockedAt time.Duration
	waits     span // of a launch in the newest such wait

	work     []span          // of the compute stream
	lastEnd  time.Duration   // of work there
	stepEnds []time.Duration // 0: a pause
	idle     time.Duration   // of the compute stream, by the gate
	asked    []time.Duration // when each forward was submitted
	forwards int             // that have run
	costs    sim.Costs
}

type span struct{ from, to time.Duration }

// overlap returns how long two spans are at the same time.
func (s span) overlap(o span) time.Duration {
	return max(0, min(s.to, o.to)-max(s.from, o.from))
}

// blocks and unblocks enclose a wait of the host that the mode asks for;
// launches says that a step waits behind it.
func (m *meter) blocks(now time.Duration, launches bool) {
	m.blockedAt = now
	m.waits = span{}
	if launches {
		m.waits = span{now, 1<<63 - 1}
	}
}

func (m *meter) unblocks(now time.Duration) {
	m.blocked += now - m.blockedAt
	if m.waits.to > 0 {
		m.waits.to = now
	}
}

// pause says that the next step does not follow the one before it.
func (m *meter) pause() {
	if n := len(m.stepEnds); n > 0 && m.stepEnds[n-1] != 0 {
		m.stepEnds = append(m.stepEnds, 0)
	}
}

// ran takes in device work that is over.
func (m *meter) ran(r sim.Ran) {
	if r.Stream != computeName {
		return
	}
	if len(m.work) > 0 {
		m.idle += span{m.lastEnd, r.Begun}.overlap(m.waits)
	}
	if r.What == forwardName {
		// It would have begun by then, if nothing else had been in its way.
		due := m.asked[m.forwards] + m.costs.LaunchLatency
		if len(m.work) > 0 {
			due = max(due, m.lastEnd+m.costs.KernelGap)
		}
		m.idle += max(0, r.Begun-due)
		m.forwards++
	}
	m.work = append(m.work, span{r.Begun, r.Ended})
	m.lastEnd = r.Ended
	if r.What == sampleName {
		m.stepEnds = append(m.stepEnds, r.Ended)
	}
}

// steps returns the times from the end of each step to that of the next.
func (m *meter) stepTimes() (out []time.Duration) {
	for i := 1; i < len(m.stepEnds); i++ {
		if m.stepEnds[i] != 0 && m.stepEnds[i-1] != 0 {
			out = append(out, m.stepEnds[i]-m.stepEnds[i-1])
		}
	}
	return out
}

// idleShare returns the part of a span in which the compute stream did nothing.
func (m *meter) idleShare(s span) float64 {
	if s.to <= s.from {
		return 0
	}
	var busy time.Duration
	for _, w := range m.work {
		busy += w.overlap(s)
	}
	return 1 - busy.Seconds()/(s.to-s.from).Seconds()
}

// percentile returns the p-th of 100, the nearest rank, of times in ms; 0 where
// there are none.
func percentile(d []time.Duration, p int) float64 {
	if len(d) == 0 {
		return 0
	}
	d = slices.Sorted(slices.Values(d))
	return ms(d[(len(d)-1)*p/100])
}

func ms(d time.Duration) float64 { return d.Seconds() * 1e3 }
