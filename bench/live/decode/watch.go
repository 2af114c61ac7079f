package decode

import (
	"context"
	"fmt"
	"time"
)

// oldest notes for the watchdog when the oldest load was asked for.
func (r *round) oldest() {
	at := time.Duration(0)
	if len(r.loading) > 0 {
		at = max(r.loading[0].asked, 1)
	}
	r.asked.Store(int64(at))
}

// watch ends the round when the NIC's other end is gone, or a load does not come:
// not every transport tells of either.
func (r *round) watch(ctx context.Context, cancel context.CancelCauseFunc) {
	const every = 50 * time.Millisecond
	for r.wall.Sleep(ctx, every) == nil {
		if err := r.nic.Err(); err != nil {
			cancel(err)
		}
		if at := time.Duration(r.asked.Load()); at != 0 && r.wall.Now() > at+r.patience {
			cancel(fmt.Errorf("a load has not come for %v", r.patience))
			_ = r.nic.Kill() // else it may have ended meanwhile
			return
		}
	}
}

// giveUp is how long the gate may take to end after an error.
const giveUp = 5 * time.Second

// close ends the round. After an error what is under way may never end.
func (r *round) close() error {
	if r.gate == nil {
		return nil
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	r.wall.Go("end of the gate", func() {
		if r.wall.Sleep(ctx, giveUp) == nil {
			cancel(fmt.Errorf("the gate did not end within %v", giveUp))
		}
	})
	return r.gate.Close(ctx)
}
