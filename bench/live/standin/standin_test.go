package standin

import (
	"context"
	"encoding/binary"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
	"github.com/kvgate/kvgate/memory/kv"
)

// The arguments are as the PTX declares them.
func TestParameters(t *testing.T) {
	m, err := ptx.Parse("forward.ptx", image)
	require.NoError(t, err)
	for name, want := range map[string][]uintptr{
		"check_tokens": {unsafe.Offsetof(checkArgs{}.Pages), unsafe.Offsetof(checkArgs{}.Items), unsafe.Offsetof(checkArgs{}.Count),
			unsafe.Offsetof(checkArgs{}.Step), unsafe.Offsetof(checkArgs{}.Report), unsafe.Offsetof(checkArgs{}.Time)},
		"write_tokens": {unsafe.Offsetof(writeArgs{}.Pages), unsafe.Offsetof(writeArgs{}.Items), unsafe.Offsetof(writeArgs{}.Count)},
	} {
		k, ok := m.Kernel(name)
		require.True(t, ok)
		var got []uintptr
		for _, p := range k.Params() {
			got = append(got, uintptr(p.Offset))
		}
		require.Equal(t, want, got, name)
		require.EqualValues(t, unsafe.Sizeof(Pages{}), k.Params()[0].Size)
	}
	check, _ := m.Kernel("check_tokens")
	require.EqualValues(t, unsafe.Sizeof(checkArgs{}), check.ParamBytes())
	write, _ := m.Kernel("write_tokens")
	require.Equal(t, writeBytes, write.ParamBytes())
	require.Equal(t, 16, ItemBytes)
}

const (
	blocks, segments, page, tokens = 6, 3, 1024, 16
	size                           = blocks * segments * page
)

// rig is the kernels on whatever device there is, with blocks, and memory for
// items and for the report.
type rig struct {
	*testing.T
	dev    cuda.Device
	set    *Set
	stream cuda.Stream
	pages  Pages
	items  cuda.PinnedBuffer
	report cuda.PinnedBuffer
	batch  cuda.Batch
}

func newRig(t *testing.T) *rig {
	dev, err := auto.Open(nil, auto.Options{Sim: sim.Options{SMs: 4}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, dev.Close()) })
	r := &rig{T: t, dev: dev}
	r.set, err = Load(dev)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, dev.Sync(context.Background()))
		require.NoError(t, r.set.Close())
		require.NoError(t, r.set.Close())
	})
	r.stream, err = dev.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	base, err := dev.Alloc(size, cuda.AllocOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.Write(base, make([]byte, size)))
	r.pages, err = NewPages(base, blocks, segments, page, tokens)
	require.NoError(t, err)
	r.items, err = dev.AllocPinned(1024, cuda.AllocOptions{})
	require.NoError(t, err)
	r.report, err = dev.AllocPinned(1024, cuda.AllocOptions{})
	require.NoError(t, err)
	return r
}

func (r *rig) run() {
	require.NoError(r, r.dev.Submit(&r.batch))
	require.NoError(r, r.dev.SyncStream(context.Background(), r.stream))
	r.batch.Reset()
}

func (r *rig) write(items ...Item) {
	PutItems(r.items.Host, items)
	r.set.Write(&r.batch, r.stream, r.pages, r.items.Device, len(items))
	r.run()
}

// check returns the pages that are wrong, by item and segment.
func (r *rig) check(d time.Duration, items ...Item) (wrong [][2]int) {
	PutItems(r.items.Host, items)
	clear(r.report.Host)
	r.set.Check(&r.batch, r.stream, r.pages, r.items.Device, len(items), 77, r.report.Device, d)
	r.run()
	for i := range len(items) * segments {
		step, bad := Report(binary.LittleEndian.Uint64(r.report.Host[8*i:]))
		require.EqualValues(r, 77, step)
		if bad {
			wrong = append(wrong, [2]int{i / segments, i % segments})
		}
	}
	return wrong
}

