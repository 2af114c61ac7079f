//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/nixltest"
)

// pair is an agent under watch and a plain one, with all of a buffer of n bytes
// registered on each side and known to each other.
type pair struct {
	a          *Agent
	s          *spy
	b          *Agent
	bufA, bufB nixltest.Buffer
	regA       nixl.Registration
	peer       nixl.Peer
}

func newPair(t testing.TB, n int, c Config) *pair {
	t.Helper()
	p := &pair{bufA: pages(t, n), bufB: pages(t, n)}
	p.a, p.s = spied(t, "decode", c)
	p.b = agent(t, "prefill", Config{})
	var err error
	p.regA, err = p.a.Register(nixl.DRAM, all(p.bufA))
	require.NoError(t, err)
	_, err = p.b.Register(nixl.DRAM, all(p.bufB))
	require.NoError(t, err)
	p.meet(t)
	return p
}

// meet makes the agents known to each other, again or for the first time.
func (p *pair) meet(t testing.TB) {
	t.Helper()
	p.peer = introduce(t, p.a, p.b)
	introduce(t, p.b, p.a)
}

func introduce(t testing.TB, a, b nixl.Agent) nixl.Peer {
	t.Helper()
	blob, err := b.Metadata()
	require.NoError(t, err)
	p, err := a.AddPeer(blob)
	require.NoError(t, err)
	return p
}

func (p *pair) spec(op nixl.Op, off, n uint64) nixl.Spec {
	return nixl.Spec{
		Op: op, Peer: p.peer,
		Local:  []nixl.Descriptor{region(p.bufA, off, n)},
		Remote: []nixl.Descriptor{region(p.bufB, off, n)},
	}
}

func (p *pair) transfer(t testing.TB, s nixl.Spec) *Transfer {
	t.Helper()
	x, err := p.a.NewTransfer(s)
	require.NoError(t, err)
	return x.(*Transfer)
}

func wait(t testing.TB, a *Agent, x nixl.Transfer) error {
	t.Helper()
	return nixl.Wait(context.Background(), a.Clock(), a, x, a.Clock().Now()+patience)
}

func quiet(t testing.TB, err, want error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.True(t, nixl.Quiet(err), "not quiet: %v", err)
}

func unproven(t testing.TB, err, want error) {
	t.Helper()
	require.ErrorIs(t, err, want)
	require.False(t, nixl.Quiet(err), "quiet: %v", err)
}

// The library lets a request go while 64 MiB are on their way; the binding does
// not, nor the memory behind it, and after a close nothing changes any more.
func TestNothingInFlightIsLetGo(t *testing.T) {
	const size = 64 << 20
	p := newPair(t, size, Config{})
	for i := range p.bufB.Data {
		p.bufB.Data[i] = byte(i>>12) | 1
	}
	x := p.transfer(t, p.spec(nixl.Read, 0, size))
	require.NoError(t, x.Post())
	unproven(t, x.Close(), nixl.ErrBusy)
	require.ErrorIs(t, p.regA.Close(), nixl.ErrBusy)
	require.ErrorIs(t, p.a.RemovePeer(p.peer), nixl.ErrBusy)
	require.ErrorIs(t, p.a.Close(), nixl.ErrBusy)
	require.Zero(t, p.s.count("release")+p.s.count("deregister")+p.s.count("invalidate")+p.s.count("destroy agent"))

	require.NoError(t, wait(t, p.a, x))
	require.NoError(t, x.Close())
	require.NoError(t, p.regA.Close())
	require.True(t, bytes.Equal(p.bufA.Data, p.bufB.Data))
	require.Equal(t, 1, p.s.count("deregister"))
	for i := range p.bufA.Data {
		p.bufA.Data[i] = 0xee
	}
	require.NoError(t, clock.Wall().Sleep(context.Background(), 20*time.Millisecond))
	require.Equal(t, size, bytes.Count(p.bufA.Data, []byte{0xee}), "the buffer changed after the close")
}

