package nixltest

import (
	"context"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

func testRead(r *rig) {
	r.connect()
	r.run(r.spec(nixl.Read, 4099, 70_001))
	r.onlyCopied(4099, 70_001)
}

func testWrite(r *rig) {
	r.connect()
	clear(r.BufferB.Data)
	fill(r.BufferA.Data, 7)
	r.run(r.spec(nixl.Write, 4099, 70_001))
	r.BufferA, r.BufferB = r.BufferB, r.BufferA
	r.onlyCopied(4099, 70_001)
}

func testScattered(r *rig) {
	r.connect()
	s := r.spec(nixl.Read, 0, 1)
	s.Local, s.Remote = nil, nil
	const n = 500
	for i := range uint64(n) { // to the other end, in an order of its own
		s.Local = append(s.Local, r.BufferA.at((n-1-i)*2000, i+1))
		s.Remote = append(s.Remote, r.BufferB.at(i*1999, i+1))
	}
	r.run(s)
	want := make([]byte, len(r.BufferA.Data))
	for i := range uint64(n) {
		copy(want[(n-1-i)*2000:], r.BufferB.Data[i*1999:][:i+1])
	}
	require.Equal(r, want, r.BufferA.Data)
}

func testStates(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, 4096))
	status := func() nixl.Status {
		s, err := t.Status()
		require.NoError(r, err)
		return s
	}
	require.Equal(r, nixl.Idle, status())
	require.ErrorIs(r, r.wait(t), nixl.ErrNotPosted)
	require.NoError(r, t.Post())
	require.NoError(r, r.wait(t))
	require.Equal(r, nixl.Done, status())
	require.Equal(r, nixl.Done, status())
}

func testPostBusy(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 0, Size))
	require.NoError(r, t.Post())
	// Not quiet: the first post is under way.
	r.unproven(t.Post(), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, Size)
}

func testRepost(r *rig) {
	r.connect()
	t := r.transfer(r.spec(nixl.Read, 64, 40_000))
	for i := range byte(3) {
		fill(r.BufferB.Data, i)
		require.NoError(r, t.Post())
		require.NoError(r, r.wait(t))
		r.onlyCopied(64, 40_000)
	}
	require.NoError(r, t.Close())
}

func testSpecCopied(r *rig) {
	r.connect()
	s := r.spec(nixl.Read, 0, 4096)
	s.Notification = []byte("one")
	t := r.transfer(s)
	s.Local[0], s.Remote[0] = r.BufferA.at(8192, 100), r.BufferB.at(0, 100)
	copy(s.Notification, "two")
	require.NoError(r, t.Post())
	require.NoError(r, r.wait(t))
	r.onlyCopied(0, 4096)
	require.Equal(r, "one", string(r.message(r.B).Message))
	require.Equal(r, uint64(4096), t.Spec().Local[0].Len)
}

func testConcurrent(r *rig) {
	r.connect()
	const posters, rounds, each = 8, 20, 4096
	results := make(chan error, posters)
	for i := range uint64(posters) {
		r.Clock.Go("poster", func() {
			results <- func() error {
				t, err := r.A.NewTransfer(r.spec(nixl.Read, i*each, each))
				if err != nil {
					return err
				}
				for range rounds {
					if err := t.Post(); err != nil {
						return err
					}
					if err := r.wait(t); err != nil {
						return err
					}
				}
				return t.Close()
			}()
			r.Clock.Notify()
		})
	}
	done := clock.Func("posters", func() bool { return len(results) == posters })
	require.NoError(r, r.Clock.WaitUntil(context.Background(), done, r.Clock.Now()+patience))
	for range posters {
		require.NoError(r, <-results)
	}
	r.onlyCopied(0, posters*each)
	require.NoError(r, r.A.Close())
}

func testNotification(r *rig) {
	r.connect()
	clear(r.BufferB.Data)
	fill(r.BufferA.Data, 3)
	s := r.spec(nixl.Write, 0, Size)
	s.Notification = []byte("written")
	t := r.transfer(s)
	require.NoError(r, t.Post())
	require.NoError(r, r.wait(t))
	require.Equal(r, nixl.Notification{From: r.A.Name(), Message: []byte("written")}, r.message(r.B))
	require.Equal(r, r.BufferA.Data[:Size], r.BufferB.Data[:Size])
	r.silence(r.B)
	// A second post sends a second message; more polls send none.
	require.NoError(r, t.Post())
	require.NoError(r, r.wait(t))
	require.NoError(r, r.wait(t))
	require.Equal(r, "written", string(r.message(r.B).Message))
	r.silence(r.B)
	r.silence(r.A)
}

func testNotificationNeedsPoll(r *rig) {
	r.connect()
	s := r.spec(nixl.Read, 0, 64)
	s.Notification = []byte("read")
	t := r.transfer(s)
	require.NoError(r, t.Post())
	r.silence(r.B)
	require.NoError(r, r.wait(t))
	require.Equal(r, "read", string(r.message(r.B).Message))
}

func testEmptyNotification(r *rig) {
	r.connect()
	s := r.spec(nixl.Read, 0, 64)
	r.run(s)
	r.silence(r.B)
	s.Notification = []byte{}
	r.run(s)
	require.Empty(r, r.message(r.B).Message)
}

func testNotify(r *rig) {
	r.connect()
	message := []byte("hello")
	require.NoError(r, r.A.Notify(r.peer, message))
	copy(message, "HELLO")
	require.Equal(r, nixl.Notification{From: r.A.Name(), Message: []byte("hello")}, r.message(r.B))
	r.refused(r.A.Notify(nixl.Peer{Name: "nobody", Generation: 1}, nil), nixl.ErrNoPeer)
	r.silence(r.B)
}
