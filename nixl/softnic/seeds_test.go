package softnic_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

var seedFlag = flag.Uint64("seed", 0, "run the random schedules of this seed only, and print them")

// TestRandomSchedules lets posters, faults and disconnects loose on a fabric
// and checks what must hold whatever happens, and that the same seed gives the
// same run.
func TestRandomSchedules(t *testing.T) {
	if *seedFlag != 0 {
		t.Log(schedule(t, *seedFlag))
		return
	}
	seen := map[string]bool{}
	for seed := uint64(1); seed <= seeds; seed++ {
		first := schedule(t, seed)
		if t.Failed() {
			t.Fatalf("rerun with: go test ./nixl/softnic -run TestRandomSchedules -seed %d", seed)
		}
		require.Equal(t, first, schedule(t, seed), "seed %d gives two runs", seed)
		seen[first] = true
	}
	require.Len(t, seen, seeds, "seeds give different runs")
}

const (
	lane   = 8 << 10 // of memory, for each poster
	lanes  = 5
	rounds = 6
)

// run is one random schedule. Its fields are used with the baton or the
// machine's lock, which one goroutine has at a time.
type run struct {
	*pair
	rnd    *rand.Rand
	trace  bytes.Buffer
	faults map[uint64]softnic.FaultKind
	want   map[uint64]uint64 // bytes of each transfer
	landed map[uint64]uint64
	ended  map[uint64]error
	told   map[uint64]int
	off    bool // d has been closed
	good   int  // transfers done whose bytes were compared
}

func schedule(t *testing.T, seed uint64) string {
	r := &run{
		rnd:    rand.New(rand.NewPCG(seed, 99)),
		faults: map[uint64]softnic.FaultKind{}, want: map[uint64]uint64{}, landed: map[uint64]uint64{},
		ended: map[uint64]error{}, told: map[uint64]int{},
	}
	o := softnic.Options{
		Bandwidth: 1e9, Chunk: 1 << 10, Reorder: seed%2 == 0, Linger: 50 * time.Microsecond,
		Jitter: time.Duration(seed % 3 * 1000), PostCost: 5 * time.Microsecond, Listener: r.listener(),
	}
	w := vtime.NewVirtual(vtime.Options{Seed: seed})
	r.pair = newPair(t, w, o)
	r.f.Inject(r.choose)
	left := lanes
	for i := range uint64(lanes) {
		w.Go(fmt.Sprint("poster ", i), func() {
			r.poster(i)
			left--
		})
	}
	if r.rnd.IntN(2) == 0 {
		r.sleep(time.Duration(r.rnd.IntN(200)) * time.Microsecond)
		require.NoError(t, r.f.Disconnect("p"))
	}
	require.NoError(t, w.WaitUntil(context.Background(), clock.Func("posters", func() bool { return left == 0 }), clock.Never))
	// Whatever hangs is cut loose; then the end of the agent is silence.
	require.NoError(t, r.d.Close())
	r.off = true
	before := bytes.Clone(r.dm.Bytes())
	r.sleep(time.Millisecond)
	require.Equal(t, before, r.dm.Bytes())
	for id, n := range r.landed {
		require.LessOrEqual(t, n, r.want[id])
	}
	fmt.Fprintln(&r.trace, "compared", r.good)
	return r.trace.String()
}

func (r *run) choose(i softnic.TransferInfo) softnic.Fault {
	f := softnic.Fault{At: r.rnd.Float64(), Factor: 1 + 3*r.rnd.Float64()}
	if r.rnd.IntN(3) == 0 {
		f.Kind = softnic.FaultKind(r.rnd.IntN(int(softnic.DuplicateNotification) + 1))
	}
	r.faults[i.ID], r.want[i.ID] = f.Kind, i.Bytes
	fmt.Fprintf(&r.trace, "%s: %s\n", i, f.Kind)
	return f
}

func (r *run) listener() softnic.Listener {
	return softnic.Listener{
		Left: func(c softnic.ChunkInfo) { r.chunk("left", c) },
		Landed: func(c softnic.ChunkInfo) {
			r.chunk("landed", c)
			r.landed[c.Transfer] += c.Len
			require.False(r.t, r.off, "landed after the agent was closed")
			require.NotEqual(r.t, softnic.FailPost, r.faults[c.Transfer])
		},
		Ended: func(e softnic.EndedInfo) {
			fmt.Fprintln(&r.trace, e)
			r.ended[e.Transfer] = e.Err
			if e.Err == nil {
				require.Equal(r.t, r.want[e.Transfer], r.landed[e.Transfer], "done before all landed")
			}
		},
		Notified: func(n softnic.NotifiedInfo) {
			fmt.Fprintln(&r.trace, n)
			r.told[n.Transfer]++
			switch k := r.faults[n.Transfer]; k {
			case softnic.EarlyNotification:
			case softnic.LoseNotification, softnic.FailPost, softnic.FailHalfWay, softnic.FailLate, softnic.Hang:
				require.Fail(r.t, "told", "%s in spite of %s", n, k)
			default:
				err, over := r.ended[n.Transfer]
				require.True(r.t, over && err == nil, "told without success: %s", n)
			}
			if r.told[n.Transfer] > 1 {
				require.Equal(r.t, softnic.DuplicateNotification, r.faults[n.Transfer])
			}
		},
	}
}

// chunk traces addresses as offsets, since memory lies elsewhere in each run.
func (r *run) chunk(what string, c softnic.ChunkInfo) {
	base := map[string]uint64{"d": r.dm.Addr(), "p": r.pm.Addr()}
	c.SourceAddr -= base[c.Source]
	c.TargetAddr -= base[c.Target]
	fmt.Fprintln(&r.trace, what, c)
}

// poster moves a lane of the memory some times and polls each post to its end.
func (r *run) poster(i uint64) {
	unsure := false // an earlier post's bytes may come in between
	for range rounds {
		op := nixl.Op(r.rnd.IntN(2))
		s := r.spec(op, i*lane, 4, lane/4)
		s.Peer = r.peer
		s.Notification = []byte{byte(i)}
		tr, err := r.d.NewTransfer(s)
		if err != nil {
			require.True(r.t, nixl.Quiet(err))
			r.reconnect()
			continue
		}
		if err := tr.Post(); err != nil {
			unsure = unsure || !nixl.Quiet(err)
			require.NoError(r.t, tr.Close())
			continue
		}
		err = nixl.Wait(context.Background(), r.w, r.d, tr, r.w.Now()+time.Millisecond)
		if errors.Is(err, context.DeadlineExceeded) { // it hangs
			require.NoError(r.t, r.f.Disconnect("p"))
			err = r.wait(tr)
		}
		switch {
		case err != nil:
			require.False(r.t, nixl.Quiet(err))
			unsure = true
		case !unsure:
			a, b := r.dm.Bytes()[i*lane:(i+1)*lane], r.pm.Bytes()[i*lane:(i+1)*lane]
			require.True(r.t, bytes.Equal(a, b), "done with other bytes")
			r.good++
		}
		require.NoError(r.t, tr.Close())
	}
}

func (r *run) reconnect() {
	blob, err := r.p.Metadata()
	require.NoError(r.t, err)
	p, err := r.d.AddPeer(blob)
	if err != nil { // others have still to hear of it
		require.ErrorIs(r.t, err, nixl.ErrBusy)
		r.sleep(20 * time.Microsecond)
		return
	}
	r.peer = p
}