// Two owners of one region, closed in either order, and one list with equal
// entries: the library hears of it once.
func TestEqualRegionsGoDownOnce(t *testing.T) {
	a, s := spied(t, "decode", Config{})
	buf := pages(t, 1<<20)
	for _, firstFirst := range []bool{true, false} {
		before := s.count("register")
		one, err := a.Register(nixl.DRAM, all(buf))
		require.NoError(t, err)
		two, err := a.Register(nixl.DRAM, append(all(buf), all(buf)...))
		require.NoError(t, err)
		require.Equal(t, 1, s.count("register")-before)
		if !firstFirst {
			one, two = two, one
		}
		before = s.count("deregister")
		require.NoError(t, one.Close())
		require.NoError(t, one.Close())
		require.Zero(t, s.count("deregister")-before)
		require.NoError(t, two.Close())
		require.NoError(t, two.Close())
		require.Equal(t, 1, s.count("deregister")-before)
	}
}

func TestOverlapsAreTold(t *testing.T) {
	var told []nixl.Overlap
	var a *Agent
	a = agent(t, "decode", Config{Overlap: func(o nixl.Overlap) {
		told = append(told, o)
		_, err := a.Metadata() // no lock is held
		require.NoError(t, err)
		r, err := a.Register(nixl.DRAM, []nixl.Descriptor{o.New.Descriptor})
		require.NoError(t, err)
		require.NoError(t, r.Close())
	}})
	buf := pages(t, 1<<16)
	_, err := a.Register(nixl.DRAM, []nixl.Descriptor{region(buf, 0, 8192)})
	require.NoError(t, err)
	require.Empty(t, told)
	_, err = a.Register(nixl.DRAM, []nixl.Descriptor{region(buf, 4096, 4096)})
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, region(buf, 0, 8192), told[0].Old.Descriptor)
}

// A handle is dead after its first release, whatever came of it.
func TestReleasedOnce(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	var real []handle
	p.s.onRelease = func() (status, bool) { real = append(real, x.req); return statusBackend, true }
	require.NoError(t, x.Close())
	require.NoError(t, x.Close())
	require.Equal(t, 1, p.s.count("release"))
	_, err := x.Status()
	require.ErrorIs(t, err, nixl.ErrClosed)
	quiet(t, x.Post(), nixl.ErrClosed)
	p.s.onRelease = nil
	_, err = p.s.driver.release(p.a.h, real[0])
	require.NoError(t, err)
}

// The native requests of idle transfers do not outlive what they point into.
func TestIdleRequestsGoBeforeTheirMemory(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x, y := p.transfer(t, p.spec(nixl.Read, 0, 64)), p.transfer(t, p.spec(nixl.Write, 0, 64))
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x))
	require.NoError(t, p.regA.Close())
	require.Equal(t, 2, p.s.count("release"))
	quiet(t, x.Post(), nixl.ErrNotRegistered)
	quiet(t, y.Post(), nixl.ErrNotRegistered)
	require.NoError(t, x.Close())
	require.Equal(t, 2, p.s.count("release"))
}

// Two posts of one transfer whose native request was dropped make one each: one
// stays, the other is released, and so is what a closed transfer would get.
func TestTwoPostsOfADroppedRequest(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	drop := func() { p.a.dropRequests(func(*Transfer) bool { return true }) }
	// Each makes its request before either keeps one.
	drop()
	made := make(chan struct{}, 2)
	both := make(chan struct{})
	p.s.onCreate = func() { made <- struct{}{}; <-both }
	errs := make(chan error, 2)
	for range 2 {
		go func() { errs <- x.Post() }()
	}
	<-made
	<-made
	close(both)
	one, two := <-errs, <-errs
	if one != nil {
		one, two = two, one
	}
	require.NoError(t, one)
	if two != nil { // the second post may also come when the first is done
		require.ErrorIs(t, two, nixl.ErrBusy)
	}
	p.s.onCreate = nil
	require.NoError(t, wait(t, p.a, x))
	require.Equal(t, 3, p.s.count("create"))
	require.Equal(t, 2, p.s.count("release"), "the dropped one and the one too many")
	p.a.mu.Lock()
	require.Same(t, x, p.a.requests)
	require.Nil(t, x.next)
	require.Nil(t, x.prev)
	p.a.mu.Unlock()

	// Dropped once more while it is being made anew, and closed meanwhile.
	drop()
	p.s.onCreate = func() { require.NoError(t, x.Close()) }
	quiet(t, x.Post(), nixl.ErrClosed)
	p.s.onCreate = nil
	require.Equal(t, p.s.count("create"), p.s.count("release"))
	require.Zero(t, inFlight(p.a))
}

