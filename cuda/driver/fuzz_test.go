//go:build cgo && linux

package driver_test

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
)

// FuzzSubmit hands C commands of any bytes at all: each is accepted or refused
// with an error that names it, and the device works on.
func FuzzSubmit(f *testing.F) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		b := make([]byte, 64*(1+rnd.IntN(6)))
		for i := range b {
			b[i] = byte(rnd.Uint32())
		}
		f.Add(b)
	}
	d, err := openSoft(f, sim.Options{Real: true, Memory: 1 << 24})
	require.NoError(f, err)
	h := newHostile(f, d)
	f.Fuzz(func(t *testing.T, src []byte) { h.submit(t, src) })
}

// hostile makes batches of bytes, with handles and addresses that exist mixed
// in so that more than the first check is reached.
type hostile struct {
	d       *driver.Device
	streams [2]cuda.Stream
	end     cuda.Event
	good    []uint64
}

func newHostile(t testing.TB, d *driver.Device) *hostile {
	h := &hostile{d: d}
	var err error
	for i := range h.streams {
		h.streams[i], err = d.NewStream(cuda.StreamOptions{})
		require.NoError(t, err)
	}
	p, err := d.Alloc(1<<16, cuda.AllocOptions{})
	require.NoError(t, err)
	e, err := d.NewEvent()
	require.NoError(t, err)
	pinned, err := d.AllocPinned(1<<12, cuda.AllocOptions{})
	require.NoError(t, err)
	h.end, err = d.NewEvent()
	require.NoError(t, err)
	signal, err := d.NewSignal()
	require.NoError(t, err)
	h.good = []uint64{uint64(p), uint64(p) + 1<<15, uint64(pinned.Device), uint64(e), uint64(h.streams[0]), 0, 1, 4, 4096, uint64(signal),
		uint64(capture(t, d, h.streams[0], func(b *cuda.Batch) { b.Fill8(h.streams[0], p, 1, 64) }))}
	return h
}

func (h *hostile) submit(t *testing.T, src []byte) {
	var b cuda.Batch
	for len(src) >= 64 && b.Len() < 32 {
		b.Record(h.streams[b.Len()%2], 0)
		c := &b.Commands()[b.Len()-1]
		copy(unsafe.Slice((*byte)(unsafe.Pointer(c)), 64), src)
		c.Op = cuda.Op(uint8(c.Op) % 12)
		if src[1]&1 != 0 {
			c.Stream %= 3
		}
		if src[1]&2 != 0 {
			c.Flags %= 4
		}
		if src[1]&4 != 0 {
			c.A = h.good[int(src[2])%len(h.good)]
		}
		if src[1]&8 != 0 {
			c.B = h.good[int(src[3])%len(h.good)]
		}
		if src[1]&16 != 0 {
			c.C %= 1 << 17
		}
		src = src[64:]
	}
	err := h.d.Submit(&b)
	var se *cuda.SubmitError
	switch {
	case err == nil:
	case !errors.As(err, &se):
		t.Fatalf("%v", err)
	case se.Index >= b.Len() || se.Op != b.Commands()[se.Index].Op || len(se.Done) != len(b.Streams()):
		t.Fatalf("%+v for %+v", se, b.Commands())
	}
	for _, s := range h.streams {
		h.sync(t, s, b.Commands())
	}
	marks := []cuda.Mark{{Event: cuda.Event(h.good[3]), Word: cuda.DevicePtr(binary.LittleEndian.Uint64(append(src, make([]byte, 8)...)))}}
	_ = h.d.Poll(marks) // a word anywhere: refused, or read
}

// sync waits for s, and writes the words that waits among the commands are for
// until it has come to its end.
func (h *hostile) sync(t *testing.T, s cuda.Stream, commands []cuda.Command) {
	var b cuda.Batch
	b.Record(s, h.end)
	require.NoError(t, h.d.Submit(&b))
	m := []cuda.Mark{{Event: h.end}}
	for {
		for range 5 {
			require.NoError(t, h.d.Poll(m))
			if m[0].State == cuda.MarkFired {
				return
			}
			require.NoError(t, h.d.Clock().Sleep(context.Background(), time.Millisecond))
		}
		for _, c := range commands {
			if c.Op != cuda.OpWaitWord {
				continue
			}
			var word [4]byte
			binary.NativeEndian.PutUint32(word[:], uint32(c.B))
			_ = h.d.Write(cuda.DevicePtr(c.A), word[:]) // it may be one that was refused
			require.NoError(t, h.d.Clock().Sleep(context.Background(), time.Millisecond))
		}
	}
}
