//go:build linux

package libnixl

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// Blocks to a file and back: the way of KV that is put away.
func TestBlocksToAFileAndBack(t *testing.T) {
	a := agent(t, "decode", Config{Backends: []BackendConfig{{Plugin: "UCX"}, {Plugin: "POSIX"}}})
	require.Contains(t, a.allBackends()[1].info.memories, nixl.File)
	f, err := os.OpenFile(filepath.Join(t.TempDir(), "blocks"), os.O_RDWR|os.O_CREATE, 0o600)
	require.NoError(t, err)
	defer f.Close()
	const block, n = 64 << 10, 64
	require.NoError(t, f.Truncate(n*block))
	fd := uint64(f.Fd())
	buf := pages(t, n*block)
	memory, err := a.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	file, err := a.Register(nixl.File, []nixl.Descriptor{{Addr: 0, Len: n * block, Device: fd}})
	require.NoError(t, err)

	pattern(buf.Data, 9)
	kept := slices.Clone(buf.Data)
	// Blocks in an order of their own.
	spec := nixl.Spec{Op: nixl.Write, Peer: a.Self(), LocalMemory: nixl.DRAM, RemoteMemory: nixl.File}
	for i := range uint64(n) {
		spec.Local = append(spec.Local, region(buf, i*block, block))
		spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: (n - 1 - i) * block, Len: block, Device: fd})
	}
	out, err := a.NewTransfer(spec)
	require.NoError(t, err)
	require.NoError(t, out.Post())
	require.NoError(t, wait(t, a, out))
	onDisk, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	for i := range n {
		require.True(t, bytes.Equal(onDisk[(n-1-i)*block:][:block], kept[i*block:][:block]), "block %d", i)
	}
	clear(buf.Data)
	spec.Op = nixl.Read
	in, err := a.NewTransfer(spec)
	require.NoError(t, err)
	require.NoError(t, in.Post())
	require.NoError(t, wait(t, a, in))
	require.True(t, bytes.Equal(kept, buf.Data))

	// Repost: what is there now.
	pattern(buf.Data, 10)
	require.NoError(t, out.Post())
	require.ErrorIs(t, file.Close(), nixl.ErrBusy, "both sides are the agent's own")
	require.NoError(t, wait(t, a, out))

	// Beyond the registered part, and another file.
	for _, d := range []nixl.Descriptor{{Addr: n * block, Len: 64, Device: fd}, {Len: 64, Device: fd + 1000}} {
		bad := nixl.Spec{Peer: a.Self(), RemoteMemory: nixl.File, Local: []nixl.Descriptor{region(buf, 0, 64)}, Remote: []nixl.Descriptor{d}}
		_, err = a.NewTransfer(bad)
		quiet(t, err, nixl.ErrNotRegistered)
	}
	// POSIX tells nobody.
	spec.Notification = []byte("never")
	noted, err := a.NewTransfer(spec)
	if err == nil {
		require.NoError(t, noted.Close())
	}
	require.NoError(t, file.Close())
	quiet(t, in.Post(), nixl.ErrNotRegistered)
	require.NoError(t, memory.Close())
}

func TestReadOfAFileThatIsShorter(t *testing.T) {
	a := agent(t, "decode", Config{Backends: []BackendConfig{{Plugin: "POSIX"}}})
	f, err := os.Create(filepath.Join(t.TempDir(), "short"))
	require.NoError(t, err)
	defer f.Close()
	buf := pages(t, 4096)
	_, err = a.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	file := []nixl.Descriptor{{Len: 4096, Device: uint64(f.Fd())}}
	_, err = a.Register(nixl.File, file)
	require.NoError(t, err)
	x, err := a.NewTransfer(nixl.Spec{Peer: a.Self(), RemoteMemory: nixl.File, Local: all(buf), Remote: file})
	require.NoError(t, err)
	err = x.Post()
	if err == nil {
		err = wait(t, a, x)
	}
	unproven(t, err, nixl.ErrBackend)
	require.NotEmpty(t, a.Poisoned())
	require.NoError(t, a.Recover(a.Self()))
	require.Empty(t, a.Poisoned())
}
