//go:build linux

package libnixl

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// spy is the library with some calls counted, and answers put in its place.
type spy struct {
	driver
	mu    sync.Mutex
	calls map[string]int

	// What the next calls answer instead, if not nil.
	onPost, onPoll func() (status, bool)
	onCreateAgent  func() (status, bool)
	onNotify       func() (status, bool)
	onRelease      func() (status, bool)
	onCreate       func() // before a request is made
	onLoad         func(a handle, blob []byte) (string, status, error)
}

// spied makes an agent whose library is watched.
func spied(t testing.TB, name string, c Config) (*Agent, *spy) {
	t.Helper()
	l := library(t)
	s := &spy{driver: l.d, calls: map[string]int{}}
	a, err := (&Library{d: s, path: l.path, plugins: l.plugins}).NewAgent(context.Background(), name, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a, s
}

func (s *spy) note(call string, n int) {
	s.mu.Lock()
	s.calls[call] += n
	s.mu.Unlock()
}

func (s *spy) count(call string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[call]
}

func (s *spy) createAgent(name string, c *agentConfig) (handle, status, error) {
	if s.onCreateAgent != nil {
		if st, instead := s.onCreateAgent(); instead {
			return nil, st, nil
		}
	}
	s.note("create agent", 1)
	return s.driver.createAgent(name, c)
}

func (s *spy) destroyAgent(a handle) (status, error) {
	s.note("destroy agent", 1)
	return s.driver.destroyAgent(a)
}

func (s *spy) register(a handle, m nixl.MemoryType, r []nixl.Descriptor) (status, error) {
	s.note("register", len(r))
	return s.driver.register(a, m, r)
}

func (s *spy) deregister(a handle, m nixl.MemoryType, r []nixl.Descriptor) (status, error) {
	s.note("deregister", len(r))
	return s.driver.deregister(a, m, r)
}

func (s *spy) create(a handle, spec *nixl.Spec, peer []byte) (handle, status, error) {
	s.note("create", 1)
	if s.onCreate != nil {
		s.onCreate()
	}
	return s.driver.create(a, spec, peer)
}

func (s *spy) post(a, r handle) (status, error) {
	s.note("post", 1)
	if s.onPost != nil {
		if st, instead := s.onPost(); instead {
			return st, nil
		}
	}
	return s.driver.post(a, r)
}

func (s *spy) poll(a, r handle) (status, error) {
	s.note("poll", 1)
	if s.onPoll != nil {
		if st, instead := s.onPoll(); instead {
			return st, nil
		}
	}
	return s.driver.poll(a, r)
}

func (s *spy) release(a, r handle) (status, error) {
	s.note("release", 1)
	if s.onRelease != nil {
		if st, instead := s.onRelease(); instead {
			return st, nil
		}
	}
	return s.driver.release(a, r)
}

func (s *spy) invalidate(a handle, peer string) (status, error) {
	s.note("invalidate", 1)
	return s.driver.invalidate(a, peer)
}

func (s *spy) notify(a handle, peer string, m []byte) (status, error) {
	s.note("notify", 1)
	if s.onNotify != nil {
		if st, instead := s.onNotify(); instead {
			return st, nil
		}
	}
	return s.driver.notify(a, peer, m)
}

// always answers st from now on.
func always(st status) func() (status, bool) { return func() (status, bool) { return st, true } }

// once answers st one time.
func once(st status) func() (status, bool) {
	left := 1
	return func() (status, bool) { left--; return st, left >= 0 }
}

func (s *spy) load(a handle, blob []byte) (string, status, error) {
	s.note("load", 1)
	if s.onLoad != nil {
		return s.onLoad(a, blob)
	}
	return s.driver.load(a, blob)
}