// The peer registered anew where it had been: its keys have changed, and the
// library would use those of the past. The generation stays, and so do prepared
// transfers, which get a new native request.
func TestMemoryThatCameBackHasNewKeys(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	extra := pages(t, 1<<16)
	reg, err := p.b.Register(nixl.DRAM, all(extra))
	require.NoError(t, err)
	require.Equal(t, p.peer, introduce(t, p.a, p.b))
	require.Zero(t, p.s.count("invalidate"), "more memory needs no new connection")
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	require.NoError(t, reg.Close())
	require.NoError(t, x.Post())
	blob, err := p.b.Metadata()
	require.NoError(t, err)
	_, err = p.a.AddPeer(blob)
	require.ErrorIs(t, err, nixl.ErrBusy, "in flight")
	require.NoError(t, wait(t, p.a, x))
	require.Equal(t, p.peer, introduce(t, p.a, p.b))
	require.Equal(t, 1, p.s.count("invalidate"))
	s := p.spec(nixl.Read, 0, 64)
	s.Remote = []nixl.Descriptor{region(extra, 0, 64)}
	_, err = p.a.NewTransfer(s)
	quiet(t, err, nixl.ErrNotRegistered)
	p.bufB.Data[7] = 77
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x))
	require.Equal(t, byte(77), p.bufA.Data[7])
}

// A post that fails half way leaves descriptors that nobody has a handle of.
func TestPostThatFailsHalfWay(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	p.s.onPost = once(statusBackend)
	unproven(t, x.Post(), nixl.ErrBackend)
	require.Zero(t, inFlight(p.a))
	require.Equal(t, []nixl.Region{{Type: nixl.DRAM, Descriptor: all(p.bufA)[0]}}, p.a.Poisoned())
	require.ErrorIs(t, p.regA.Close(), nixl.ErrPoisoned)
	require.NoError(t, x.Close())
	require.ErrorIs(t, p.regA.Close(), nixl.ErrPoisoned, "a release is no proof")
	require.Zero(t, p.s.count("deregister"))
	require.NoError(t, p.a.RemovePeer(p.peer))
	require.ErrorIs(t, p.regA.Close(), nixl.ErrPoisoned, "nor is the end of the connection")

	require.NoError(t, p.a.Recover(p.peer))
	require.Empty(t, p.a.Poisoned())
	require.Equal(t, 2, p.s.count("create agent"))
	require.Equal(t, 1, p.s.count("destroy agent"))
	old := p.peer
	p.b.mu.Lock()
	known := p.b.peers.Check("", nixl.Peer{Name: "decode", Generation: 1})
	p.b.mu.Unlock()
	require.NoError(t, known)
	p.meet(t)
	require.Greater(t, p.peer.Generation, old.Generation)
	y := p.transfer(t, p.spec(nixl.Read, 0, 64))
	require.NoError(t, y.Post())
	require.NoError(t, wait(t, p.a, y))
	require.NoError(t, p.regA.Close())
}

func TestRecoverIsRefused(t *testing.T) {
	p := newPair(t, 8<<20, Config{})
	quiet(t, p.a.Recover(nixl.Peer{Name: "nobody", Generation: 1}), nixl.ErrNoPeer)
	quiet(t, p.a.Recover(nixl.Peer{Name: "prefill", Generation: 9}), nixl.ErrNoPeer)
	// A transfer with another peer is in flight.
	bystander := introduce(t, p.a, agent(t, "bystander", Config{}))
	x := p.transfer(t, p.spec(nixl.Read, 0, 8<<20))
	require.NoError(t, x.Post())
	require.ErrorIs(t, p.a.Recover(bystander), nixl.ErrBusy)
	require.NoError(t, wait(t, p.a, x))
	require.Equal(t, p.peer, mustPeer(t, p.a, "prefill"), "not made anew")
}

