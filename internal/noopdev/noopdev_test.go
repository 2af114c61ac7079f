package noopdev

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

var (
	_ cuda.Device  = (*Device)(nil)
	_ cuda.Watcher = (*Device)(nil)
)

func TestHoldAndFire(t *testing.T) {
	d := New(Options{Hold: true})
	s, _ := d.NewStream(cuda.StreamOptions{})
	e, _ := d.NewEvent()
	marks := []cuda.Mark{{Event: e}}
	require.NoError(t, d.Poll(marks))
	require.Equal(t, cuda.MarkFired, marks[0].State, "never recorded counts as fired")

	var b cuda.Batch
	b.Record(s, e)
	before := d.Activity()
	require.NoError(t, d.Submit(&b))
	require.NoError(t, d.Poll(marks))
	require.Equal(t, cuda.MarkPending, marks[0].State)
	require.Equal(t, before, d.Activity())

	require.NoError(t, d.Submit(&b)) // recorded again: the first record no longer fires it
	require.Equal(t, 1, d.Fire(s, 1))
	require.NoError(t, d.Poll(marks))
	require.Equal(t, cuda.MarkPending, marks[0].State)
	require.Equal(t, 1, d.FireAll())
	require.NoError(t, d.Poll(marks))
	require.Equal(t, cuda.MarkFired, marks[0].State)
	require.NotEqual(t, before, d.Activity())
	require.Equal(t, uint64(2), d.Counts().Records)
	_, watches := Plain(d).(cuda.Watcher)
	require.False(t, watches)
}

func TestFailSubmit(t *testing.T) {
	d := New(Options{})
	s, _ := d.NewStream(cuda.StreamOptions{})
	var b cuda.Batch
	b.Fill8(s, 1, 0, 1)
	b.Fill8(s, 1, 0, 1)
	d.FailSubmit(1, cuda.ErrLaunchFailed)
	err := d.Submit(&b)
	var se *cuda.SubmitError
	require.ErrorAs(t, err, &se)
	require.Equal(t, 1, se.Index)
	require.Equal(t, []int{1}, se.Done)
	require.ErrorIs(t, d.Submit(&b), cuda.ErrLaunchFailed, "sticky")

	b.Reset()
	b.Fill8(3, 1, 0, 1)
	require.ErrorIs(t, New(Options{}).Submit(&b), cuda.ErrInvalidHandle)
}

func TestAllocations(t *testing.T) {
	d := New(Options{Memory: 1000})
	p, err := d.Alloc(600, cuda.AllocOptions{Name: "a"})
	require.NoError(t, err)
	_, err = d.Alloc(600, cuda.AllocOptions{Name: "b"})
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	base, size, err := d.AllocRange(p + 599)
	require.NoError(t, err)
	require.Equal(t, p, base)
	require.Equal(t, uint64(600), size)
	_, _, err = d.AllocRange(p + 600)
	require.ErrorIs(t, err, cuda.ErrNotFound)
	require.NoError(t, d.Free(p))
	require.Error(t, d.Free(p))
	require.Zero(t, d.LiveBytes())
}
