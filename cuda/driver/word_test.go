//go:build cgo && linux

package driver_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/cudatest"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
)

func openWatched(t *testing.T) *driver.Watched {
	d, err := openSoft(t, sim.Options{Real: true})
	require.NoError(t, err)
	w, err := d.Watch(driver.WakeWord)
	require.NoError(t, err)
	return w
}

// reach waits until the stream's word has a value.
func reach(t *testing.T, w *driver.Watched, s cuda.Stream, want uint32) {
	t.Helper()
	for start := time.Now(); w.Word(s).Load() != want; {
		require.Less(t, time.Since(start), time.Minute, "the word is %#x", w.Word(s).Load())
		require.NoError(t, w.Clock().Sleep(context.Background(), 100*time.Microsecond))
	}
}

// A word counts the marks of its stream, across its wrap, in their order, also
// where several goroutines make them.
func TestWordsRise(t *testing.T) {
	w := openWatched(t)
	s, err := w.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	first := w.Word(s).Load()
	const workers, marks = 8, 40
	require.Less(t, first+workers*marks, first, "it wraps")
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			e, err := w.NewEvent()
			if err != nil {
				t.Error(err)
				return
			}
			for range marks {
				var b cuda.Batch
				b.Record(s, e)
				if err := w.Submit(&b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	reach(t, w, s, first+workers*marks)
	require.NoError(t, w.Poll(nil))
}

// A word that falls is an error, of every poll from then on.
func TestWordThatFalls(t *testing.T) {
	w := openWatched(t)
	s, err := w.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	e, err := w.NewEvent()
	require.NoError(t, err)
	first := w.Word(s).Load()
	var b cuda.Batch
	b.Record(s, e)
	require.NoError(t, w.Submit(&b))
	reach(t, w, s, first+1)
	release, _ := cudatest.Hold(t, w, s) // while the words are looked at
	b.Reset()
	b.Record(s, e)
	require.NoError(t, w.Submit(&b))
	w.Word(s).Store(first - 5)
	for start := time.Now(); err == nil; err = w.Poll(nil) {
		require.Less(t, time.Since(start), time.Minute)
	}
	require.ErrorIs(t, err, cuda.ErrIllegalState)
	require.ErrorContains(t, err, "went backwards")
	release()
	require.NoError(t, w.SyncStream(context.Background(), s))
	require.ErrorIs(t, w.Poll([]cuda.Mark{{Event: e}}), cuda.ErrIllegalState)
}

// A stream that was destroyed with marks to come shares its word with the one
// that has its place now: that is no fall.
func TestWordOfADestroyedStream(t *testing.T) {
	w := openWatched(t)
	old, err := w.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	e, err := w.NewEvent()
	require.NoError(t, err)
	late, err := w.NewEvent()
	require.NoError(t, err)
	first := w.Word(old).Load()
	release, _ := cudatest.Hold(t, w, old)
	var b cuda.Batch
	b.Record(old, late)
	require.NoError(t, w.Submit(&b))
	require.NoError(t, w.DestroyStream(old))
	s, err := w.NewStream(cuda.StreamOptions{})
	require.NoError(t, err)
	require.Equal(t, w.Word(old), w.Word(s), "the same place")
	b.Reset()
	for range 5 {
		b.Record(s, e)
	}
	require.NoError(t, w.Submit(&b))
	require.NoError(t, w.SyncStream(context.Background(), s))
	require.Equal(t, first, w.Word(s).Load(), "the old stream's mark is to come, so the new one's write nothing")
	release()
	reach(t, w, s, first+1)
	b.Reset()
	b.Record(s, e)
	require.NoError(t, w.Submit(&b))
	reach(t, w, s, first+2)
	require.NoError(t, w.Poll([]cuda.Mark{{Event: e}, {Event: late}}))
}
