package sim

import (
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// FuzzSubmit hands the device commands made of any bytes. Each is accepted or
// refused with an error that says how far the batch got; nothing panics, and a
// dead device says why.
func FuzzSubmit(f *testing.F) {
	f.Add([]byte{1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0})
	f.Add([]byte{3, 2, 0, 1, 2, 0, 16, 5, 7, 8, 4, 0, 0, 1, 5, 0, 1, 1})
	f.Add([]byte{2, 0, 0, 1, 100, 0, 2, 100, 0, 200, 4, 0, 0, 4, 0, 1, 5, 0, 1})
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		in := make([]byte, 60*(1+rnd.IntN(4)))
		for i := range in {
			in[i] = byte(rnd.IntN([]int{8, 256}[rnd.IntN(2)]))
		}
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		r := newRig(t, Options{Seed: 5})
		streams := []cuda.Stream{r.stream("a"), r.stream("b")}
		signal, err := r.NewSignal()
		require.NoError(t, err)
		handles := []uint64{
			uint64(r.alloc("p", 4096)), uint64(r.pinned("h", 4096).Device), uint64(r.event()), uint64(r.event()),
			uint64(r.storeKernel()), uint64(streams[0]), 0, uint64(signal),
		}
		handles = append(handles, uint64(r.capture(streams[0], func(b *cuda.Batch) { b.Fill8(streams[0], cuda.DevicePtr(handles[0]), 1, 64) })))
		next := func() uint64 {
			if len(in) == 0 {
				return 0
			}
			v := uint64(in[0])
			in = in[1:]
			return v
		}
		word := func() uint64 { // a handle or address with an offset, or any number
			if k := next(); k < uint64(len(handles)) {
				return handles[k] + next()
			}
			v := uint64(0)
			for range 8 {
				v = v<<8 | next()
			}
			return v
		}
		var b cuda.Batch
		captured := next()%4 == 1
		if captured {
			require.NoError(t, r.BeginCapture(streams[1], cuda.CaptureRelaxed))
		}
		for len(in) > 0 && b.Len() < 50 {
			args := b.Launch(streams[next()%2], 0, cuda.Geometry{}, int(next()%40))
			if len(args) >= 16 {
				binary.LittleEndian.PutUint64(args, word())
				binary.LittleEndian.PutUint64(args[8:], next())
			}
			c := &b.Commands()[b.Len()-1]
			c.Op, c.Flags = cuda.Op(next()%12), uint8(next())
			if next() == 7 {
				c.Stream, c.Off, c.Len = uint16(next()), uint32(word()), uint32(word())
			}
			for i := range 3 {
				c.Grid[i], c.Block[i] = uint32(next()%9), uint16(next()*8)
			}
			c.Shared = uint32(word())
			c.A, c.B, c.C = word(), word(), word()
		}
		if err := r.Submit(&b); err != nil {
			var se *cuda.SubmitError
			if !errors.As(err, &se) {
				t.Fatalf("%T: %v", err, err)
			}
			in := 0
			for _, n := range se.Done {
				in += n
			}
			require.Equal(t, se.Index, in)
			require.Equal(t, b.Commands()[se.Index].Op, se.Op)
		}
		if captured && !r.stopped() {
			if g, err := r.EndCapture(streams[1]); err == nil {
				x, err := r.Instantiate(g)
				require.NoError(t, err)
				b.Reset()
				b.LaunchGraph(streams[0], x)
				require.NoError(t, r.Submit(&b))
			}
		}
		if err := r.Sync(bg); err != nil {
			var stuck *vtime.DeadlockError // waits for a word that is not written
			require.True(t, cuda.Sticky(err) || errors.As(err, &stuck), "%v", err)
		}
	})
}
