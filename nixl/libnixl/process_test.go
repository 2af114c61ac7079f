//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/nixltest"
)

// long runs every size over every transport; without it the biggest transfers
// are those of TestOneGiB, and loops are short.
var long = flag.Bool("long", false, "1 GiB in all combinations, and long loops")

// couple is an agent here and one in a child.
type couple struct {
	a    *Agent
	b    *peer
	bufA nixltest.Buffer
	bufB nixltest.Buffer // Data is this process's view
	regA nixl.Registration
	peer nixl.Peer
}

func newCouple(t testing.TB, n int, env ...string) *couple {
	t.Helper()
	file, view := memory(t, n)
	c := &couple{a: agent(t, "decode", Config{}), bufA: pages(t, n), bufB: nixltest.Buffer{Addr: childMemory, Data: view}}
	c.b = newPeer(t, "prefill", file, env...)
	var err error
	c.regA, err = c.a.Register(nixl.DRAM, all(c.bufA))
	require.NoError(t, err)
	_, err = c.b.Register(nixl.DRAM, all(c.bufB))
	require.NoError(t, err)
	c.meet(t)
	return c
}

func (c *couple) meet(t testing.TB) {
	t.Helper()
	c.peer = introduce(t, c.a, c.b)
	introduce(t, c.b, c.a)
}

// split makes n entries that together are size bytes at either end, in an order
// of its own on the remote side.
func split(a, b nixltest.Buffer, size, n uint64) (local, remote []nixl.Descriptor) {
	each := size / n
	for i := range n {
		k := i ^ 1
		if k >= n {
			k = i
		}
		local = append(local, region(a, i*each, each))
		remote = append(remote, region(b, k*each, each))
	}
	return local, remote
}

func pattern(b []byte, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 1))
	word := r.Uint64()
	for i := 0; i+8 <= len(b); i += 8 {
		binary.NativeEndian.PutUint64(b[i:], word)
		word = word*6364136223846793005 + 1442695040888963407
	}
	for i := len(b) &^ 7; i < len(b); i++ {
		b[i] = byte(word >> (i % 8))
	}
}

// sizes are bytes and descriptors.
func sizes() [][2]uint64 {
	s := [][2]uint64{{1, 1}, {7, 1}, {4096, 1}, {4096, 4096}, {1 << 16, 2}, {1 << 20, 64}, {8 << 20, 512}, {16 << 20, 4096}}
	if *long {
		s = append(s, [2]uint64{256 << 20, 1}, [2]uint64{1 << 30, 1}, [2]uint64{1 << 30, 4096})
	} else {
		s = append(s, [2]uint64{64 << 20, 1})
	}
	return s
}

func most() int {
	n := uint64(0)
	for _, s := range sizes() {
		n = max(n, s[0])
	}
	return int(n)
}

// Both directions, any size, in one process and between two, over whatever UCX
// picks on this machine (shared memory) and over TCP.
func TestSizes(t *testing.T) {
	library(t)
	for _, where := range []string{"one process", "two processes", "two processes over TCP"} {
		t.Run(where, func(t *testing.T) {
			n := most()
			var a *Agent
			var bufA, bufB nixltest.Buffer
			var peer nixl.Peer
			var told func() []nixl.Notification
			if where == "one process" {
				p := newPair(t, n, Config{})
				a, bufA, bufB, peer = p.a, p.bufA, p.bufB, p.peer
				told = func() []nixl.Notification { m, err := p.b.Notifications(nil); require.NoError(t, err); return m }
			} else {
				if where != "two processes" {
					t.Setenv("UCX_TLS", "tcp,self")
				}
				c := newCouple(t, n)
				a, bufA, bufB, peer = c.a, c.bufA, c.bufB, c.peer
				told = func() []nixl.Notification { m, err := c.b.Notifications(nil); require.NoError(t, err); return m }
			}
			for i, s := range sizes() {
				for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
					size, entries := s[0], s[1]
					from, to := bufB.Data[:size], bufA.Data[:size]
					if op == nixl.Write {
						from, to = to, from
					}
					pattern(from, uint64(i))
					clear(to)
					local, remote := split(bufA, bufB, size, entries)
					message := fmt.Appendf(nil, "%s %d in %d", op, size, entries)
					x, err := a.NewTransfer(nixl.Spec{Op: op, Peer: peer, Local: local, Remote: remote, Notification: message})
					require.NoError(t, err)
					require.NoError(t, x.Post())
					require.NoError(t, wait(t, a, x), string(message))
					require.NoError(t, x.Close())
					// At the moment of the message the bytes are there.
					require.Equal(t, string(message), string(awaitMessage(t, told)))
					each := size / entries
					for k := range local {
						l, r := local[k].Addr-bufA.Addr, remote[k].Addr-bufB.Addr
						if !bytes.Equal(bufA.Data[l:l+each], bufB.Data[r:r+each]) {
							t.Fatalf("%s: entry %d differs", message, k)
						}
					}
				}
			}
		})
	}
}

