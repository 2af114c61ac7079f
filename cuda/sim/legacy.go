package sim

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
)

// LegacyStream returns a handle of the legacy default stream, which is there
// from the first call on. Source of its order: CUDA runtime API, "Stream
// synchronization behavior".
func (d *Device) LegacyStream() (cuda.Stream, error) {
	if err := d.call("adopt legacy stream", d.costs.Handle); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	if d.legacy == nil {
		d.legacy = d.newStream("legacy default stream", leastPriority)
		d.order = append(d.order, d.legacy)
	}
	h := cuda.Stream(d.handle(kindStream))
	d.streams[h] = d.legacy
	return h, nil
}

// implicit refuses work in the legacy default stream that would depend on what
// a blocking stream has captured. The capture is not spoiled: devices ask first.
func (s *stream) implicit(op string) error {
	if s != s.d.legacy {
		return nil
	}
	for _, k := range s.d.captures {
		for _, x := range k.streams {
			if x.blocking {
				return refuse(cuda.ErrCaptureImplicit, op, fmt.Sprintf("%s is captured", x))
			}
		}
	}
	return nil
}

// follow makes the next command of s wait for what the order with the legacy
// default stream puts before it: in that stream all that is in blocking ones, in
// a blocking one all that is in the legacy stream. As streams are FIFO, what was
// waited for once need not be again.
func (s *stream) follow() {
	l := s.d.legacy
	switch {
	case l == nil:
	case s == l:
		for _, x := range s.d.order {
			if x.blocking && x.followed < x.issued && x.completed.Load() < x.issued {
				x.followed = x.issued
				l.waitFor(x)
			}
		}
	case s.blocking && l.completed.Load() < l.issued && s.sawLegacy < l.issued:
		s.sawLegacy = l.issued
		s.waitFor(l)
	}
}

// waitFor adds a wait for all that is in x by now.
func (s *stream) waitFor(x *stream) {
	n := s.enqueue(cuda.OpWaitEvent)
	n.on, n.until, n.sees = x, x.issued, x.lastEnd
}

// ordered reports whether work that is in x comes before later work in s.
func (s *stream) ordered(x *stream) bool {
	l := s.d.legacy
	return x == s || s == l && x.blocking || s.blocking && x == l
}
