package sim

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
)

const exporterEnv = "KVGATE_SIM_EXPORTER"

// exporter is a process that exports memory. It does what it is told, a word a
// line, and ends with its standard input.
type exporter struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out io.Reader
	h   cuda.MemoryHandle
}

func startExporter(t *testing.T) *exporter {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	e := &exporter{cmd: exec.Command(self, "-test.run", "^TestExporterProcess$", "-test.timeout", "60s")}
	e.cmd.Env = append(os.Environ(), exporterEnv+"=1")
	e.in, err = e.cmd.StdinPipe()
	require.NoError(t, err)
	e.out, err = e.cmd.StdoutPipe()
	require.NoError(t, err)
	e.cmd.Stderr = os.Stderr
	require.NoError(t, e.cmd.Start())
	var word string
	_, err = fmt.Fscanln(e.out, &word)
	require.NoError(t, err)
	_, err = hex.Decode(e.h[:], []byte(word))
	require.NoError(t, err)
	return e
}

func (e *exporter) tell(t *testing.T, word string) string {
	t.Helper()
	_, err := fmt.Fprintln(e.in, word)
	require.NoError(t, err)
	var answer string
	_, err = fmt.Fscanln(e.out, &answer)
	require.NoError(t, err)
	return answer
}

func (e *exporter) end(t *testing.T) {
	t.Helper()
	require.NoError(t, e.in.Close())
	_, err := io.ReadAll(e.out)
	require.NoError(t, err)
	require.NoError(t, e.cmd.Wait())
}

// TestExporterProcess is what an exporter runs.
func TestExporterProcess(t *testing.T) {
	if os.Getenv(exporterEnv) == "" {
		t.Skip("runs in another process alone")
	}
	r := newRig(t, Options{Shareable: true})
	p := r.allocScaled("exported", 3*4096, 7)
	h, err := r.ExportMemory(p)
	require.NoError(t, err)
	fmt.Println(hex.EncodeToString(h[:]))
	for {
		var word string
		if _, err := fmt.Scanln(&word); err != nil {
			return
		}
		switch word {
		case "free":
			require.NoError(t, r.Free(p))
			fmt.Println("freed")
		case "again":
			q := r.allocScaled("again", 3*4096, 7)
			h, err := r.ExportMemory(q)
			require.NoError(t, err)
			fmt.Println(hex.EncodeToString(h[:]))
		case "peek":
			text, _, _ := bytes.Cut(r.read(p, 16), []byte{0xff})
			fmt.Println(string(text))
		}
	}
}

func TestMemoryOfAnotherProcess(t *testing.T) {
	e := startExporter(t)
	r := newRig(t, Options{Memory: 1 << 20})
	p, err := r.OpenMemory(e.h)
	require.NoError(t, err)
	require.Equal(t, uint32(7), r.mem.Scale(uint64(p)), "the exporter's cost scale")
	require.Zero(t, r.mem.used, "it is not this device's memory that it takes")
	require.NoError(t, r.Write(p, []byte("hello")))
	require.Equal(t, "hello", e.tell(t, "peek"))
	_, err = r.ExportMemory(r.alloc("mine", 64))
	require.ErrorIs(t, err, cuda.ErrNotSupported, "without Shareable")
	require.NoError(t, r.CloseMemory(p))
	var a *AccessError
	r.locked(func() { require.ErrorAs(t, r.mem.Write(uint64(p), []byte{1}), &a) })
	require.Contains(t, a.Error(), "use after free: offset 0x0 of \"memory of process")
	e.end(t)
}

func TestHandlesThatAreNoMore(t *testing.T) {
	e := startExporter(t)
	r := newRig(t, Options{})
	open := func(h cuda.MemoryHandle) error {
		p, err := r.OpenMemory(h)
		if err == nil {
			require.NoError(t, r.CloseMemory(p))
		}
		return err
	}
	require.NoError(t, open(e.h))
	require.Equal(t, "freed", e.tell(t, "free"))
	require.ErrorIs(t, open(e.h), cuda.ErrInvalidHandle)
	require.ErrorContains(t, open(e.h), "has been freed")

	// The next export has the slot of the one that was freed.
	var next cuda.MemoryHandle
	_, err := hex.Decode(next[:], []byte(e.tell(t, "again")))
	require.NoError(t, err)
	require.ErrorIs(t, open(e.h), cuda.ErrInvalidHandle)
	require.NoError(t, open(next))

	was, ok := parseTicket(next)
	require.True(t, ok)
	for what, change := range map[string]func(k *ticket){
		"nonce": func(k *ticket) { k.nonce++ }, "size": func(k *ticket) { k.size *= 2 }, "offset": func(k *ticket) { k.off += 4096 },
		"slot": func(k *ticket) { k.slot++ }, "no slot": func(k *ticket) { k.slot = 1 << 31 }, "scale": func(k *ticket) { k.scale++ },
		"standard input": func(k *ticket) { k.fd = 0 }, "no file": func(k *ticket) { k.fd = 1 << 20 }, "no process": func(k *ticket) { k.pid = 1 << 30 },
	} {
		k := was
		change(&k)
		require.ErrorIs(t, open(k.handle()), cuda.ErrInvalidHandle, what)
	}
	next[63] = 1
	require.ErrorIs(t, open(next), cuda.ErrInvalidValue, "bytes that no handle has")

	e.end(t)
	require.ErrorIs(t, open(was.handle()), cuda.ErrInvalidHandle)
	require.ErrorContains(t, open(was.handle()), "has gone")
}

// Memory stays as long as somebody has it open, though its process has ended.
func TestMemoryOutlivesItsProcess(t *testing.T) {
	e := startExporter(t)
	r := newRig(t, Options{})
	p, err := r.OpenMemory(e.h)
	require.NoError(t, err)
	require.NoError(t, r.Write(p, []byte("hello")))
	e.end(t)
	require.Equal(t, []byte("hello"), r.read(p, 5))
}

func TestExportsAreLimited(t *testing.T) {
	r := newRig(t, Options{Shareable: true})
	r.locked(func() { r.mem.shared.free = r.mem.shared.free[:1] })
	a, b := r.alloc("a", 1), r.alloc("b", 1)
	_, err := r.ExportMemory(a)
	require.NoError(t, err)
	_, err = r.ExportMemory(b)
	require.ErrorIs(t, err, cuda.ErrOutOfMemory)
	require.NoError(t, r.Free(a))
	_, err = r.ExportMemory(b)
	require.NoError(t, err)
}

// Freed memory is given back to the system, and a device's file ends with it.
func TestSharedMemoryIsGivenBack(t *testing.T) {
	r := newRig(t, Options{Shareable: true})
	blocks := func() int64 {
		var st unix.Stat_t
		require.NoError(t, unix.Fstat(r.mem.shared.fd, &st))
		return st.Blocks * 512
	}
	p := r.alloc("p", 4<<20)
	require.GreaterOrEqual(t, blocks(), int64(4<<20))
	require.NoError(t, r.Free(p))
	require.Less(t, blocks(), int64(1<<20))
}

func FuzzOpenMemory(f *testing.F) {
	t0 := ticket{pid: 1 << 30, fd: 3, scale: 1, off: directory, size: 4096}.handle()
	f.Add(t0[:])
	f.Add(make([]byte, 64))
	d, err := New(Options{})
	require.NoError(f, err)
	f.Cleanup(func() { require.NoError(f, d.Close()) })
	f.Fuzz(func(t *testing.T, b []byte) {
		var h cuda.MemoryHandle
		copy(h[:], b)
		_, err := d.OpenMemory(h)
		require.Error(t, err)
	})
}