func awaitMessage(t testing.TB, poll func() []nixl.Notification) []byte {
	t.Helper()
	clk := clock.Wall()
	for clk.Now() < patience {
		if m := poll(); len(m) > 0 {
			require.Len(t, m, 1)
			return m[0].Message
		}
		require.NoError(t, clk.Sleep(context.Background(), time.Millisecond))
	}
	t.Fatal("no message")
	return nil
}

// The peer is killed in mid transfer: what it was about is poisoned and stays
// registered until the transport is made anew; then the next life of the peer is
// met under the same name, and nothing of the past writes.
func TestPeerKilledInMidTransfer(t *testing.T) {
	rounds := 2
	if *long {
		rounds = 50
	}
	t.Setenv("UCX_TLS", "tcp,self")
	const size = 32 << 20
	c := newCouple(t, size)
	for i := range rounds {
		s := nixl.Spec{Op: nixl.Op(i % 2), Peer: c.peer, Local: all(c.bufA), Remote: all(c.bufB), Notification: []byte("never")}
		x, err := c.a.NewTransfer(s)
		require.NoError(t, err)
		idle, err := c.a.NewTransfer(s)
		require.NoError(t, err)
		// Stopped, so that the transfer can not be over before the kill.
		c.b.halt()
		require.NoError(t, x.Post())
		st, err := x.Status()
		require.NoError(t, err)
		require.Equal(t, nixl.InProgress, st)
		c.b.kill()
		unproven(t, wait(t, c.a, x), nixl.ErrDisconnected)
		require.ErrorIs(t, c.regA.Close(), nixl.ErrPoisoned)
		require.Len(t, c.a.Poisoned(), 1)
		quiet(t, idle.Post(), nixl.ErrNoPeer)

		require.NoError(t, c.a.Recover(c.peer))
		require.Empty(t, c.a.Poisoned())
		for k := range c.bufA.Data {
			c.bufA.Data[k] = 0xaa
		}
		old := c.peer
		c.b.again()
		c.meet(t)
		require.Greater(t, c.peer.Generation, old.Generation)
		quiet(t, idle.Post(), nixl.ErrStalePeer)
		require.NoError(t, idle.Close())
		require.NoError(t, x.Close())
		pattern(c.bufB.Data, uint64(i))
		s.Peer, s.Op, s.Notification = c.peer, nixl.Read, nil
		s.Local, s.Remote = []nixl.Descriptor{region(c.bufA, 0, 4096)}, []nixl.Descriptor{region(c.bufB, 0, 4096)}
		y, err := c.a.NewTransfer(s)
		require.NoError(t, err)
		require.NoError(t, y.Post())
		require.NoError(t, wait(t, c.a, y))
		require.NoError(t, y.Close())
		require.Equal(t, c.bufB.Data[:4096], c.bufA.Data[:4096])
		require.Equal(t, size-4096, bytes.Count(c.bufA.Data[4096:], []byte{0xaa}), "a transfer of the past wrote")
	}
	require.NoError(t, c.regA.Close())
}

