package nixl

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPeersGenerations(t *testing.T) {
	var p Peers
	require.ErrorIs(t, p.Check("x", Peer{"a", 1}), ErrNoPeer)
	first, fresh, err := p.Add("a", "life 1")
	require.NoError(t, err)
	require.True(t, fresh)
	require.Equal(t, Peer{"a", 1}, first)
	same, fresh, err := p.Add("a", "life 1")
	require.NoError(t, err)
	require.False(t, fresh)
	require.Equal(t, first, same)

	p.Begin(first)
	_, _, err = p.Add("a", "life 2")
	require.ErrorIs(t, err, ErrBusy)
	require.ErrorIs(t, p.Remove(first), ErrBusy)
	require.NoError(t, p.Check("x", first), "a refusal changes nothing")
	p.End(first)

	second, fresh, err := p.Add("a", "life 2")
	require.NoError(t, err)
	require.True(t, fresh)
	require.Equal(t, uint32(2), second.Generation)
	require.ErrorIs(t, p.Check("x", first), ErrStalePeer)
	require.ErrorIs(t, p.Remove(first), ErrStalePeer)

	require.NoError(t, p.Remove(second))
	require.ErrorIs(t, p.Check("x", second), ErrNoPeer)
	require.ErrorIs(t, p.Remove(second), ErrNoPeer)
	third, fresh, err := p.Add("a", "life 2")
	require.NoError(t, err)
	require.True(t, fresh, "what was removed comes back as somebody else")
	require.Equal(t, uint32(3), third.Generation)

	// Lost with transfers in flight: unknown at once, back when they are over.
	p.Begin(third)
	p.Lost(third)
	require.ErrorIs(t, p.Check("x", third), ErrNoPeer)
	_, _, err = p.Add("a", "life 2")
	require.ErrorIs(t, err, ErrBusy)
	p.Lost(second) // long over: no effect
	p.End(third)
	fourth, _, err := p.Add("a", "life 2")
	require.NoError(t, err)
	require.NoError(t, p.Check("x", fourth))
	q, known, busy := p.Current("a")
	require.Equal(t, fourth, q)
	require.True(t, known)
	require.Zero(t, busy)
}

func TestSpecCheck(t *testing.T) {
	d := func(addr, n uint64) Descriptor { return Descriptor{Addr: addr, Len: n} }
	good := Spec{Local: []Descriptor{d(0, 1), d(math.MaxUint64-4, 4)}, Remote: []Descriptor{d(9, 1), d(20, 4)}}
	require.NoError(t, good.Check())
	require.Equal(t, uint64(5), good.Bytes())
	for want, s := range map[string]Spec{
		"2 local entries and 1 remote": {Local: []Descriptor{d(0, 1), d(1, 1)}, Remote: []Descriptor{d(0, 1)}},
		"no entries":                   {},
		"entry 1: 3 bytes local and 4": {Local: []Descriptor{d(0, 1), d(1, 3)}, Remote: []Descriptor{d(0, 1), d(1, 4)}},
		"local entry 0":                {Local: []Descriptor{d(7, 0)}, Remote: []Descriptor{d(7, 0)}},
		"remote entry 0":               {Local: []Descriptor{d(0, 2)}, Remote: []Descriptor{d(math.MaxUint64-1, 2)}},
		"more bytes in all": {
			Local:  []Descriptor{d(0, math.MaxUint64), d(0, 1)},
			Remote: []Descriptor{d(0, math.MaxUint64), d(0, 1)}},
		"operation 7":   {Op: 7},
		"local memory":  {LocalMemory: 77},
		"remote memory": {RemoteMemory: 77},
	} {
		err := s.Check()
		require.ErrorIs(t, err, ErrInvalid)
		require.ErrorContains(t, err, want)
		require.True(t, Quiet(err))
	}
}

// A peer that its agent had to learn anew keeps its generation; one that was
// lost for good does not come back by it.
func TestFoundAgain(t *testing.T) {
	var p Peers
	a, _, err := p.Add("a", "life")
	require.NoError(t, err)
	p.Lost(a)
	require.ErrorIs(t, p.Check("", a), ErrNoPeer)
	p.Found(a)
	require.NoError(t, p.Check("", a))
	p.Lost(a)
	b, fresh, err := p.Add("a", "life")
	require.NoError(t, err)
	require.True(t, fresh)
	p.Lost(b)
	p.Found(a)
	require.ErrorIs(t, p.Check("", b), ErrNoPeer, "an earlier generation")
	require.ErrorIs(t, p.Check("", a), ErrStalePeer)
	p.Found(Peer{"nobody", 1})
	require.ErrorIs(t, p.Check("", Peer{"nobody", 1}), ErrNoPeer)
}

// Looking up one peer after another finds each.
func TestPeersAreNotMixedUp(t *testing.T) {
	var p Peers
	var all []Peer
	for _, n := range []string{"a", "b", "c"} {
		q, _, err := p.Add(n, n)
		require.NoError(t, err)
		all = append(all, q)
	}
	for range 2 {
		for i, q := range all {
			require.NoError(t, p.Check("", q))
			p.Begin(q)
			_, _, busy := p.Current(all[(i+1)%3].Name)
			require.Zero(t, busy)
			_, _, busy = p.Current(q.Name)
			require.Equal(t, 1, busy)
			p.End(q)
		}
	}
}
