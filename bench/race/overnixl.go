package main

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/internal/wheel"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

const (
	// prefillVariable makes this program the remote side.
	prefillVariable = "KVGATE_RACE_PREFILL"
	// helloLimit is how long the remote side may take to start or to end.
	helloLimit = 30 * time.Second
)

// hello is what the remote side tells when it is ready.
type hello struct {
	Addr     uint64 // of its memory
	Metadata []byte
}

// overNIXL is NVIDIA's library over UCX. The device is simulated, but its memory
// is memory of this process at the address that the device knows it by: the
// library registers it as DRAM and moves real bytes there, from a process of its
// own, while the zeroing's stores run.
func overNIXL(dev *sim.Device, p cuda.DevicePtr, n, size uint64) (t *transport, err error) {
	r := &remote{clk: clock.Wall()}
	t = &transport{memory: nixl.DRAM, close: r.close}
	h, err := r.start(size)
	if err != nil {
		return t, err
	}
	t.content, t.addr = r.view, h.Addr
	lib, err := wheel.Open()
	if err != nil {
		return t, err
	}
	// The gate waits by the device's clock.
	if r.agent, err = lib.NewAgent(context.Background(), "decode", libnixl.Config{Clock: dev.World()}); err != nil {
		return t, err
	}
	t.agent = r.agent
	if _, err = r.agent.Register(nixl.DRAM, []nixl.Descriptor{{Addr: uint64(p), Len: n}}); err != nil {
		return t, err
	}
	t.peer, err = r.agent.AddPeer(h.Metadata)
	return t, err
}

// remote is the process that has the KV, and what is here of it.
type remote struct {
	clk   clock.Clock
	agent *libnixl.Agent
	cmd   *exec.Cmd
	stdin io.Closer
	file  *os.File
	view  []byte // of its memory
}

func (r *remote) start(size uint64) (h hello, err error) {
	if r.file, err = memoryFile("kvgate-prefill"); err != nil {
		return h, err
	}
	if err := r.file.Truncate(int64(size)); err != nil {
		return h, err
	}
	if r.view, err = unix.Mmap(int(r.file.Fd()), 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return h, err
	}
	exe, err := os.Executable()
	if err != nil {
		return h, err
	}
	r.cmd = exec.Command(exe)
	r.cmd.Env = append(os.Environ(), prefillVariable+"=1")
	r.cmd.Stderr = os.Stderr
	r.cmd.ExtraFiles = []*os.File{r.file}
	if r.stdin, err = r.cmd.StdinPipe(); err != nil {
		return h, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return h, err
	}
	if err := r.cmd.Start(); err != nil {
		return h, err
	}
	err = r.within("prefill process", func() error { return gob.NewDecoder(out).Decode(&h) })
	return h, err
}

// within runs fn, which the end of the remote process ends too, and kills that
// process where it takes too long.
func (r *remote) within(what string, fn func() error) error {
	done := make(chan error, 1)
	r.clk.Go(what, func() { done <- fn() })
	over := clock.Func(what, func() bool { return len(done) > 0 })
	if err := r.clk.WaitUntil(context.Background(), over, r.clk.Now()+helloLimit); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", what, err), r.cmd.Process.Kill(), <-done)
	}
	if err := <-done; err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

func (r *remote) close() error {
	var errs []error
	if r.agent != nil {
		errs = append(errs, r.agent.Close())
	}
	if r.cmd != nil && r.cmd.Process != nil {
		errs = append(errs, r.stdin.Close(), r.within("end of the prefill process", r.cmd.Wait))
	}
	if r.view != nil {
		errs = append(errs, unix.Munmap(r.view))
	}
	if r.file != nil {
		errs = append(errs, r.file.Close())
	}
	return errors.Join(errs...)
}

// prefill is the remote process: an agent whose memory is the file that it
// inherited. It ends when its standard input does.
func prefill(in io.Reader, out io.Writer) error {
	lib, err := wheel.Open()
	if err != nil {
		return err
	}
	const inherited = 3
	var st unix.Stat_t
	if err := unix.Fstat(inherited, &st); err != nil {
		return err
	}
	mem, err := unix.Mmap(inherited, 0, int(st.Size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	agent, err := lib.NewAgent(context.Background(), "prefill", libnixl.Config{})
	if err != nil {
		return err
	}
	h := hello{Addr: uint64(uintptr(unsafe.Pointer(&mem[0])))}
	if _, err = agent.Register(nixl.DRAM, []nixl.Descriptor{{Addr: h.Addr, Len: uint64(len(mem))}}); err == nil {
		h.Metadata, err = agent.Metadata()
	}
	if err == nil {
		err = gob.NewEncoder(out).Encode(h)
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	return errors.Join(err, agent.Close())
}
