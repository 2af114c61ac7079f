package nixltest

import (
	"math"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

func testUnregistered(r *rig) {
	n := uint64(len(r.BufferA.Data))
	half := func(b Buffer) []nixl.Descriptor { return []nixl.Descriptor{b.at(0, n/2)} }
	_, err := r.A.Register(r.Memory, half(r.BufferA))
	require.NoError(r, err)
	_, err = r.B.Register(r.Memory, half(r.BufferB))
	require.NoError(r, err)
	r.peer = r.add(r.A, r.B)
	fill(r.BufferB.Data, 1)
	for _, c := range []struct{ local, remote nixl.Descriptor }{
		{r.BufferA.at(n/2, 64), r.BufferB.at(0, 64)},                                                      // local, wholly outside
		{r.BufferA.at(n/2-63, 64), r.BufferB.at(0, 64)},                                                   // by one byte
		{r.BufferA.at(0, 64), r.BufferB.at(n/2, 64)},                                                      // remote
		{r.BufferA.at(0, 64), r.BufferB.at(n/2-63, 64)},                                                   //
		{nixl.Descriptor{Addr: 4096, Len: 64}, r.BufferB.at(0, 64)},                                       // nobody's
		{nixl.Descriptor{Addr: r.BufferA.Addr, Len: 64, Device: 7}, r.BufferB.at(0, 64)},                  // another device's
		{r.BufferA.at(0, 64), nixl.Descriptor{Addr: r.BufferB.Addr, Len: 64, Device: math.MaxUint64 - 1}}, //
	} {
		s := r.spec(nixl.Read, 0, 64)
		s.Notification = []byte("never")
		// Behind a good one: all or nothing.
		s.Local, s.Remote = append(s.Local, c.local), append(s.Remote, c.remote)
		_, err := r.A.NewTransfer(s)
		r.refused(err, nixl.ErrNotRegistered)
	}
	r.silence(r.B)
	require.True(r, zero(r.BufferA.Data))
	require.NoError(r, r.A.Close())
}

func testUnknownPeer(r *rig) {
	r.connect()
	for _, p := range []nixl.Peer{{}, {Name: "nobody", Generation: 1}, {Name: r.peer.Name}, {Name: r.peer.Name, Generation: r.peer.Generation + 1}} {
		s := r.spec(nixl.Read, 0, 64)
		s.Peer = p
		_, err := r.A.NewTransfer(s)
		r.refused(err, nixl.ErrNoPeer)
		r.refused(r.A.RemovePeer(p), nixl.ErrNoPeer)
	}
}

func testBadLists(r *rig) {
	r.connect()
	for name, change := range map[string]func(*nixl.Spec){
		"no entries":        func(s *nixl.Spec) { s.Local, s.Remote = nil, nil },
		"more local":        func(s *nixl.Spec) { s.Local = append(s.Local, r.BufferA.at(64, 64)) },
		"more remote":       func(s *nixl.Spec) { s.Remote = append(s.Remote, r.BufferB.at(64, 64)) },
		"lengths differ":    func(s *nixl.Spec) { s.Remote[0].Len++ },
		"empty entry":       func(s *nixl.Spec) { s.Local[0].Len, s.Remote[0].Len = 0, 0 },
		"beyond the end":    func(s *nixl.Spec) { s.Local[0].Len, s.Remote[0].Len = math.MaxUint64, math.MaxUint64 },
		"wraps around":      func(s *nixl.Spec) { s.Remote[0].Addr = math.MaxUint64 - 1 },
		"unknown operation": func(s *nixl.Spec) { s.Op = 9 },
		"unknown memory":    func(s *nixl.Spec) { s.RemoteMemory = 99 },
	} {
		s := r.spec(nixl.Read, 0, 64)
		change(&s)
		_, err := r.A.NewTransfer(s)
		require.Error(r, err, name)
		r.refused(err, nixl.ErrInvalid)
	}
}

func testMemoryTypes(r *rig) {
	r.connect()
	for _, m := range []nixl.MemoryType{nixl.DRAM, nixl.VRAM, nixl.Block, nixl.Object, nixl.File} {
		if m == r.Memory {
			continue
		}
		s := r.spec(nixl.Read, 0, 64)
		s.LocalMemory = m
		_, err := r.A.NewTransfer(s)
		require.Error(r, err, "%s was never registered", m)
		require.True(r, nixl.Quiet(err))
	}
}

func testDamagedMetadata(r *rig) {
	r.connect()
	blob, err := r.B.Metadata()
	require.NoError(r, err)
	for n := range blob {
		_, err := r.A.AddPeer(blob[:n])
		r.refused(err, nixl.ErrInvalid)
	}
	for _, b := range [][]byte{nil, {0}, []byte("garbage"), make([]byte, 1<<16)} {
		_, err := r.A.AddPeer(b)
		r.refused(err, nixl.ErrInvalid)
	}
	// None of it did harm.
	r.run(r.spec(nixl.Read, 0, 64))
}

func testMetadataIsASnapshot(r *rig) {
	n := uint64(len(r.BufferA.Data))
	r.register(r.A, r.BufferA)
	_, err := r.B.Register(r.Memory, []nixl.Descriptor{r.BufferB.at(0, n/2)})
	require.NoError(r, err)
	r.peer = r.add(r.A, r.B)
	fill(r.BufferB.Data, 1)
	_, err = r.B.Register(r.Memory, []nixl.Descriptor{r.BufferB.at(n/2, n/2)})
	require.NoError(r, err)
	_, err = r.A.NewTransfer(r.spec(nixl.Read, n/2, 64))
	r.refused(err, nixl.ErrNotRegistered)
	// The same life, told again: the same generation, and more memory.
	require.Equal(r, r.peer, r.add(r.A, r.B))
	r.run(r.spec(nixl.Read, n/2, 64))
	r.onlyCopied(n/2, 64)
	// Regions beside each other are not one.
	_, err = r.A.NewTransfer(r.spec(nixl.Read, n/2-1, 2))
	r.refused(err, nixl.ErrNotRegistered)
}

func testBadRegistrations(r *rig) {
	for _, d := range [][]nixl.Descriptor{
		nil,
		{r.BufferA.at(0, 0)},
		{r.BufferA.at(0, 64), r.BufferA.at(64, 0)},
		{{Addr: math.MaxUint64, Len: 2}},
		{{Addr: r.BufferA.Addr, Len: math.MaxUint64}},
	} {
		_, err := r.A.Register(r.Memory, d)
		r.refused(err, nixl.ErrInvalid)
	}
	_, err := r.A.Register(200, r.BufferA.all())
	r.refused(err, nixl.ErrInvalid)
	// Nothing of a refused list stayed.
	r.peer = r.add(r.A, r.B)
	_, err = r.A.NewTransfer(r.spec(nixl.Read, 0, 64))
	r.refused(err, nixl.ErrNotRegistered)
}
