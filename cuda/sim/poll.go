package sim

import (
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/cuda"
)

// Poll answers the marks. As in CUDA an event that was never recorded has
// fired.
func (d *Device) Poll(marks []cuda.Mark) error {
	const op = "poll"
	cost := time.Duration(0)
	for i := range marks {
		if marks[i].Event != 0 {
			cost += d.costs.Query
		}
		if marks[i].Word != 0 {
			cost += d.costs.Word
		}
	}
	if err := d.call(op, cost); err != nil {
		return err
	}
	defer d.world.Exit()
	for i := range marks {
		m := &marks[i]
		m.State = cuda.MarkPending
		if m.Event == 0 && m.Word == 0 {
			return invalid(op, "mark %d asks for nothing", i)
		}
		if m.Event != 0 {
			e := d.events[m.Event]
			if e == nil {
				return badHandle(op, "event", uint64(m.Event))
			}
			if err := d.askable(op, e, m.Event); err != nil {
				return err
			}
			if err := e.captured(op, m.Event); err != nil {
				return err
			}
			if e.fired() {
				m.State = cuda.MarkFired
				d.seenByHost(e.end)
			}
		}
		if m.Word != 0 {
			w, r, err := d.mem.word(uint64(m.Word), false)
			if err != nil {
				return invalid(op, "mark %d: %v", i, err)
			}
			if r.kind != cuda.PinnedMemory {
				return invalid(op, "mark %d: %#x is no word of pinned memory", i, uint64(m.Word))
			}
			m.Seen = atomic.LoadUint32(w)
			if reached(m.Seen, m.Want) {
				m.State = cuda.MarkFired
				if d.races != nil {
					d.races.HostLine().Join(d.words[uint64(m.Word)])
				}
			}
		}
	}
	return d.allowManaged(op)
}
