//go:build linux

package libnixl

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
)

// python is NVIDIA's own agent in a child: the wheel's _bindings module, driven
// line by line.
type python struct {
	t   testing.TB
	in  io.Writer
	out *bufio.Scanner
}

func newPython(t testing.TB, env ...string) *python {
	t.Helper()
	dir := wheel(t)
	found, err := filepath.Glob(filepath.Join(dir, "nixl_cu12", "_bindings.cpython-311-*.so"))
	require.NoError(t, err)
	require.Len(t, found, 1)
	exe := ""
	for _, name := range []string{"python3.11", "python3"} {
		if out, err := exec.Command(name, "-c", "import sys; print(sys.version_info[:2])").Output(); err == nil && strings.TrimSpace(string(out)) == "(3, 11)" {
			exe = name
			break
		}
	}
	if exe == "" {
		testutil.SkipOrFail(t, "the wheel's module is for Python 3.11, which is not here")
	}
	c := exec.Command(exe, filepath.Join("testdata", "agent.py"), found[0])
	c.Env = append(append(os.Environ(), PluginVariable+"="+filepath.Join(dir, ".nixl_cu12.mesonpy.libs", "plugins")), env...)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	require.NoError(t, err)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = in.Close()
		require.NoError(t, reap(t, c, patience, nothing{}))
	})
	p := &python{t: t, in: in, out: bufio.NewScanner(out)}
	p.out.Buffer(nil, 1<<20)
	return p
}

type nothing struct{}

func (nothing) String() string { return "" }

// ask sends a line and returns the words of the answer.
func (p *python) ask(format string, args ...any) []string {
	p.t.Helper()
	_, err := fmt.Fprintf(p.in, format+"\n", args...)
	require.NoError(p.t, err)
	got := make(chan bool, 1)
	go func() { got <- p.out.Scan() }()
	clk := clock.Wall()
	require.NoError(p.t, clk.WaitUntil(p.t.Context(), clock.Func("python", func() bool { return len(got) > 0 }), patience), format)
	require.True(p.t, <-got, "python ended at %q", format)
	words := strings.Fields(p.out.Text())
	require.NotEmpty(p.t, words)
	require.Equal(p.t, "ok", words[0], p.out.Text())
	return words[1:]
}

// Our agent and NVIDIA's, in both directions: each reads and writes the other's
// memory, and both get the messages.
func TestInteroperates(t *testing.T) {
	py := newPython(t)
	const n = 1 << 20
	a, buf := agent(t, "go", Config{}), pages(t, n)
	_, err := a.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	blob, err := hex.DecodeString(py.ask("start python %d", n)[0])
	require.NoError(t, err)
	var addr uint64
	_, err = fmt.Sscan(py.ask("address")[0], &addr)
	require.NoError(t, err)
	p, err := a.AddPeer(blob)
	require.NoError(t, err)
	require.Equal(t, "python", p.Name)
	m, err := ParseMetadata(blob)
	require.NoError(t, err)
	require.False(t, m.Sealed())
	require.Equal(t, nixl.Descriptor{Addr: addr, Len: n}, m.Regions[0].Descriptor)
	mine, err := a.Metadata()
	require.NoError(t, err)
	require.Equal(t, []string{"go"}, py.ask("add %x", mine))

	theirs := func(off, size uint64) nixl.Descriptor { return nixl.Descriptor{Addr: addr + off, Len: size} }
	move := func(op nixl.Op, message string) {
		x, err := a.NewTransfer(nixl.Spec{
			Op: op, Peer: p, Notification: []byte(message),
			Local:  []nixl.Descriptor{region(buf, 0, 100), region(buf, 4096, n-8192)},
			Remote: []nixl.Descriptor{theirs(0, 100), theirs(4096, n-8192)},
		})
		require.NoError(t, err)
		require.NoError(t, x.Post())
		require.NoError(t, wait(t, a, x))
		require.NoError(t, x.Close())
		require.Equal(t, []string{"go", hex.EncodeToString([]byte(message))}, py.ask("message"))
	}
	py.ask("fill 7")
	move(nixl.Read, "go has read")
	require.Equal(t, byte(7), buf.Data[0])
	require.Equal(t, byte(7), buf.Data[n-8192])
	require.Zero(t, buf.Data[100])
	for i := range buf.Data {
		buf.Data[i] = 9
	}
	move(nixl.Write, "go has written")
	require.Equal(t, []string{"9", "7", "9"}, py.ask("bytes 0 100 4096"))

	messages := func() []nixl.Notification { m, err := a.Notifications(nil); require.NoError(t, err); return m }
	py.ask("fill 11")
	py.ask("transfer WRITE go %d 4096 %x", buf.Addr, "python has written")
	require.Equal(t, "python has written", string(awaitMessage(t, messages)))
	require.Equal(t, byte(11), buf.Data[4095])
	require.Equal(t, byte(9), buf.Data[4096])
	buf.Data[5] = 55
	py.ask("transfer READ go %d 4096 %x", buf.Addr, "python has read")
	require.Equal(t, "python has read", string(awaitMessage(t, messages)))
	require.Equal(t, []string{"55"}, py.ask("bytes 5"))

	require.NoError(t, a.Notify(p, []byte("plain")))
	require.Equal(t, []string{"go", hex.EncodeToString([]byte("plain"))}, py.ask("message"))
	py.ask("notify go %x", "back")
	require.Equal(t, "back", string(awaitMessage(t, messages)))
	py.ask("end")
}
