package fifo

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// Against a plain slice.
func TestQueueTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var q Queue[int]
		var twin []int
		next := 0
		for range rapid.IntRange(0, 200).Draw(t, "steps") {
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0, 1:
				q.Push(next)
				twin = append(twin, next)
				next++
			case 2:
				n := rapid.IntRange(0, len(twin)).Draw(t, "pop")
				q.Pop(n)
				twin = twin[n:]
			case 3:
				if len(twin) > 0 {
					q.Drop()
					twin = twin[:len(twin)-1]
				}
			}
			require.Equal(t, len(twin), q.Len())
			for i, v := range twin {
				require.Equal(t, v, *q.At(i))
			}
		}
	})
}

func TestQueueKeepsItsMemory(t *testing.T) {
	var q Queue[int]
	step := func() {
		for i := range 10 {
			q.Push(i)
		}
		q.Pop(5)
		q.Pop(q.Len() - 3)
	}
	for range 20 {
		step()
	}
	require.Zero(t, testing.AllocsPerRun(100, step))
}