// What the kernel writes is what the host writes, and nothing else.
func TestWrite(t *testing.T) {
	r := newRig(t)
	want := make([]byte, size)
	items := []Item{{Block: 1, Request: MaxRequest, Position: MaxPosition - tokens + 1, End: tokens},
		{Block: 5, Request: 3, Position: 32, First: 4, End: 9}, {Block: 2, Request: 3, First: 7, End: 7}}
	r.write(items...)
	for _, it := range items {
		for s := range segments {
			off := r.pages.Address(s, it.Block) - uint64(r.pages.Base)
			r.pages.Write(want[off:off+page], s, it)
		}
	}
	got := make([]byte, size)
	require.NoError(t, r.dev.Read(got, r.pages.Base))
	require.Equal(t, want, got)
}

// A single wrong bit shows, in the page that has it; so does a slot that is not
// written, or that should not be.
func TestCheck(t *testing.T) {
	r := newRig(t)
	full := Item{Block: 3, Request: 9, Position: 16, End: tokens}
	part := Item{Block: 4, Request: 9, Position: 32, End: 5}
	r.write(full, part)
	require.Empty(t, r.check(0, full, part))
	require.Empty(t, r.check(0))
	for _, c := range []struct {
		block   kv.Block
		segment int
		off     uint64
		want    [][2]int
	}{
		{3, 0, 0, [][2]int{{0, 0}}}, {3, 2, page - 1, [][2]int{{0, 2}}}, {4, 1, 8, [][2]int{{1, 1}}}, {4, 1, page - 9, [][2]int{{1, 1}}},
		{2, 1, page - 1, nil}, {5, 1, 0, nil},
	} {
		p := cuda.DevicePtr(r.pages.Address(c.segment, c.block) + c.off)
		was := make([]byte, 1)
		require.NoError(t, r.dev.Read(was, p))
		require.NoError(t, r.dev.Write(p, []byte{was[0] ^ 4}))
		require.Equal(t, c.want, r.check(0, full, part), c)
		require.NoError(t, r.dev.Write(p, was))
	}
	all := [][2]int{{0, 0}, {0, 1}, {0, 2}}
	other := part
	for _, change := range []func(*Item){func(i *Item) { i.End = 4 }, func(i *Item) { i.End = 6 }, func(i *Item) { i.Request = 8 },
		func(i *Item) { i.Position = 16 }, func(i *Item) { i.Block = 3 }, func(i *Item) { i.Block = 2 }} {
		other = part
		change(&other)
		require.Equal(t, all, r.check(0, other), other)
	}
	zeros := make([]byte, page)
	require.NoError(t, r.dev.Write(cuda.DevicePtr(r.pages.Address(1, 3)), zeros))
	require.Equal(t, [][2]int{{0, 1}}, r.check(0, full, part), "a zeroed page")
}

// A step takes the time that it is given.
func TestTime(t *testing.T) {
	r := newRig(t)
	it := Item{Block: 3, Request: 9, End: tokens}
	r.write(it)
	took := func(d time.Duration) time.Duration {
		begin := r.dev.Clock().Now()
		require.Empty(t, r.check(d, it, it))
		return r.dev.Clock().Now() - begin
	}
	short := took(0)
	const d = 3 * time.Millisecond
	require.InDelta(t, float64(d), float64(took(d)), float64(short+d/20))
}

func TestBadPages(t *testing.T) {
	for _, c := range []struct {
		segments, page, tokens int
		want                   string
	}{
		{0, 1024, 16, "0 segments"}, {65, 1024, 16, "65 segments: want 1 to 64"}, {1, 1024, 0, "0 tokens"}, {1, 1024, 3, "3 tokens in a page of 1024 bytes"},
		{1, 1024, 128, "a slot of 8 bytes: want a power of two from 16"}, {1, 48, 1, "a slot of 48 bytes"}, {1, 20, 1, "a slot of 20 bytes"},
		{1, 1 << 18, 1, "a slot of 262144 bytes"},
	} {
		_, err := NewPages(0, 1, c.segments, c.page, c.tokens)
		require.ErrorContains(t, err, c.want)
	}
}
