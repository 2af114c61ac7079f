package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
)

// program runs several actors that submit unordered work to one device, and
// returns the log of all that the machine did with the final content.
func program(t *testing.T, seed uint64) string {
	var log strings.Builder
	w := vtime.NewVirtual(vtime.Options{Seed: seed, Observe: func(at time.Duration, what string) {
		fmt.Fprintln(&log, int64(at), what)
	}})
	defer w.Close()
	r := newRig(t, Options{World: w})
	const size = 4096
	p := r.alloc("p", size)
	f := r.storeKernel()
	left := 3
	for a := range 3 {
		s, e := r.stream(fmt.Sprint("stream ", a)), r.event()
		w.Go(fmt.Sprint("actor ", a), func() {
			var b cuda.Batch
			rnd := rand.New(rand.NewPCG(7, uint64(a)))
			for range 5 {
				b.Reset()
				for range 4 {
					off := cuda.DevicePtr(rnd.IntN(size/2) &^ 63)
					switch rnd.IntN(4) {
					case 0:
						b.Fill8(s, p+off, uint8(a+1), 512)
					case 1:
						b.Copy(s, p+off, p+size/2, 256)
					case 2:
						store(&b, s, f, p+off, 64, 8)
					case 3:
						b.Record(s, e)
						b.WaitEvent(s, e)
					}
				}
				if err := r.Submit(&b); err != nil {
					t.Error(err)
				}
				_ = w.Sleep(bg, time.Duration(rnd.IntN(20))*time.Microsecond)
			}
			left--
		})
	}
	require.NoError(t, w.WaitUntil(bg, clock.Func("all", func() bool { return left == 0 }), clock.Never))
	require.NoError(t, r.Sync(bg))
	h := fnv.New64()
	h.Write(r.read(p, size))
	fmt.Fprintf(&log, "%x", h.Sum64())
	require.NoError(t, r.Close())
	return log.String()
}

func TestSameSeedSameTrace(t *testing.T) {
	seen := map[string]bool{}
	for seed := range uint64(40) {
		a := program(t, seed)
		require.Equal(t, a, program(t, seed), "seed %d", seed)
		seen[a] = true
	}
	require.Greater(t, len(seen), 30, "seeds must differ in what they do")
}

// Work that is fully ordered by streams and events ends in the same bytes as
// the same commands one after the other on a plain array, whatever the seed.
func TestOrderedWorkLeavesTheSameBytes(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		d, err := New(Options{Seed: rapid.Uint64().Draw(rt, "seed")})
		require.NoError(rt, err)
		defer d.Close()
		r := &rig{Device: d, t: t}
		const size = 1024
		h := r.pinned("h", size)
		clear(h.Host)
		bases := []cuda.DevicePtr{r.alloc("p", size), h.Device}
		twins := [][]byte{make([]byte, size), make([]byte, size)}
		require.NoError(rt, r.Write(bases[0], twins[0]))
		streams := []cuda.Stream{r.stream("a"), r.streamOf("b", true), r.stream("c")}
		f := r.storeKernel()
		var b cuda.Batch
		prev := r.event()
		for range rapid.IntRange(1, 25).Draw(rt, "commands") {
			s := streams[rapid.IntRange(0, 2).Draw(rt, "stream")]
			b.WaitEvent(s, prev)
			m, n := rapid.IntRange(0, 1).Draw(rt, "memory"), rapid.IntRange(0, 300).Draw(rt, "bytes")
			off := rapid.IntRange(0, size-n).Draw(rt, "offset")
			dst := bases[m] + cuda.DevicePtr(off)
			switch rapid.IntRange(0, 3).Draw(rt, "verb") {
			case 0:
				v := rapid.Byte().Draw(rt, "value")
				b.Fill8(s, dst, v, uint64(n))
				for i := range n {
					twins[m][off+i] = v
				}
			case 1:
				v := rapid.Uint32().Draw(rt, "value")
				off &^= 3
				b.Fill32(s, bases[m]+cuda.DevicePtr(off), v, uint64(n/4))
				for i := range n / 4 {
					binary.LittleEndian.PutUint32(twins[m][off+4*i:], v)
				}
			case 2:
				o := 1 - m
				from := rapid.IntRange(0, size-n).Draw(rt, "from")
				b.Copy(s, dst, bases[o]+cuda.DevicePtr(from), uint64(n))
				copy(twins[m][off:off+n], twins[o][from:])
			case 3:
				off &^= 3
				blocks := min(uint32(size-off)/8, 20)
				if blocks == 0 {
					continue
				}
				store(&b, s, f, bases[m]+cuda.DevicePtr(off), 8, blocks)
				for i := range int(blocks) {
					binary.LittleEndian.PutUint32(twins[m][off+8*i:], 1)
				}
			}
			prev = r.event()
			b.Record(s, prev)
			if rapid.IntRange(0, 3).Draw(rt, "cut") == 0 {
				require.NoError(rt, r.Submit(&b))
				b.Reset()
			}
		}
		require.NoError(rt, r.Submit(&b))
		require.NoError(rt, r.Sync(bg))
		require.Equal(rt, twins[0], r.read(bases[0], size))
		require.Equal(rt, twins[1], h.Host)
	})
}

