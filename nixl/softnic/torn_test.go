package softnic_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

func (x *pair) sleep(d time.Duration) {
	x.t.Helper()
	require.NoError(x.t, x.w.Sleep(context.Background(), d))
}

func present(b []byte) int { return len(b) - bytes.Count(b, []byte{0}) }

// slow is a link on which 1 MiB takes about 10 ms, in chunks of 16 KiB.
func slowLink() softnic.Options {
	return softnic.Options{Bandwidth: 1e8, Chunk: 16 << 10, PostPerDescriptor: softnic.None}
}

func TestArrivesTorn(t *testing.T) {
	for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
		t.Run(op.String(), func(t *testing.T) {
			x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
			target := x.dm.Bytes()
			if op == nixl.Write {
				target = x.pm.Bytes()
				copy(x.dm.Bytes(), x.pm.Bytes())
				clear(x.pm.Bytes())
			}
			tr := x.transfer(x.spec(op, 0, 1, size))
			require.NoError(t, tr.Post())
			last := 0
			var seen []int
			for {
				x.sleep(100 * time.Microsecond)
				s, err := tr.Status()
				require.NoError(t, err)
				n := present(target)
				require.GreaterOrEqual(t, n, last)
				if n != last {
					seen, last = append(seen, n), n
				}
				if s == nixl.Done {
					break
				}
			}
			require.Equal(t, size, last, "done means all")
			require.Len(t, seen, size/(16<<10), "each chunk was seen alone")
		})
	}
}

func TestSmallEntriesTearToo(t *testing.T) {
	var landed []softnic.ChunkInfo
	o := softnic.Options{Listener: softnic.Listener{Landed: func(c softnic.ChunkInfo) { landed = append(landed, c) }}}
	x := newPair(t, vtime.NewVirtual(vtime.Options{}), o)
	tr := x.transfer(x.spec(nixl.Read, 0, 3, 4000))
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.Len(t, landed, 6)
	require.Equal(t, x.dm.Addr()+4000, landed[2].TargetAddr)
	require.Equal(t, x.pm.Addr()+4000, landed[2].SourceAddr)
	require.Equal(t, 1, landed[2].Entry)
	require.Equal(t, uint64(4000), landed[2].Len+landed[3].Len)
	require.Less(t, landed[2].At, landed[3].At)
	require.Equal(t, "p", landed[2].Source)
	require.Equal(t, "d", landed[2].Target)
}

// The source is read when each chunk leaves: what changes under a transfer is
// sent in part, whichever side it is on.
func TestSourceIsReadAsItLeaves(t *testing.T) {
	for _, op := range []nixl.Op{nixl.Read, nixl.Write} {
		t.Run(op.String(), func(t *testing.T) {
			x := newPair(t, vtime.NewVirtual(vtime.Options{}), slowLink())
			source, target := x.pm.Bytes(), x.dm.Bytes()
			if op == nixl.Write {
				source, target = target, source
			}
			for i := range source {
				source[i], target[i] = 1, 0
			}
			tr := x.transfer(x.spec(op, 0, 1, size))
			require.NoError(t, tr.Post())
			x.sleep(5 * time.Millisecond)
			for i := range source {
				source[i] = 2
			}
			require.NoError(t, x.wait(tr))
			ones, twos := bytes.Count(target, []byte{1}), bytes.Count(target, []byte{2})
			require.Equal(t, size, ones+twos)
			require.Greater(t, ones, size/4)
			require.Greater(t, twos, size/4)
			require.Equal(t, ones, bytes.IndexByte(target, 2), "in order, where nothing reorders")
		})
	}
}

func TestReorder(t *testing.T) {
	var order []int
	o := slowLink()
	o.Reorder, o.Jitter = true, 300*time.Microsecond
	o.Listener.Landed = func(c softnic.ChunkInfo) { order = append(order, c.Entry) }
	x := newPair(t, vtime.NewVirtual(vtime.Options{Seed: 7}), o)
	tr := x.transfer(x.spec(nixl.Read, 0, 64, size/64))
	require.NoError(t, tr.Post())
	require.NoError(t, x.wait(tr))
	require.True(t, bytes.Equal(x.dm.Bytes(), x.pm.Bytes()))
	inversions := 0
	for i := 1; i < len(order); i++ {
		if order[i] < order[i-1] {
			inversions++
		}
	}
	require.Greater(t, inversions, 5, "%v", order)
}

// foreign is a Memory of somebody else's making: it can not say what it owns.
type foreign struct {
	base    uint64
	data    []byte
	scale   uint32
	shared  *vtime.Shared
	refuse  error
	written int
}

func (m *foreign) in(addr uint64, n int) error {
	if addr < m.base || addr+uint64(n) > m.base+uint64(len(m.data)) {
		return errors.New("no such memory")
	}
	return m.refuse
}

func (m *foreign) Read(addr uint64, dst []byte) error {
	if err := m.in(addr, len(dst)); err != nil {
		return err
	}
	copy(dst, m.data[addr-m.base:])
	return nil
}

func (m *foreign) Write(addr uint64, src []byte) error {
	if err := m.in(addr, len(src)); err != nil {
		return err
	}
	m.written += len(src)
	copy(m.data[addr-m.base:], src)
	return nil
}

func (m *foreign) Scale(uint64) uint32      { return m.scale }
func (m *foreign) Bandwidth() *vtime.Shared { return m.shared }

func TestForeignMemory(t *testing.T) {
	w := vtime.NewVirtual(vtime.Options{})
	x := newPair(t, w, softnic.Options{})
	m := &foreign{base: 1 << 40, data: make([]byte, 64<<10)}
	g, err := x.f.NewAgent("g", softnic.NewHostMemory(4096), m)
	require.NoError(t, err)
	for _, d := range []nixl.Descriptor{{Addr: 1<<40 - 1, Len: 10}, {Addr: 1 << 40, Len: 64<<10 + 1}, {Addr: 5, Len: 5}} {
		_, err = g.Register(nixl.VRAM, []nixl.Descriptor{{Addr: 1<<40 + 64, Len: 16}, d})
		require.ErrorIs(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "agent g has no memory at VRAM")
	}
	_, err = g.Register(nixl.VRAM, []nixl.Descriptor{{Addr: 1 << 40, Len: 64 << 10}})
	require.NoError(t, err)
	s := x.spec(nixl.Read, 0, 1, 64<<10)
	s.Peer, s.LocalMemory = x.add(g, x.p), nixl.VRAM
	s.Local[0].Addr = 1 << 40
	tr, err := g.NewTransfer(s)
	require.NoError(t, err)
	require.NoError(t, tr.Post())
	require.NoError(t, nixl.Wait(context.Background(), w, g, tr, w.Now()+time.Second))
	require.True(t, bytes.Equal(m.data, x.pm.Bytes()[:64<<10]))
	// Memory that goes away under its registration: a transport error.
	m.refuse = errors.New("allocation 7 was freed")
	require.NoError(t, tr.Post())
	err = nixl.Wait(context.Background(), w, g, tr, w.Now()+time.Second)
	require.ErrorIs(t, err, nixl.ErrBackend)
	require.ErrorContains(t, err, "allocation 7 was freed")
	require.False(t, nixl.Quiet(err))
	require.NoError(t, g.Close())
}
