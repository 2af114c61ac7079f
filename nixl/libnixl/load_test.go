//go:build linux

package libnixl

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// unregistrable leaves what the library keeps of a registration that failed.
func unregistrable(t *testing.T, a *Agent) {
	t.Helper()
	_, err := a.Register(nixl.DRAM, []nixl.Descriptor{{Addr: 0, Len: 4096}})
	quiet(t, err, nixl.ErrBackend)
}

// withSections appends sections of one backend and of DRAM to a blob without a
// checksum: one for each list of regions.
func withSections(t *testing.T, raw []byte, backend string, sections ...[]RemoteRegion) []byte {
	t.Helper()
	_, at, err := parseMetadata(raw)
	require.NoError(t, err)
	out := slices.Clone(raw)
	n := binary.NativeEndian.Uint64(out[at.sections:])
	binary.NativeEndian.PutUint64(out[at.sections:], n+uint64(len(sections)))
	b := &blob{}
	for _, s := range sections {
		b.field("bknd", []byte(backend))
		b.field("nixlDList", []byte("nixlSDList"))
		b.field("t", binary.NativeEndian.AppendUint32(nil, uint32(nixl.DRAM)))
		b.count("n", uint64(len(s)))
		for _, r := range s {
			b.region(r.Addr, r.Len, r.Device, string(r.Key))
		}
	}
	return append(out, b.Bytes()...)
}

// raw is metadata as the library writes it.
func raw(t *testing.T, a *Agent) []byte {
	t.Helper()
	b, _, err := a.d.metadata(a.h)
	require.NoError(t, err)
	return b
}

func (p *pair) moves(t *testing.T) {
	t.Helper()
	pattern(p.bufB.Data, 3)
	clear(p.bufA.Data)
	s := p.spec(nixl.Read, 0, 4096)
	s.Notification = []byte("moved")
	x := p.transfer(t, s)
	require.NoError(t, x.Post())
	require.NoError(t, wait(t, p.a, x))
	require.Equal(t, p.bufB.Data[:4096], p.bufA.Data[:4096])
	require.NoError(t, x.Close())
	in := nixl.NewInbox(p.b, p.b.Clock(), 10)
	n, err := in.Wait(context.Background(), func(n nixl.Notification) bool { return string(n.Message) == "moved" }, p.b.Clock().Now()+patience)
	require.NoError(t, err)
	require.Equal(t, nixl.Notification{From: "decode", Message: []byte("moved")}, n)
}

// A registration that fails leaves no trace in what peers get, nor harm where
// another binding left one.
func TestMetadataAfterAFailedRegistration(t *testing.T) {
	a, b, other := agent(t, "decode", Config{}), agent(t, "prefill", Config{}), agent(t, "other", Config{})
	unregistrable(t, b)
	_, at, err := parseMetadata(raw(t, b))
	require.NoError(t, err)
	require.NotEmpty(t, at.empty, "the library has become better at this")
	sealed, err := b.Metadata()
	require.NoError(t, err)
	m, at, err := parseMetadata(sealed)
	require.NoError(t, err)
	require.Empty(t, at.empty)
	require.True(t, m.Sealed())
	_, s, err := a.d.load(a.h, sealed)
	require.NoError(t, err)
	require.Equal(t, statusOK, s, "as other bindings load it")

	p, err := other.AddPeer(raw(t, b))
	require.NoError(t, err)
	require.True(t, known(t, other, p))
	buf := pages(t, 4096)
	_, err = b.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	require.Equal(t, p, introduce(t, other, b))
	// Only an empty section, of a peer that is known.
	partial, err := b.PartialMetadata(nixl.DRAM, all(buf))
	require.NoError(t, err)
	_, at, err = parseMetadata(partial)
	require.NoError(t, err)
	none := binary.NativeEndian.AppendUint64(slices.Clone(partial[:at.sections]), 0)
	q, err := other.AddPeer(withSections(t, append(none, '|'), "UCX", nil))
	require.NoError(t, err)
	require.Equal(t, p, q)
	require.True(t, known(t, other, p))
}

// What would make the library fail is refused before it, and the peer stays.
func TestUnloadableMetadata(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	good := raw(t, p.b)
	m, err := ParseMetadata(good)
	require.NoError(t, err)
	other := m.Regions[0]
	other.Key = slices.Clone(other.Key)
	other.Key[8] ^= 1 // the type of the memory: the form stays right
	partial, err := p.b.PartialMetadata(nixl.DRAM, all(p.bufB))
	require.NoError(t, err)
	_, at, err := parseMetadata(partial)
	require.NoError(t, err)
	none := append(binary.NativeEndian.AppendUint64(slices.Clone(partial[:at.sections]), 0), '|')
	loads := p.s.count("load")
	for _, whole := range [][]byte{good, none} {
		one, two := m.Regions[0], other
		one.Addr, two.Addr = 1<<40, 1<<40
		_, err = p.a.AddPeer(withSections(t, whole, "UCX", []RemoteRegion{one, two}))
		quiet(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "two keys")
	}
	_, err = p.a.AddPeer(renamed(good, "x"+aliasMark+"1"))
	quiet(t, err, nixl.ErrInvalid)
	// UCX's regions with the connection of another backend.
	var b blob
	b.WriteString("nixlSerDes|")
	b.field("Agent", []byte("stranger"))
	b.count("Conns", 1)
	b.field("t", []byte("MOCK"))
	b.field("c", []byte{1})
	b.field("", []byte("MemSection"))
	b.count("nixlSecElms", 0)
	_, err = p.a.AddPeer(seal(withSections(t, b.Bytes(), "UCX", m.Regions)))
	quiet(t, err, nixl.ErrInvalid)
	require.ErrorContains(t, err, "no connection")
	require.Equal(t, loads, p.s.count("load"))
	p.moves(t)
}

