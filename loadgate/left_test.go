package loadgate_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

// Left is the moment at which the gate stops holding a transfer: at once where
// nothing holds it, and not before its zeroing is over where that does.
func TestListenerLeft(t *testing.T) {
	for _, mode := range []loadgate.Mode{core.Ungated, core.PerBlock} {
		t.Run(mode.String(), func(t *testing.T) {
			var r *rig
			var left, posted []time.Duration
			r = newRig(t, mode, false, func(o *loadgate.Options) {
				o.Listener.Left = func(i loadgate.TransferInfo) {
					require.NotNil(t, i.Transfer)
					left = append(left, r.dev.World().Now())
				}
				o.Listener.Posted = func(loadgate.TransferInfo) { posted = append(posted, r.dev.World().Now()) }
			})
			ctx := context.Background()
			const busy = 2 * time.Millisecond
			ts := r.alloc(2)
			h, err := r.gate.Hold(0, ts)
			require.NoError(t, err)
			plan, err := r.gate.Plan([]loadgate.Holder{h})
			require.NoError(t, err)
			begun := r.dev.World().Now()
			_, err = plan.Launch(r.step(uint32(busy / time.Microsecond)))
			require.NoError(t, err)
			ticket := r.load(h, ts)
			require.NoError(t, r.gate.EndStep())
			require.Equal(t, mode == core.Ungated, len(left) == 1, "left with the call that handed it in")
			require.NoError(t, ticket.Wait(ctx))
			require.Len(t, left, 1)
			require.Len(t, posted, 1)
			require.Less(t, left[0], posted[0])
			require.Equal(t, mode == core.PerBlock, left[0]-begun >= busy, "%v", left[0]-begun)
		})
	}
}