// An agent that can not be made anew is closed: its memory is quiet all the
// same.
func TestRecoverThatFails(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	p.s.onPost = once(statusBackend)
	require.Error(t, x.Post())
	p.s.onCreateAgent = always(statusBackend)
	require.ErrorIs(t, p.a.Recover(p.peer), nixl.ErrBackend)
	require.NoError(t, p.regA.Close())
	unproven(t, x.Post(), nixl.ErrClosed)
	_, err := p.a.Metadata()
	require.ErrorIs(t, err, nixl.ErrClosed)
}

// One request sees the connection fail; what the others say then says nothing.
func TestStrangersDisconnect(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x, y := p.transfer(t, p.spec(nixl.Read, 0, 64)), p.transfer(t, p.spec(nixl.Read, 64, 64))
	idle := p.transfer(t, p.spec(nixl.Read, 128, 64))
	p.s.onPost = always(statusInProgress)
	require.NoError(t, x.Post())
	require.NoError(t, y.Post())
	p.s.onPoll = once(statusBackend)
	_, err := x.Status()
	unproven(t, err, nixl.ErrDisconnected)
	polls := p.s.count("poll")
	_, err = y.Status()
	unproven(t, err, nixl.ErrDisconnected)
	require.Equal(t, polls, p.s.count("poll"), "the library has nothing to say of it")
	quiet(t, idle.Post(), nixl.ErrNoPeer)
	unproven(t, x.Post(), nixl.ErrNoPeer)
	require.ErrorIs(t, p.regA.Close(), nixl.ErrPoisoned)
	require.Zero(t, p.s.count("invalidate"), "not by us while anything was in flight")
	p.s.onPost, p.s.onPoll = nil, nil
	// The defined way back, with the memory still poisoned: other bytes of it
	// can be used.
	old := p.peer
	p.meet(t)
	require.Greater(t, p.peer.Generation, old.Generation)
	quiet(t, idle.Post(), nixl.ErrStalePeer)
	z := p.transfer(t, p.spec(nixl.Read, 4096, 64))
	require.NoError(t, z.Post())
	require.NoError(t, wait(t, p.a, z))
	require.ErrorIs(t, p.regA.Close(), nixl.ErrPoisoned)
}

// What the codes of the library become.
func TestErrorMapping(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	for _, c := range []struct {
		code status
		want error
	}{{statusInvalid, nixl.ErrInvalid}, {statusState, nixl.ErrBackend}, {statusException, nixl.ErrBackend}, {statusNotFound, nixl.ErrNoPeer}, {-77, nixl.ErrBackend}} {
		x := p.transfer(t, p.spec(nixl.Read, 0, 64))
		p.s.onPost = once(c.code)
		unproven(t, x.Post(), c.want)
		require.NoError(t, x.Close())
	}
	// The peer is dropped by the library itself, as after a disconnect.
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	_, err := p.s.driver.invalidate(p.a.h, "prefill")
	require.NoError(t, err)
	unproven(t, x.Post(), nixl.ErrDisconnected)
	_, err = p.a.NewTransfer(p.spec(nixl.Read, 0, 64))
	quiet(t, err, nixl.ErrNoPeer)
}

// Notifications are sent once, by the poll that sees the end, and never after a
// failure.
func TestNotificationOnlyAfterSuccess(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	s := p.spec(nixl.Read, 0, 64)
	s.Notification = []byte("done")
	x := p.transfer(t, s)
	require.NoError(t, x.Post())
	require.Zero(t, p.s.count("notify"))
	require.NoError(t, wait(t, p.a, x))
	require.NoError(t, wait(t, p.a, x))
	require.Equal(t, 1, p.s.count("notify"))
	p.s.onPost = once(statusInProgress)
	p.s.onPoll = once(statusBackend)
	require.NoError(t, x.Post())
	require.Error(t, wait(t, p.a, x))
	require.Equal(t, 1, p.s.count("notify"))
}

