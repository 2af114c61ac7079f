package nic

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/internal/wheel"
	"github.com/kvgate/kvgate/bench/live/standin"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

var bg = context.Background()

func openSim(slow float64) (cuda.Device, error) {
	return sim.New(sim.Options{Real: true, Slow: slow, SMs: 4, Shareable: true})
}

// refuse, in the environment, is why the other end opens no device.
const refuse = "KVGATE_LIVE_TEST_REFUSE"

func TestMain(m *testing.M) {
	if !Asked() {
		goleak.VerifyTestMain(m)
		return
	}
	err := Serve(func(slow float64) (cuda.Device, error) {
		if why := os.Getenv(refuse); why != "" {
			return nil, fmt.Errorf("%s", why)
		}
		return openSim(slow)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

var small = Prompts{Slots: 2, Blocks: 3, Segments: 2, PageBytes: 4096, Tokens: 16}

// rig is a NIC on a simulated device.
type rig struct {
	*testing.T
	*NIC
	dev cuda.Device
}

// device returns options with room for two prompts.
func device(t *testing.T, p Prompts, o sim.Options) Options {
	dev, err := sim.New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	base, err := dev.Alloc(2*p.SlotBytes(), cuda.AllocOptions{Name: "blocks"})
	require.NoError(t, err)
	return Options{Device: dev, Base: base, Size: 2 * p.SlotBytes(), Slow: max(o.Slow, 1), Prompts: p}
}

func newRig(t *testing.T, kind string, p Prompts, slow float64) *rig {
	if kind == NIXL {
		if _, err := wheel.Open(); errors.Is(err, dl.ErrNoCgo) {
			t.Skip(err)
		} else if err != nil {
			testutil.SkipOrFail(t, "no NIXL: %v", err)
		}
	}
	o := device(t, p, sim.Options{Real: true, Slow: slow, Shareable: true})
	n, err := Open(bg, kind, o)
	require.NoError(t, err)
	t.Cleanup(func() { _ = n.Close() })
	require.Equal(t, kind, n.Kind)
	require.NotEmpty(t, n.What)
	return &rig{t, n, o.Device}
}

// pages are the blocks that fetch brings prompts into: behind those of the probe.
func (r *rig) pages() standin.Pages {
	p, err := r.o.pages(uint64(r.o.Base), 1)
	require.NoError(r, err)
	return p
}

func (r *rig) fetch(slot int) nixl.Transfer {
	p := r.pages()
	t, err := r.Fetch(slot, func(i, s int) uint64 { return p.Address(s, kv.Block(i)) })
	require.NoError(r, err)
	return t
}

func (r *rig) page(segment int, b kv.Block) []byte {
	p, got := r.pages(), make([]byte, r.o.PageBytes)
	require.NoError(r, r.dev.Read(got, cuda.DevicePtr(p.Address(segment, b))))
	return got
}

func (r *rig) holds(request uint32) {
	r.Helper()
	p, want := r.pages(), make([]byte, r.o.PageBytes)
	for s := range r.o.Segments {
		for _, it := range r.o.items(request) {
			p.Write(want, s, it)
			require.Equal(r, want, r.page(s, it.Block))
		}
	}
}

// over polls a transfer to its end.
func (r *rig) over(t nixl.Transfer) error {
	r.Helper()
	clk := r.dev.Clock()
	err := nixl.Wait(bg, clk, r.Agent, t, clk.Now()+20*time.Second)
	require.NotErrorIs(r, err, context.DeadlineExceeded)
	return err
}

func (r *rig) until(what string, done func() bool) {
	r.Helper()
	wall := clock.Wall()
	require.NoError(r, wall.WaitUntil(bg, clock.Func(what, done), wall.Now()+20*time.Second), what)
}

func everyKind(t *testing.T, fn func(r *rig)) {
	for _, kind := range Kinds {
		t.Run(kind, func(t *testing.T) { fn(newRig(t, kind, small, 1)) })
	}
}

// Prompts come as they were prepared last, again and again.
func TestPrompts(t *testing.T) {
	everyKind(t, func(r *rig) {
		require.Equal(r, r.Kind == Copy, r.Process() == 0)
		for i := range 6 {
			request := uint32(i + 1)
			require.NoError(r, r.Prepare(bg, i%2, request))
			tr := r.fetch(i % 2)
			require.NoError(r, tr.Post())
			require.NoError(r, r.over(tr))
			require.NoError(r, tr.Close())
			r.holds(request)
		}
		require.ErrorContains(r, r.Prepare(bg, 2, 1), "no slot 2")
		require.ErrorContains(r, r.Prepare(bg, -1, 1), "no slot -1")
		require.NoError(r, r.Err())
		require.NoError(r, r.Close())
		require.NoError(r, r.Close())
	})
}

// What the gate asks of an agent, of those that are here.
func TestAgent(t *testing.T) {
	for _, kind := range []string{IPC, Copy} {
		t.Run(kind, func(t *testing.T) {
			r := newRig(t, kind, small, 1)
			_, err := r.Fetch(0, func(i, s int) uint64 { return uint64(r.o.Base) + r.o.Size })
			require.ErrorIs(t, err, nixl.ErrNotRegistered)
			require.True(t, nixl.Quiet(err))
			spec := *r.fetch(0).Spec()
			spec.Op = nixl.Write
			_, err = r.Agent.NewTransfer(spec)
			require.ErrorIs(t, err, nixl.ErrInvalid)
			spec = *r.fetch(0).Spec()
			spec.Peer.Generation++
			_, err = r.Agent.NewTransfer(spec)
			require.ErrorIs(t, err, nixl.ErrNoPeer)

			require.NoError(t, r.Prepare(bg, 0, 5))
			tr := r.fetch(0)
			require.Equal(t, r.Agent, tr.(nixl.Owned).Agent())
			st, err := tr.Status()
			require.NoError(t, err)
			require.Equal(t, nixl.Idle, st)
			require.NoError(t, tr.Post())
			require.ErrorIs(t, tr.Post(), nixl.ErrBusy)
			require.ErrorIs(t, tr.Close(), nixl.ErrBusy)
			require.ErrorIs(t, r.Agent.Close(), nixl.ErrBusy)
			require.NoError(t, r.over(tr))
			require.NoError(t, tr.Post(), "a transfer can be posted again")
			tr.Cancel()
			err = r.over(tr)
			require.ErrorIs(t, err, nixl.ErrCanceled)
			require.True(t, nixl.Quiet(err))
			require.NoError(t, tr.Close())
			require.ErrorIs(t, r.fetch(0).Close(), nil)

			tr = r.fetch(0)
			tr.Cancel()
			err = tr.Post()
			require.ErrorIs(t, err, nixl.ErrCanceled)
			require.True(t, nixl.Quiet(err))
			st, err = tr.Status()
			require.Equal(t, nixl.Failed, st)
			require.True(t, nixl.Quiet(err))
			require.NoError(t, r.Agent.Close())
			_, err = r.Agent.NewTransfer(*tr.Spec())
			require.ErrorIs(t, err, nixl.ErrClosed)
		})
	}
}

// A process that is killed while it writes: the transfer fails, nobody takes the
// memory for quiet, and what is asked of it from then on fails at once.
func TestKilledWhileWriting(t *testing.T) {
	r := newRig(t, IPC, Prompts{Slots: 1, Blocks: 4, Segments: 2, PageBytes: 256 << 10, Tokens: 64}, 3000)
	require.NoError(t, r.Prepare(bg, 0, 5))
	zeros := make([]byte, r.o.Size)
	require.NoError(t, r.dev.Write(r.o.Base, zeros))
	tr := r.fetch(0)
	require.NoError(t, tr.Post())
	first := func() bool { return r.page(0, 0)[5] != 0 }
	r.until("the first bytes", first)
	st, err := tr.Status()
	require.NoError(t, err)
	require.Equal(t, nixl.InProgress, st, "the transfer is over before it could be stopped")
	require.NoError(t, unix.Kill(r.Process(), unix.SIGKILL))
	err = r.over(tr)
	require.ErrorIs(t, err, nixl.ErrDisconnected)
	require.ErrorContains(t, err, "killed")
	require.False(t, nixl.Quiet(err))
	require.ErrorContains(t, r.Err(), "killed")
	require.ErrorContains(t, r.Prepare(bg, 0, 6), "killed")
	require.ErrorIs(t, r.fetch(0).Post(), nixl.ErrDisconnected)
	require.Equal(t, make([]byte, 16), r.page(1, 3)[len(zeros)/16-16:], "it came to its end all the same")
	require.ErrorContains(t, r.Close(), "killed")
}

// A process that does not go on is ended.
func TestHungProcess(t *testing.T) {
	r := newRig(t, IPC, small, 1)
	require.NoError(t, unix.Kill(r.Process(), unix.SIGSTOP))
	tr := r.fetch(0)
	require.NoError(t, tr.Post())
	ctx, cancel := context.WithCancelCause(bg)
	cancel(fmt.Errorf("no patience"))
	require.ErrorContains(t, r.Prepare(ctx, 1, 5), "no patience")
	r.process.patience = 300 * time.Millisecond
	require.ErrorContains(t, r.Close(), "took longer than 300ms")
	require.ErrorContains(t, r.process.err(), "killed")
}

// Auto takes the first that can be had, and says why not the others; the others
// never fall back.
func TestAuto(t *testing.T) {
	t.Setenv(libnixl.LibraryVariable, "/nonexistent/libnixl_capi.so")
	o := device(t, small, sim.Options{Real: true, Shareable: true})
	n, err := Open(bg, Auto, o)
	require.NoError(t, err)
	require.Equal(t, IPC, n.Kind)
	require.Len(t, n.Skipped, 1)
	require.Equal(t, NIXL, n.Skipped[0].Kind)
	require.NotEmpty(t, n.Skipped[0].Why)
	require.NotContains(t, n.Skipped[0].Why, "\n")
	require.NoError(t, n.Close())
	_, err = Open(bg, NIXL, o)
	require.ErrorIs(t, err, nixl.ErrUnavailable)

	unshared := device(t, small, sim.Options{Real: true})
	n, err = Open(bg, Auto, unshared)
	require.NoError(t, err)
	require.Equal(t, Copy, n.Kind)
	require.Len(t, n.Skipped, 2)
	require.Contains(t, n.Skipped[1].Why, "Shareable")
	require.NoError(t, n.Close())
	_, err = Open(bg, IPC, unshared)
	require.ErrorIs(t, err, cuda.ErrNotSupported)

	// The other end says why there is none.
	t.Setenv(refuse, "out of devices")
	_, err = Open(bg, IPC, o)
	require.ErrorContains(t, err, "nic ipc: its own device: out of devices")
	n, err = Open(bg, Auto, o)
	require.NoError(t, err)
	require.Equal(t, Copy, n.Kind)
	require.NoError(t, n.Close())

	_, err = Open(bg, "rdma", o)
	require.ErrorContains(t, err, `no kind "rdma"`)
	o.Size = 1
	_, err = Open(bg, Copy, o)
	require.ErrorContains(t, err, "1 bytes to bring prompts of 24576 bytes into")
}

// A NIC that says it has brought what it has not is not taken.
func TestProbeLooks(t *testing.T) {
	o := device(t, small, sim.Options{Real: true})
	n := &NIC{Kind: Copy, o: o}
	require.NoError(t, n.openCopy())
	defer func() { require.NoError(t, n.Close()) }()
	require.NoError(t, n.probe(bg))
	prepare := n.prepare
	n.prepare = func(ctx context.Context, slot int, request uint32) error { return prepare(ctx, slot, request-1) }
	require.ErrorContains(t, n.probe(bg), "block 0 of segment 0 is not as sent")
}
