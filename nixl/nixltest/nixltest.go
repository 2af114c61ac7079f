// Package nixltest tests implementations of nixl.Agent, as testing/fstest tests
// file systems. It is a table of behaviours that every fabric has to show; the
// tests of a fabric run it with [Run], on two agents that it opens.
package nixltest

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// Size is what each [Buffer] of a [Pair] has at least.
const Size = 1 << 20

// patience is how long a behaviour waits for what has to come; grace is how
// long it looks for what must not.
const (
	patience = 10 * time.Second
	grace    = 2 * time.Millisecond
)

// Pair is two agents that do not know each other yet, with a buffer each that
// is not registered yet. open makes a new one for each behaviour and leaves
// its end to t.Cleanup.
type Pair struct {
	Clock            clock.Clock
	A, B             nixl.Agent
	BufferA, BufferB Buffer
	Memory           nixl.MemoryType

	// Disconnect cuts the connection between A and B while transfers may be in
	// flight. nil: the fabric can not be made to.
	Disconnect func()
	// RestartB ends B as a crash would and returns its next life. nil: likewise.
	RestartB func() nixl.Agent
}

// Buffer is memory that an agent can register.
type Buffer struct {
	Addr uint64
	Data []byte
}

func (b Buffer) at(off, n uint64) nixl.Descriptor {
	return nixl.Descriptor{Addr: b.Addr + off, Len: n}
}

func (b Buffer) all() []nixl.Descriptor { return []nixl.Descriptor{b.at(0, uint64(len(b.Data)))} }

func anyMessage(nixl.Notification) bool { return true }

var behaviours = map[string]func(*rig){
	"read moves exactly its bytes":                 testRead,
	"write moves exactly its bytes":                testWrite,
	"scattered entries":                            testScattered,
	"states in order":                              testStates,
	"post while in flight":                         testPostBusy,
	"repost moves what is there now":               testRepost,
	"spec is copied":                               testSpecCopied,
	"several goroutines":                           testConcurrent,
	"notification after the bytes":                 testNotification,
	"notification leaves with the poll":            testNotificationNeedsPoll,
	"notification without bytes in it":             testEmptyNotification,
	"message without transfer":                     testNotify,
	"unregistered memory":                          testUnregistered,
	"unknown peer":                                 testUnknownPeer,
	"bad lists":                                    testBadLists,
	"files are refused or served":                  testMemoryTypes,
	"damaged metadata":                             testDamagedMetadata,
	"metadata covers what was registered":          testMetadataIsASnapshot,
	"registration is counted":                      testRegistrationCounted,
	"bad registrations":                            testBadRegistrations,
	"region inside another one":                    testContained,
	"region inside another one in flight":          testContainedBusy,
	"overlapping regions are refused":              testPartialOverlap,
	"close of a transfer":                          testTransferClose,
	"close of a registration in flight":            testRegistrationBusy,
	"close of a registration under a transfer":     testRegistrationGone,
	"peer removed":                                 testRemovePeer,
	"close of an agent":                            testAgentClose,
	"cancel before the post":                       testCancelIdle,
	"cancel in flight":                             testCancelInFlight,
	"cancel after the end":                         testCancelAfterTheEnd,
	"cancel of one among others":                   testCancelAmongOthers,
	"cancel while the transfer is polled":          testCancelPolled,
	"cancel races the end":                         testCancelRaces,
	"disconnect: first news, then silence":         testDisconnect,
	"disconnect: the way back":                     testReconnect,
	"restart: old handles are refused":             testRestart,
	"restart: a peer of the past can not be added": testStaleMetadata,
}

// Run runs the table, each behaviour on a pair of its own.
func Run(t *testing.T, open func(t *testing.T) Pair) {
	for _, name := range slices.Sorted(maps.Keys(behaviours)) {
		t.Run(name, func(t *testing.T) { behaviours[name](&rig{T: t, Pair: open(t)}) })
	}
}

// rig is a pair with the steps that behaviours are made of.
type rig struct {
	*testing.T
	Pair
	regA, regB nixl.Registration
	peer       nixl.Peer // B as A knows it
}

