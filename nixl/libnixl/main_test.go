//go:build linux

package libnixl

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/nixltest"
)

func TestMain(m *testing.M) {
	// What the library prints about calls that are meant to fail.
	setDefault("NIXL_LOG_LEVEL", "FATAL")
	setDefault("UCX_LOG_LEVEL", "fatal")
	if role := os.Getenv(childVariable); role != "" {
		os.Exit(runChild(role))
	}
	os.Exit(testutil.Run(m))
}

func setDefault(key, value string) {
	if os.Getenv(key) == "" {
		if err := os.Setenv(key, value); err != nil {
			panic(err)
		}
	}
}

// wheel returns the folder of the unpacked wheel that scripts/deps.sh fetched.
func wheel(t testing.TB) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(testutil.Root(t), ".cache", "nixl-cu12-*", ".complete"))
	require.NoError(t, err)
	if len(found) != 1 {
		testutil.SkipOrFail(t, "no wheel of NIXL in .cache: run ./build.sh deps")
	}
	return filepath.Dir(found[0])
}

// library opens the library of the wheel, or the one that the environment
// names. The test is skipped, loudly, where there is none or no cgo.
func library(t testing.TB) *Library {
	t.Helper()
	if !hasCgo {
		t.Skip("built without cgo: no C library can be called")
	}
	o := Options{}
	if os.Getenv(LibraryVariable) == "" {
		o.Folders = []string{wheel(t)}
		o.Path = filepath.Join(o.Folders[0], ".nixl_cu12.mesonpy.libs", libraryName)
	}
	l, err := OpenWithOptions(o)
	require.NoError(t, err)
	return l
}

// pages is memory outside of Go's heap.
func pages(t testing.TB, n int) nixltest.Buffer {
	t.Helper()
	b, err := unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, unix.Munmap(b)) })
	return bufferOf(b)
}

func bufferOf(b []byte) nixltest.Buffer {
	return nixltest.Buffer{Addr: uint64(uintptr(unsafe.Pointer(&b[0]))), Data: b}
}

func region(b nixltest.Buffer, off, n uint64) nixl.Descriptor {
	return nixl.Descriptor{Addr: b.Addr + off, Len: n}
}

func all(b nixltest.Buffer) []nixl.Descriptor {
	return []nixl.Descriptor{region(b, 0, uint64(len(b.Data)))}
}

// agent makes an agent that the test closes at its end.
func agent(t testing.TB, name string, c Config) *Agent {
	t.Helper()
	a, err := library(t).NewAgent(context.Background(), name, c)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	return a
}

// current is the peer of a name as the agent knows it now.
func current(a *Agent, name string) (nixl.Peer, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	p, known, _ := a.peers.Current(name)
	if !known {
		return nixl.Peer{}, nixl.Refuse("peer", name, nixl.ErrNoPeer, "")
	}
	return p, nil
}

// known reports whether the peer is known and the library still has its metadata.
func known(t testing.TB, a *Agent, p nixl.Peer) bool {
	t.Helper()
	if q, err := current(a, p.Name); err != nil || q != p {
		return false
	}
	s, err := a.d.check(a.h, a.aliases.of(p.Name), nixl.DRAM, nil)
	require.NoError(t, err)
	return s == statusOK
}

func inFlight(a *Agent) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.inFlight
}
