package memory_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/stream"
)

var bg = context.Background()

func init() {
	sim.RegisterModel("memory test: long", func(k *sim.ModelLaunch) error {
		k.Time = 20 * time.Millisecond
		return nil
	})
}

var oneThread = cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}

type bench struct {
	*testing.T
	dev *sim.Device
	reg *event.Registry
	s   *stream.Stream
}

func onSim(t *testing.T, test func(b *bench)) {
	for name, o := range map[string]sim.Options{"virtual": {}, "real": {Real: true}} {
		t.Run(name, func(t *testing.T) {
			dev, err := sim.New(o)
			require.NoError(t, err)
			b := &bench{T: t, dev: dev, reg: event.NewRegistry(dev)}
			b.s, err = stream.New(b.reg, cuda.StreamOptions{Name: "compute"})
			require.NoError(t, err)
			test(b)
			require.NoError(t, b.s.Sync(bg))
			require.NoError(t, b.s.Close())
			require.NoError(t, b.reg.Close())
			require.NoError(t, dev.Close())
		})
	}
}

// A small ring carries many tables to the device behind a backlog. Each arrives
// as it was written, because a slot is not written again before its copy ran;
// and one that is written too early does not arrive, so the test can tell.
func TestSimStagingCarriesTables(t *testing.T) {
	const rounds, size = 40, 4096
	for _, early := range []bool{false, true} {
		t.Run(fmt.Sprintf("early=%v", early), func(t *testing.T) {
			onSim(t, func(b *bench) {
				st, err := memory.NewStaging(b.reg, "tables", 4*size)
				require.NoError(b, err)
				out, err := memory.NewBuffer(b.dev, rounds*size, cuda.AllocOptions{Name: "out"})
				require.NoError(b, err)
				long, err := b.dev.Model("memory test: long")
				require.NoError(b, err)
				batch := stream.NewBatch(b.reg)
				batch.Launch(b.s, long, oneThread, 0)
				require.NoError(b, batch.Submit())
				for i := range rounds {
					slot, err := st.TakeWait(bg, size)
					require.NoError(b, err)
					table(slot.Host, i)
					dst, err := out.At(uint64(i*size), size)
					require.NoError(b, err)
					batch.Reset()
					batch.Copy(b.s, dst, slot.Device, size)
					f := batch.Record(b.s)
					require.NoError(b, batch.Submit())
					if early {
						f = event.Fence{}
					}
					require.NoError(b, st.Release(slot, f))
				}
				require.NoError(b, b.s.Sync(bg))
				arrived := 0
				for i := range rounds {
					got, want := make([]byte, size), make([]byte, size)
					require.NoError(b, out.Read(got, uint64(i*size)))
					if table(want, i); bytes.Equal(want, got) {
						arrived++
					}
				}
				if early {
					require.Less(b, arrived, rounds)
				} else {
					require.Equal(b, rounds, arrived)
				}
				require.NoError(b, st.Close())
				require.NoError(b, out.Close())
			})
		})
	}
}

func table(dst []byte, i int) {
	for j := 0; j < len(dst); j += 4 {
		binary.LittleEndian.PutUint32(dst[j:], uint32(i<<16|j))
	}
}

func TestSimBuffers(t *testing.T) {
	onSim(t, func(b *bench) {
		d, err := memory.NewBuffer(b.dev, 1000, cuda.AllocOptions{Name: "d"})
		require.NoError(b, err)
		p, err := memory.NewPinned(b.dev, 1000, cuda.AllocOptions{Name: "p"})
		require.NoError(b, err)
		copy(p.Host(), "from the host")
		src, err := p.At(5, 8)
		require.NoError(b, err)
		dst, err := d.At(992, 8)
		require.NoError(b, err)
		batch := stream.NewBatch(b.reg)
		batch.Copy(b.s, dst, src, 8)
		f := batch.Record(b.s)
		require.NoError(b, batch.Submit())
		require.NoError(b, f.Wait(bg))
		got := make([]byte, 8)
		require.NoError(b, d.Read(got, 992))
		require.Equal(b, "the host", string(got))
		require.NoError(b, d.Write(0, []byte("x")))
		require.NoError(b, d.Close())
		require.NoError(b, d.Close())
		require.NoError(b, p.Close())
		require.NoError(b, p.Close())
		require.ErrorIs(b, b.dev.Read(got, dst), cuda.ErrInvalidValue, "freed")
	})
}
