package exchange

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
)

func TestMain(m *testing.M) { os.Exit(testutil.Run(m)) }

// long is how long a test waits for what has to come.
const long = time.Minute

var (
	wall = clock.Wall()
	bg   = context.Background()
)

// fake is an agent whose metadata is "of " and its name.
type fake struct {
	nixl.Agent
	name string

	mu       sync.Mutex
	tries    int
	peers    map[string]uint32 // generations of those that are known
	add      func(metadata []byte) error
	metadata string
}

func newFake(name string) *fake { return &fake{name: name, peers: map[string]uint32{}} }

func (f *fake) Name() string { return f.name }

func (f *fake) Metadata() ([]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return []byte("of " + f.name + f.metadata), nil
}

func (f *fake) AddPeer(metadata []byte) (nixl.Peer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tries++
	if f.add != nil {
		if err := f.add(metadata); err != nil {
			return nixl.Peer{}, err
		}
	}
	var name string
	if _, err := fmt.Sscanf(string(metadata), "of %s", &name); err != nil {
		return nixl.Peer{}, nixl.Refuse("add peer", "", nixl.ErrInvalid, "no metadata: %q", metadata)
	}
	f.peers[name]++
	return nixl.Peer{Name: name, Generation: f.peers[name]}, nil
}

func (f *fake) RemovePeer(p nixl.Peer) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.peers, p.Name)
	return nil
}

func (f *fake) knows(name string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.peers[name] > 0
}

func (f *fake) tried() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tries
}

func (f *fake) refuse(cause error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.add = nil
	if cause != nil {
		f.add = func([]byte) error { return &nixl.Error{Op: "add peer", Err: cause, Detail: "says the test"} }
	}
}

// reader is a fake that reads the name before it adds a peer.
type reader struct{ *fake }

func (r reader) AddPeerContext(ctx context.Context, metadata []byte) (nixl.Peer, error) {
	return r.AddPeer(metadata)
}

func (r reader) NameIn(metadata []byte) (string, error) {
	name, ok := strings.CutPrefix(string(metadata), "of ")
	if !ok {
		return "", errors.New("no name")
	}
	return name, nil
}

func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for begin := wall.Now(); !done(); {
		require.Less(t, wall.Now()-begin, long, what)
		require.NoError(t, wall.Sleep(bg, time.Millisecond))
	}
}

func soon() time.Duration { return wall.Now() + long }

// The peer has to be of the name that was asked for, whoever finds out.
func TestOfAnotherName(t *testing.T) {
	for _, a := range []nixl.Agent{newFake("decode"), reader{newFake("decode")}} {
		_, err := take(bg, a, "fetch peer", "prefill", "the place", []byte("of somebody"))
		require.ErrorIs(t, err, nixl.ErrInvalid)
		require.EqualError(t, err, `nixl: fetch peer prefill: the place: it is of agent "somebody": invalid argument`)
		_, err = take(bg, a, "fetch peer", "prefill", "the place", nil)
		require.ErrorContains(t, err, "the place: it is empty")
		p, err := take(bg, a, "fetch peer", "prefill", "the place", []byte("of prefill"))
		require.NoError(t, err)
		require.Equal(t, nixl.Peer{Name: "prefill", Generation: 1}, p)
	}
	r := reader{newFake("decode")}
	_, err := take(bg, r, "fetch peer", "prefill", "the place", []byte("of somebody"))
	require.Error(t, err)
	require.Zero(t, r.tried(), "it is not added")
}

func TestNamesThatAreNotFetched(t *testing.T) {
	s := NewSocket(wall, testutil.FreePort(t))
	defer s.Close()
	for _, name := range []string{"", "a\x00b", "decode"} {
		_, err := s.Fetch(bg, newFake("decode"), name, clock.Never)
		require.ErrorIs(t, err, nixl.ErrInvalid, "%q", name)
	}
}

// A fetch ends with its context, and says what it was waiting for.
func TestFetchIsCanceled(t *testing.T) {
	s := NewSocket(wall, testutil.FreePort(t))
	defer s.Close()
	over, cancel := context.WithCancel(bg)
	cancel()
	_, err := s.Fetch(over, newFake("decode"), "prefill", clock.Never)
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.Canceled)
}