// The library drops a peer when a load fails and UCX keeps the connection: the
// peer is lost here, and comes back without Recover.
func TestAfterALoadThatFailed(t *testing.T) {
	for _, how := range []string{"more regions", "partial", "anew"} {
		t.Run(how, func(t *testing.T) {
			p := newPair(t, 1<<16, Config{})
			fail := func(a handle, b []byte) (string, status, error) {
				return p.s.driver.load(a, withSections(t, unsealed(t, b), "UCX", nil))
			}
			if how == "anew" {
				require.NoError(t, p.a.RemovePeer(p.peer))
			}
			more := pages(t, 4096)
			_, err := p.b.Register(nixl.DRAM, all(more))
			require.NoError(t, err)
			blob, err := p.b.Metadata()
			if how == "partial" {
				blob, err = p.b.PartialMetadata(nixl.DRAM, all(more))
			}
			require.NoError(t, err)
			idle := p.peer
			p.s.onLoad = fail
			_, err = p.a.AddPeer(blob)
			quiet(t, err, nixl.ErrNoPeer)
			p.s.onLoad = nil
			_, err = current(p.a, "prefill")
			quiet(t, err, nixl.ErrNoPeer)
			_, err = p.a.NewTransfer(p.spec(nixl.Read, 0, 64))
			require.Error(t, err)

			p.peer = introduce(t, p.a, p.b)
			require.Greater(t, p.peer.Generation, idle.Generation)
			p.moves(t)
			require.NoError(t, p.a.Notify(p.peer, []byte("x")))
			require.NoError(t, p.a.Connect(p.peer))
			require.True(t, known(t, p.a, p.peer))
			l, err := p.a.PrepareRemote(p.peer, nixl.DRAM, all(p.bufB))
			require.NoError(t, err)
			require.NoError(t, l.Close())
			require.NoError(t, p.a.RemovePeer(p.peer))
			_, s, err := p.s.driver.load(p.a.h, raw(t, p.b))
			require.NoError(t, err)
			require.NotEqual(t, statusOK, s, "UCX has become better at this")
			p.peer = introduce(t, p.a, p.b)
			p.moves(t)
			require.NoError(t, p.a.Recover(p.peer))
			p.meet(t)
			p.moves(t)
		})
	}
}

// unsealed takes the checksum of a blob away.
func unsealed(t *testing.T, b []byte) []byte {
	t.Helper()
	m, at, err := parseMetadata(b)
	require.NoError(t, err)
	if !m.Sealed() {
		return b
	}
	if len(m.Connections) == 0 {
		return b[:len(b)-len(sealName)-32]
	}
	const field = 8 + 1 + 1
	out := binary.NativeEndian.AppendUint64(slices.Clone(b[:at.count]), uint64(len(m.Connections)))
	return append(append(out, '|'), b[at.connections+2*field+len(sealName)+32:]...)
}

// What a load that failed has left of a stranger is taken back.
func TestNothingIsLeftOfAFailedLoad(t *testing.T) {
	a, s := spied(t, "decode", Config{})
	b := agent(t, "prefill", Config{})
	s.onLoad = func(h handle, blob []byte) (string, status, error) {
		name, st, err := s.driver.load(h, blob)
		require.NoError(t, err)
		require.Equal(t, statusOK, st)
		return name, statusBackend, nil
	}
	blob, err := b.Metadata()
	require.NoError(t, err)
	_, err = a.AddPeer(blob)
	quiet(t, err, nixl.ErrBackend)
	st, err := a.d.check(a.h, "prefill", nixl.DRAM, nil)
	require.NoError(t, err)
	require.Equal(t, statusNotFound, st)
	s.onLoad = nil
	introduce(t, a, b)
}

// While transfers are in flight the library is not given keys of which nobody
// knows whether it can load them.
func TestNoRiskWithTransfersInFlight(t *testing.T) {
	p := newPair(t, 1<<16, Config{})
	x := p.transfer(t, p.spec(nixl.Read, 0, 64))
	p.s.onPoll = always(statusInProgress)
	p.s.onPost = func() (status, bool) {
		_, err := p.s.driver.post(p.a.h, x.req)
		require.NoError(t, err)
		return statusInProgress, true
	}
	require.NoError(t, x.Post())
	more := pages(t, 4096)
	_, err := p.b.Register(nixl.DRAM, all(more))
	require.NoError(t, err)
	partial, err := p.b.PartialMetadata(nixl.DRAM, all(more))
	require.NoError(t, err)
	sealed, err := p.b.Metadata()
	require.NoError(t, err)
	loads := p.s.count("load")
	for _, b := range [][]byte{unsealed(t, sealed), unsealed(t, partial)} {
		_, err = p.a.AddPeer(b)
		quiet(t, err, nixl.ErrBusy)
	}
	require.Equal(t, loads, p.s.count("load"))
	q, err := p.a.AddPeer(sealed)
	require.NoError(t, err)
	require.Equal(t, p.peer, q)
	p.s.onPoll, p.s.onPost = nil, nil
	require.NoError(t, wait(t, p.a, x))
	more = pages(t, 4096)
	_, err = p.b.Register(nixl.DRAM, all(more))
	require.NoError(t, err)
	q, err = p.a.AddPeer(raw(t, p.b))
	require.NoError(t, err)
	require.Equal(t, p.peer, q)
	p.moves(t)
}
