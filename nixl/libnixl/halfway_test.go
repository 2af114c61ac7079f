//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// shortOfMemory runs fn while the process can have little more memory than it
// has.
func shortOfMemory(fn func() error) error {
	const slack = 1 << 20
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, line, _ := strings.Cut(string(status), "VmData:")
	kilobytes, err := strconv.ParseUint(strings.Fields(line)[0], 10, 64)
	if err != nil {
		return err
	}
	var was unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &was); err != nil {
		return err
	}
	// The runtime ends the program where it gets no memory.
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: kilobytes<<10 + slack, Max: was.Max}); err != nil {
		return err
	}
	failed := fn()
	if err := unix.Setrlimit(unix.RLIMIT_DATA, &was); err != nil {
		return err
	}
	return failed
}

// A post that fails half way, by the library itself: UCX gets no memory for one
// of many descriptors. Those before it have left, nobody has a handle of them,
// and they land when the peer answers, long after the post has failed and the
// request was released. The memory is poisoned, and after Recover nothing lands.
func TestNativePostThatFailsHalfWay(t *testing.T) {
	library(t)
	t.Setenv("UCX_TLS", "tcp,self")
	const n, each = 200_000, 64
	fileA, viewA := memory(t, n*each)
	fileB, viewB := memory(t, n*each)
	a, b := newPeer(t, "decode", fileA), newPeer(t, "prefill", fileB)
	mem := []nixl.Descriptor{{Addr: childMemory, Len: n * each}}
	regA, err := a.Register(nixl.DRAM, mem)
	require.NoError(t, err)
	_, err = b.Register(nixl.DRAM, mem)
	require.NoError(t, err)
	p := introduce(t, a, b)
	paint(viewA, 0x11)
	paint(viewB, 0x22)
	s := nixl.Spec{Op: nixl.Read, Peer: p}
	for i := range uint64(n) {
		d := nixl.Descriptor{Addr: childMemory + i*each, Len: each}
		s.Local, s.Remote = append(s.Local, d), append(s.Remote, d)
	}
	x, err := a.NewTransfer(s)
	require.NoError(t, err)

	b.halt()
	_, err = a.ask(&request{Op: "post short of memory", ID: x.(*peerTransfer).id})
	unproven(t, err, nixl.ErrBackend)
	require.NoError(t, x.Close())
	require.Equal(t, len(viewA), bytes.Count(viewA, []byte{0x11}), "nothing has landed yet")
	require.ErrorIs(t, regA.Close(), nixl.ErrPoisoned)
	r, err := a.ask(&request{Op: "poisoned"})
	require.NoError(t, err)
	require.Len(t, r.Poisoned, 1)

	b.goOn()
	clk := clock.Wall()
	landed := 0
	for landed == 0 && clk.Now() < patience {
		require.NoError(t, clk.Sleep(context.Background(), 5*time.Millisecond))
		landed = bytes.Count(viewA, []byte{0x22})
	}
	require.NotZero(t, landed, "nothing of the failed post has landed")
	require.Less(t, landed, len(viewA), "it did not fail half way")
	t.Logf("%d of %d bytes landed, with the request released", landed, len(viewA))

	_, err = a.ask(&request{Op: "recover", Peer: p})
	require.NoError(t, err)
	require.NoError(t, regA.Close())
	paint(viewA, 0xee)
	require.NoError(t, clk.Sleep(context.Background(), 100*time.Millisecond))
	require.Equal(t, len(viewA), bytes.Count(viewA, []byte{0xee}), "bytes landed in memory that was given back")
}
