package cudatest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var submitBehaviours = []behaviour{
	{name: "submit: an empty batch", page: ownPage, one: testEmptyBatch},
	{name: "submit: a batch can be used again at once", page: launchPage, one: testBatchReuse},
	{name: "submit: several streams in program order", page: streamPage, one: testSeveralStreams},
	{name: "submit: an error says how far each stream got", page: ownPage, one: testSubmitError},
	{name: "submit: from several goroutines", page: launchPage, one: testSubmitConcurrently},
	{name: "submit: addresses outside of allocations", page: memoryPage, one: testBadAddresses},
	{name: "device: says what it is", page: devicePage, one: testInfo},
	{name: "device: is closed once, and dead afterwards", page: ownPage, one: testClose},
	{name: "device: activity changes when an event fires", page: ownPage, one: testActivity},
	{name: "device: its clock moves on", page: ownPage, one: testClock},
}

func testEmptyBatch(t *testing.T, d cuda.Device) {
	require.NoError(t, d.Submit(&cuda.Batch{}))
}

func testBatchReuse(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p, f := x.stream(), x.alloc(4*64), x.kernel("fill_index")
	for i := range uint32(16) {
		x.submit(func(b *cuda.Batch) { fillIndex(b, s, f, p+cuda.DevicePtr(16*i), 4, 100*i) })
	}
	x.sync(s)
	var want []uint32
	for i := range uint32(16) {
		want = append(want, 100*i, 100*i+1, 100*i+2, 100*i+3)
	}
	require.Equal(t, words(want...), x.read(p, 4*64))
}

func testSeveralStreams(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	p := x.alloc(256)
	ss := []cuda.Stream{x.stream(), x.stream(), x.stream()}
	x.submit(func(b *cuda.Batch) {
		prev := x.event()
		for i := range 12 {
			s := ss[i%3]
			b.WaitEvent(s, prev)
			b.Fill8(s, p, byte(i), 256)
			prev = x.event()
			b.Record(s, prev)
		}
	})
	require.NoError(t, d.Sync(x.ctx))
	require.Equal(t, byte(11), x.read(p, 256)[128])
}

func testSubmitError(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s1, s2, p, e := x.stream(), x.stream(), x.alloc(256), x.event()
	x.write(p, make([]byte, 256))
	var b cuda.Batch
	b.Fill8(s1, p, 1, 64)
	b.Fill8(s2, p+64, 2, 64)
	b.Fill8(s1, p+128, 3, 64)
	b.Record(s2, 0xdead)
	b.Fill8(s1, p+192, 4, 64)
	b.Record(s1, e)
	var se *cuda.SubmitError
	require.ErrorAs(t, d.Submit(&b), &se)
	require.ErrorIs(t, se, cuda.ErrInvalidHandle)
	require.Equal(t, 3, se.Index)
	require.Equal(t, cuda.OpRecord, se.Op)
	require.Equal(t, []int{2, 1}, se.Done)
	require.NoError(t, d.Sync(x.ctx))
	got := x.read(p, 256)
	require.Equal(t, []byte{1, 2, 3, 0}, []byte{got[0], got[64], got[128], got[192]}, "those before it are in, those after are not")
	require.True(t, x.fired(e), "never recorded")
}

func testBadAddresses(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(4096)
	freed := x.alloc(4096)
	require.NoError(t, d.Free(freed))
	for name, build := range map[string]func(b *cuda.Batch){
		"fill over the end":      func(b *cuda.Batch) { b.Fill8(s, p+4090, 0, 1<<20) },
		"fill of freed memory":   func(b *cuda.Batch) { b.Fill8(s, freed, 0, 16) },
		"copy to nowhere":        func(b *cuda.Batch) { b.Copy(s, 0x1000, p, 16) },
		"copy over the end":      func(b *cuda.Batch) { b.Copy(s, p, p+2048, 1<<20) },
		"copy from freed memory": func(b *cuda.Batch) { b.Copy(s, p, freed, 16) },
	} {
		var b cuda.Batch
		build(&b)
		require.ErrorIs(t, d.Submit(&b), cuda.ErrInvalidValue, name)
	}
	require.Error(t, d.Read(make([]byte, 16), freed))
	require.Error(t, d.Write(0x1000, make([]byte, 16)))
	require.NoError(t, d.Sync(x.ctx), "none of that is sticky")
}

func testInfo(t *testing.T, d cuda.Device) {
	i := d.Info()
	require.NotEmpty(t, i.Backend)
	require.NotEmpty(t, i.Name)
	require.Positive(t, i.Memory)
	require.GreaterOrEqual(t, i.Capability[0], 7)
	require.Equal(t, [3]uint32{1<<31 - 1, 65535, 65535}, i.MaxGrid)
	require.Equal(t, [3]uint32{1024, 1024, 64}, i.MaxBlock)
	require.Equal(t, 1024, i.MaxThreads)
}

func testClose(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	s, p := x.stream(), x.alloc(64)
	x.busy(s)
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	_, err := d.Alloc(64, cuda.AllocOptions{})
	require.ErrorIs(t, err, cuda.ErrClosed)
	var b cuda.Batch
	b.Fill8(s, p, 0, 64)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrClosed)
	require.ErrorIs(t, d.SyncStream(x.ctx, s), cuda.ErrClosed)
	require.ErrorIs(t, d.Poll(nil), cuda.ErrClosed)
	require.ErrorIs(t, d.Read(nil, p), cuda.ErrClosed)
}

func testActivity(t *testing.T, d cuda.Device) {
	w, ok := d.(cuda.Watcher)
	if !ok {
		t.Skipf("%s cannot tell of activity without a crossing", d.Info().Backend)
	}
	x := newBench(t, d)
	s, e := x.stream(), x.event()
	before := w.Activity()
	x.submit(func(b *cuda.Batch) { b.Record(s, e) })
	x.sync(s)
	require.True(t, x.fired(e))
	// A thread may have to notice first.
	x.until("activity", func() bool { return w.Activity() != before })
}

func testClock(t *testing.T, d cuda.Device) {
	c := d.Clock()
	before := c.Now()
	require.NoError(t, c.Sleep(bg, 1000))
	require.GreaterOrEqual(t, int64(c.Now()-before), int64(1000))
}

func testSubmitConcurrently(t *testing.T, d cuda.Device) {
	x := newBench(t, d)
	const workers, rounds = 5, 20
	s, p, f := x.stream(), x.alloc(4*workers*rounds), x.kernel("fill_index")
	errs := make(chan error, workers)
	for w := range uint32(workers) {
		d.Clock().Go("submitter", func() {
			var b cuda.Batch
			for i := range uint32(rounds) {
				b.Reset()
				at := w*rounds + i
				fillIndex(&b, s, f, p+cuda.DevicePtr(4*at), 1, at)
				if err := d.Submit(&b); err != nil {
					errs <- err
					return
				}
			}
			errs <- nil
		})
	}
	x.until("all have submitted", func() bool { return len(errs) == workers })
	for range workers {
		require.NoError(t, <-errs)
	}
	x.sync(s)
	require.Equal(t, counted(workers*rounds, 0), x.read(p, 4*workers*rounds))
}
