package kernels

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

func TestWordsMatchThePTX(t *testing.T) {
	text, err := embedded.ReadFile(wordsName + ".ptx")
	require.NoError(t, err)
	m, err := ptx.Parse(wordsName, text)
	require.NoError(t, err)
	require.Equal(t, "7.8", m.Version)
	require.Equal(t, "sm_70", m.Target)
	require.Len(t, m.Kernels(), len(wordsEntries))
	types := []reflect.Type{reflect.TypeFor[wordsArgs[[fewRuns]Run]](), reflect.TypeFor[wordsArgs[[manyRuns]Run]]()}
	for i, e := range wordsEntries {
		kern, ok := m.Kernel(e.name)
		require.True(t, ok, e.name)
		var want []string
		for _, p := range kern.Params() {
			want = append(want, fmt.Sprintf("%d bytes at %d", p.Size, p.Offset))
		}
		require.Equal(t, want, goParams(types[i], 0), e.name)
		require.Equal(t, kern.ParamBytes(), e.size)
		require.LessOrEqual(t, e.size, cuda.MaxArgBytes)
		require.EqualValues(t, blockThreads, kern.MaxThreads())
	}
	require.EqualValues(t, cuda.MaxArgBytes, wordsEntries[1].size)
	require.EqualValues(t, 12, reflect.TypeFor[Run]().Size())
}

// Against a plain slice: every word, those beside the runs and behind the table
// included.
func TestWriteWords(t *testing.T) {
	const words, beyond = 40_000, 64
	r := newRig(t, 4*(words+beyond))
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{0, 1, fewRuns, fewRuns + 1, manyRuns, manyRuns + 1, 3 * manyRuns} {
		want := make([]byte, r.size)
		for i := range want {
			want[i] = 0xA5
		}
		require.NoError(t, r.dev.Write(cuda.DevicePtr(r.arena), want))
		var runs []Run
		at := uint32(0)
		for range n {
			run := Run{At: at + uint32(rng.IntN(4)), Value: int32(rng.Uint32()), Count: uint16(rng.IntN(36)), Step: uint16(rng.IntN(3))}
			if len(runs) == 0 && n == 1 {
				run.Count = 33_000
			}
			at = run.At + uint32(run.Count)
			runs = append(runs, run)
			for i := range uint32(run.Count) {
				binary.LittleEndian.PutUint32(want[4*(run.At+i):], uint32(run.Value)+i*uint32(run.Step))
			}
		}
		r.run(t, func(b *cuda.Batch) error {
			return r.set.WriteWords(b, r.stream, cuda.DevicePtr(r.arena), words, runs)
		})
		requireSame(t, want, r.read(t, r.arena, r.size), fmt.Sprintf("%d runs", n))
	}
}

func TestWriteWordsRefuses(t *testing.T) {
	r := newRig(t, 4096)
	at := cuda.DevicePtr(r.arena)
	for _, c := range []struct {
		table cuda.DevicePtr
		run   Run
		says  string
	}{
		{at, Run{At: 1020, Count: 5}, "run 1: 5 words from 1020 on, of a table of 1024"},
		{at, Run{At: 1<<32 - 1, Count: 2}, "run 1: 2 words from 4294967295 on, of a table of 1024"},
		{at + 2, Run{}, "want a multiple of 4"},
		{0, Run{}, "want a multiple of 4"},
	} {
		var b cuda.Batch
		err := r.set.WriteWords(&b, r.stream, c.table, 1024, []Run{{Count: 1}, c.run})
		require.ErrorIs(t, err, cuda.ErrInvalidValue)
		require.ErrorContains(t, err, c.says)
		require.Zero(t, b.Len())
	}
}