func TestSteadyStateAllocatesNothing(t *testing.T) {
	r := newRig(t, Options{})
	s1, s2, e := r.stream("s1"), r.stream("s2"), r.event()
	p, h := r.alloc("p", 4096), r.pinned("h", 4096)
	var b cuda.Batch
	marks := []cuda.Mark{{Event: e}, {Word: h.Device}}
	model := r.model(func(k *ModelLaunch) error { k.Written = 1000; return nil })
	for name, build := range map[string]func(){
		"record, wait": func() { b.Record(s1, e); b.WaitEvent(s2, e) },
		"fill":         func() { b.Fill8(s1, p, 0, 4096) },
	} {
		run := func() {
			b.Reset()
			build()
			if r.Submit(&b) != nil || r.Poll(marks) != nil {
				t.Error("refused")
			}
			_ = r.world.Sleep(context.Background(), time.Millisecond)
		}
		run()
		require.Zero(t, testing.AllocsPerRun(50, run), name)
	}
	launch := func() {
		b.Reset()
		b.Launch(s1, model, one, 16)
		if r.Submit(&b) != nil {
			t.Error("refused")
		}
	}
	for range 1000 { // fill the ring and its buffers once
		launch()
	}
	require.NoError(t, r.Sync(bg))
	require.Zero(t, testing.AllocsPerRun(900, launch), "launch of a model")
}

// Many goroutines use one device under the real pacer; meant for -race.
func TestRealPacerFromManyGoroutines(t *testing.T) {
	r := newRig(t, Options{Real: true})
	f := r.storeKernel()
	var wg sync.WaitGroup
	for g := range 6 {
		s, p, e := r.stream(fmt.Sprint(g)), r.alloc("p", 4096), r.event()
		h := r.pinned("h", 4096)
		wg.Add(1)
		r.world.Go("worker", func() {
			defer wg.Done()
			var b cuda.Batch
			for i := range 20 {
				b.Reset()
				b.Fill8(s, p, byte(i), 4096)
				store(&b, s, f, p, 64, 64)
				b.Copy(s, h.Device, p, 4096)
				b.Record(s, e)
				if err := r.Submit(&b); err != nil {
					t.Error(err)
					return
				}
				for m := []cuda.Mark{{Event: e}}; m[0].State != cuda.MarkFired; {
					before := r.Activity()
					if err := r.Poll(m); err != nil {
						t.Error(err)
						return
					}
					if m[0].State == cuda.MarkFired {
						break
					}
					moved := clock.Func("activity", func() bool { return r.Activity() != before })
					if err := r.world.WaitUntil(bg, moved, clock.Never); err != nil {
						t.Error(err)
						return
					}
				}
				if h.Host[64] != 1 || h.Host[68] != byte(i) || h.Host[4095] != byte(i) {
					t.Errorf("round %d: %v", i, h.Host[64:72])
				}
			}
		})
	}
	wg.Wait()
	require.NoError(t, r.Sync(bg))
}

func BenchmarkSubmit(b *testing.B) {
	for name, build := range map[string]func(x *cuda.Batch, s1, s2 cuda.Stream, e cuda.Event){
		"record-wait": func(x *cuda.Batch, s1, s2 cuda.Stream, e cuda.Event) { x.Record(s1, e); x.WaitEvent(s2, e) },
	} {
		b.Run(name+"/simulated", func(b *testing.B) {
			r := newRig(b, Options{})
			s1, s2, e := r.stream("s1"), r.stream("s2"), r.event()
			marks := []cuda.Mark{{Event: e}}
			var x cuda.Batch
			b.ReportAllocs()
			for b.Loop() {
				x.Reset()
				build(&x, s1, s2, e)
				if r.Submit(&x) != nil || r.Poll(marks) != nil {
					b.Fatal("refused")
				}
			}
		})
	}
}

func BenchmarkFill(b *testing.B) {
	r := newRig(b, Options{})
	s, p := r.stream("s"), r.alloc("p", 1<<20)
	var x cuda.Batch
	b.SetBytes(1 << 20)
	b.ReportAllocs()
	for b.Loop() {
		x.Reset()
		x.Fill8(s, p, 0, 1<<20)
		if r.Submit(&x) != nil || r.SyncStream(bg, s) != nil {
			b.Fatal("refused")
		}
	}
}