// A notification that can not be sent fails the transfer, whose bytes have all
// arrived: nothing is poisoned.
func TestNotificationFailsAfterSuccess(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	s := p.spec(nixl.Read, 0, 64)
	s.Notification = []byte("done")
	x := p.transfer(t, s)
	pattern(p.bufB.Data, 5)
	p.s.onNotify = once(statusBackend)
	require.NoError(t, x.Post())
	err := wait(t, p.a, x)
	quiet(t, err, nixl.ErrBackend)
	require.ErrorContains(t, err, "notification")
	require.Equal(t, p.bufB.Data[:64], p.bufA.Data[:64])
	require.Empty(t, p.a.Poisoned())
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x), "the next post is another")
	require.NoError(t, p.regA.Close())

	// The proof is of this post alone.
	_, err = p.a.Register(nixl.DRAM, all(p.bufA))
	require.NoError(t, err)
	p.s.onPost, p.s.onPoll = once(statusInProgress), once(statusBackend)
	p.s.onNotify = once(statusBackend)
	x = p.transfer(t, s)
	require.NoError(t, x.Post())
	unproven(t, wait(t, p.a, x), nixl.ErrDisconnected)
	require.NotEmpty(t, p.a.Poisoned())
	p.a.mu.Lock()
	p.a.peers.Found(p.peer)
	p.a.mu.Unlock()
	p.s.onPost, p.s.onPoll = nil, nil
	require.NoError(t, x.Post())
	err = wait(t, p.a, x)
	unproven(t, err, nixl.ErrBackend)
	require.ErrorContains(t, err, "notification")
	require.NoError(t, p.a.Recover(p.peer))
}

// Adding and removing one peer from many goroutines while others transfer:
// every call either works or says why not, and nothing crashes.
func TestPeersComeAndGo(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	blob, err := p.b.Metadata()
	require.NoError(t, err)
	var wg sync.WaitGroup
	deadline := clock.Wall()
	for g := range 3 {
		wg.Go(func() {
			for deadline.Now() < 300*time.Millisecond {
				q, err := p.a.AddPeer(blob)
				if err != nil {
					continue
				}
				if g > 0 {
					s := p.spec(nixl.Read, uint64(g)*64, 64)
					s.Peer = q
					if x, err := p.a.NewTransfer(s); err == nil {
						if x.Post() == nil {
							_ = wait(t, p.a, x)
						}
						_ = x.Close()
					}
				} else {
					_ = p.a.RemovePeer(q)
				}
			}
		})
	}
	wg.Wait()
	require.Zero(t, inFlight(p.a))
	p.peer = introduce(t, p.a, p.b)
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x))
}

// Recover with others posting: each post works or is refused, and nothing is
// used that is gone.
func TestRecoverUnderLoad(t *testing.T) {
	p := newPair(t, 1<<20, Config{})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range uint64(3) {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				p.b.mu.Lock() // for p.peer, which meet changes
				s := p.spec(nixl.Read, g*4096, 4096)
				p.b.mu.Unlock()
				x, err := p.a.NewTransfer(s)
				if err != nil {
					continue
				}
				if x.Post() == nil {
					_ = wait(t, p.a, x)
				}
				_ = x.Close()
			}
		})
	}
	for range 5 {
		clk := clock.Wall()
		for {
			err := p.a.Recover(p.peer)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, nixl.ErrBusy)
			require.Less(t, clk.Now(), patience)
		}
		blob, err := p.b.Metadata()
		require.NoError(t, err)
		q, err := p.a.AddPeer(blob)
		require.NoError(t, err)
		p.b.mu.Lock()
		p.peer = q
		p.b.mu.Unlock()
	}
	close(stop)
	wg.Wait()
}