// Over shared memory a post is a copy, which fails when the process is gone: no
// connection is there to tell. Even so nothing is taken for quiet.
func TestPeerKilledOverSharedMemory(t *testing.T) {
	const size = 1 << 20
	c := newCouple(t, size)
	move := func() error {
		x, err := c.a.NewTransfer(nixl.Spec{Peer: c.peer, Local: all(c.bufA), Remote: all(c.bufB), Notification: []byte("read")})
		require.NoError(t, err)
		defer func() { require.NoError(t, x.Close()) }()
		if err := x.Post(); err != nil {
			return err
		}
		return wait(t, c.a, x)
	}
	require.NoError(t, move())
	c.b.kill()
	err := move()
	require.Error(t, err)
	require.False(t, nixl.Quiet(err))
	require.True(t, errors.Is(err, nixl.ErrBackend) || errors.Is(err, nixl.ErrDisconnected), "%v", err)
	require.ErrorIs(t, c.regA.Close(), nixl.ErrPoisoned)
	require.NoError(t, c.a.Recover(c.peer))
	c.b.again()
	c.meet(t)
	pattern(c.bufB.Data, 3)
	require.NoError(t, move())
	require.True(t, bytes.Equal(c.bufA.Data, c.bufB.Data))
	require.NoError(t, c.regA.Close())
}

// The initiator is killed in mid write: the target lives on and serves its next
// life, and no message of the first one comes.
func TestInitiatorKilledInMidTransfer(t *testing.T) {
	const size = 32 << 20
	c := newCouple(t, size)
	me := introduce(t, c.b, c.a)
	x, err := c.b.NewTransfer(nixl.Spec{Op: nixl.Write, Peer: me, Local: all(c.bufB), Remote: all(c.bufA), Notification: []byte("never")})
	require.NoError(t, err)
	require.NoError(t, x.Post())
	c.b.kill()
	c.b.again()
	c.meet(t)
	require.NoError(t, c.b.Notify(introduce(t, c.b, c.a), []byte("alive")))
	got := awaitMessage(t, func() []nixl.Notification { m, err := c.a.Notifications(nil); require.NoError(t, err); return m })
	require.Equal(t, "alive", string(got))
}

// Two processes make agents at the same moment; both are done by the deadline.
func TestAgentsAtTheSameMoment(t *testing.T) {
	rounds := 2
	if *long {
		rounds = 20
	}
	for range rounds {
		var cs []*exec.Cmd
		var outs []*bytes.Buffer
		for range 2 {
			c, out := command(t, "agents"), &bytes.Buffer{}
			c.Stdout, c.Stderr = out, out
			cs, outs = append(cs, c), append(outs, out)
		}
		for _, c := range cs {
			require.NoError(t, c.Start())
		}
		for i, c := range cs {
			require.NoError(t, reap(t, c, patience, outs[i]), outs[i].String())
		}
	}
}

func init() {
	roles["agents"] = func() error {
		l, err := childLibrary()
		if err != nil {
			return err
		}
		made := make(chan error, 3)
		for i := range cap(made) {
			go func() {
				a, err := l.NewAgent(context.Background(), fmt.Sprintf("agent %d of %d", i, os.Getpid()), Config{})
				if err == nil {
					_, err = a.Metadata()
					err = errors.Join(err, a.Close())
				}
				made <- err
			}()
		}
		for range cap(made) {
			err = errors.Join(err, <-made)
		}
		return err
	}
}

// An agent that nobody uses takes no processor: its progress thread waits.
func TestIdleAgentsAreIdle(t *testing.T) {
	out, err := finish(t, command(t, "idle"), patience)
	require.NoError(t, err, out)
	t.Log(out)
}

func init() {
	roles["idle"] = func() error {
		a, b, move, _, err := loaded()
		if err != nil {
			return err
		}
		if err := move(); err != nil {
			return err
		}
		used := func() time.Duration {
			var u unix.Rusage
			_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
			return time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
		const pause = 400 * time.Millisecond
		before := used()
		_ = clock.Wall().Sleep(context.Background(), pause)
		spent := used() - before
		if spent > pause/4 {
			return fmt.Errorf("two idle agents took %v of processor in %v", spent, pause)
		}
		fmt.Printf("two idle agents: %v of processor in %v", spent, pause)
		return errors.Join(a.Close(), b.Close())
	}
}