// connect registers both buffers and makes A and B known to each other; B's
// buffer gets a pattern.
func (r *rig) connect() {
	r.Helper()
	r.regA = r.register(r.A, r.BufferA)
	r.regB = r.register(r.B, r.BufferB)
	r.peer = r.add(r.A, r.B)
	r.add(r.B, r.A)
	fill(r.BufferB.Data, 1)
}

func (r *rig) register(a nixl.Agent, b Buffer) nixl.Registration {
	r.Helper()
	reg, err := a.Register(r.Memory, b.all())
	require.NoError(r, err)
	require.Equal(r, b.all(), reg.Regions())
	return reg
}

func (r *rig) add(a, b nixl.Agent) nixl.Peer {
	r.Helper()
	blob, err := b.Metadata()
	require.NoError(r, err)
	p, err := a.AddPeer(blob)
	require.NoError(r, err)
	require.Equal(r, b.Name(), p.Name)
	require.NotZero(r, p.Generation)
	return p
}

// spec is a transfer of one entry of n bytes at the same offset on both sides.
func (r *rig) spec(op nixl.Op, off, n uint64) nixl.Spec {
	return nixl.Spec{
		Op: op, Peer: r.peer, LocalMemory: r.Memory, RemoteMemory: r.Memory,
		Local:  []nixl.Descriptor{r.BufferA.at(off, n)},
		Remote: []nixl.Descriptor{r.BufferB.at(off, n)},
	}
}

func (r *rig) transfer(s nixl.Spec) nixl.Transfer {
	r.Helper()
	t, err := r.A.NewTransfer(s)
	require.NoError(r, err)
	return t
}

// run makes, posts and awaits.
func (r *rig) run(s nixl.Spec) {
	r.Helper()
	t := r.transfer(s)
	require.NoError(r, t.Post())
	require.NoError(r, r.wait(t))
	require.NoError(r, t.Close())
}

func (r *rig) wait(t nixl.Transfer) error {
	return nixl.Wait(context.Background(), r.Clock, r.A, t, r.Clock.Now()+patience)
}

// canceled checks the end of a transfer that was canceled while it was in
// flight.
func (r *rig) canceled(err error) {
	r.Helper()
	require.ErrorIs(r, err, nixl.ErrCanceled)
	var e *nixl.Error
	require.ErrorAs(r, err, &e)
	require.True(r, e.Over && !e.NeverHanded, "%+v", e)
	require.True(r, nixl.Quiet(err), "not quiet: %v", err)
}

// message waits for the next message to a.
func (r *rig) message(a nixl.Agent) nixl.Notification {
	r.Helper()
	in := nixl.NewInbox(a, r.Clock, 8)
	n, err := in.Wait(context.Background(), anyMessage, r.Clock.Now()+patience)
	require.NoError(r, err)
	require.Zero(r, in.Len())
	return n
}

// silence looks for messages to a that must not come.
func (r *rig) silence(a nixl.Agent) {
	r.Helper()
	require.NoError(r, r.Clock.Sleep(context.Background(), grace))
	got, err := a.Notifications(nil)
	require.NoError(r, err)
	require.Empty(r, got)
}

// refused checks an error that must prove that nothing was handed over.
func (r *rig) refused(err error, want error) {
	r.Helper()
	require.ErrorIs(r, err, want)
	var e *nixl.Error
	require.ErrorAs(r, err, &e)
	require.True(r, nixl.Quiet(err), "not quiet: %v", err)
}

// unproven checks an error that must not.
func (r *rig) unproven(err error, want error) {
	r.Helper()
	require.ErrorIs(r, err, want)
	require.False(r, nixl.Quiet(err), "quiet: %v", err)
}

// onlyCopied checks that exactly [off, off+n) of A's buffer is that of B's, and
// that the rest of A's holds zeros.
func (r *rig) onlyCopied(off, n uint64) {
	r.Helper()
	a, b := r.BufferA.Data, r.BufferB.Data
	require.True(r, bytes.Equal(a[off:off+n], b[off:off+n]), "bytes differ")
	require.True(r, zero(a[:off]) && zero(a[off+n:]), "bytes changed outside of the entry")
}

func fill(b []byte, seed byte) {
	for i := range b {
		b[i] = byte(i>>8)*31 ^ byte(i) + seed | 1
	}
}

func zero(b []byte) bool { return bytes.Count(b, []byte{0}) == len(b) }
