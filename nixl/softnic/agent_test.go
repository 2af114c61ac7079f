package softnic_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

func TestOverlapIsTold(t *testing.T) {
	var told []softnic.OverlapInfo
	o := softnic.Options{Listener: softnic.Listener{Overlap: func(i softnic.OverlapInfo) { told = append(told, i) }}}
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
	inner := nixl.Descriptor{Addr: x.dm.Addr() + 100, Len: 50}
	r, err := x.d.Register(nixl.DRAM, []nixl.Descriptor{inner})
	require.NoError(t, err)
	require.Len(t, told, 1)
	require.Equal(t, "d", told[0].Agent)
	require.Equal(t, inner, told[0].New.Descriptor)
	require.Equal(t, uint64(size), told[0].Old.Len)
	_, err = x.d.Register(nixl.DRAM, []nixl.Descriptor{inner})
	require.NoError(t, err)
	require.Len(t, told, 1, "an equal region is counted, not told")
	require.NoError(t, r.Close())
}

func TestClosedFabric(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
	tr := x.half()
	require.NoError(t, tr.Post())
	x.sleep(time.Millisecond)
	require.NoError(t, x.f.Close())
	before := bytes.Clone(x.dm.Bytes())
	require.NotZero(t, present(before))
	x.sleep(50 * time.Millisecond)
	require.Equal(t, before, x.dm.Bytes())
	_, err := x.f.NewAgent("new")
	require.ErrorIs(t, err, nixl.ErrClosed)
	_, err = x.d.Metadata()
	require.ErrorIs(t, err, nixl.ErrClosed)
	require.ErrorIs(t, x.wait(tr), nixl.ErrClosed)
}

func TestBadAgents(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), softnic.Options{})
	for _, name := range []string{"", "d", string(make([]byte, 256))} {
		_, err := x.f.NewAgent(name)
		require.ErrorIs(t, err, nixl.ErrInvalid)
	}
	_, err := x.f.NewAgent("nil memory", nil)
	require.ErrorIs(t, err, nixl.ErrInvalid)
	// A blob of another fabric means nothing here.
	other := softnic.New(x.w, softnic.Options{})
	defer func() { require.NoError(t, other.Close()) }()
	a, err := other.NewAgent("p")
	require.NoError(t, err)
	blob, err := a.Metadata()
	require.NoError(t, err)
	_, err = x.d.AddPeer(blob)
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	// An agent may be its own peer.
	s := x.spec(nixl.Read, 0, 1, 64)
	s.Peer = x.add(x.d, x.d)
	s.Remote[0].Addr = x.dm.Addr() + 4096
	copy(x.dm.Bytes()[4096:], "to itself")
	tr := x.transfer(s)
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.Equal(t, "to itself", string(x.dm.Bytes()[:9]))
}

func TestTransferTellsItsAgent(t *testing.T) {
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), softnic.Options{})
	tr := x.transfer(x.spec(nixl.Read, 0, 1, 64))
	o, ok := tr.(nixl.Owned)
	require.True(t, ok)
	require.True(t, o.Agent() == x.d)
	require.False(t, o.Agent() == x.p)
	require.NoError(t, tr.Close())
	require.NoError(t, x.d.Close())
	require.True(t, o.Agent() == x.d, "after both were closed")
	next, err := x.f.Restart("p")
	require.NoError(t, err)
	require.False(t, next == x.p, "another life is another agent")
}
