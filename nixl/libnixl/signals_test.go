//go:build linux

package libnixl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// action is the kernel's struct sigaction of amd64 and arm64.
type action struct {
	handler  uintptr
	flags    uint64
	restorer uintptr
	mask     uint64
}

const onStack = 0x08000000 // SA_ONSTACK

func actionOf(n int) (a action, err error) {
	_, _, e := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(n), 0, uintptr(unsafe.Pointer(&a)), 8, 0, 0)
	if e != 0 {
		return a, e
	}
	return a, nil
}

// After the library, UCX and a transfer every handler is as it was, and on the
// alternate stack.
func TestSignalHandlersStay(t *testing.T) {
	out, err := finish(t, command(t, "handlers"), patience)
	require.NoError(t, err, out)
	require.Contains(t, out, "handlers are as before")
	t.Log(strings.TrimSpace(out))
}

// Go turns a fault of its own code into a panic, which takes its handler.
func TestFaultsOfGoArePanics(t *testing.T) {
	out, err := finish(t, command(t, "fault"), patience)
	require.NoError(t, err, out)
	require.Contains(t, out, "recovered: runtime error: invalid memory address or nil pointer dereference")
}

// SIGINT in mid transfer ends a program that handles it, cleanly, and one that
// does not, as it should.
func TestInterruptInMidTransfer(t *testing.T) {
	for _, role := range []string{"interrupted", "interrupted unhandled"} {
		t.Run(role, func(t *testing.T) {
			out, err := finish(t, command(t, role), patience)
			if role == "interrupted" {
				require.NoError(t, err, out)
				require.Contains(t, out, "closed after interrupt")
				return
			}
			require.Error(t, err)
			require.Contains(t, err.Error(), "signal: interrupt", out)
			require.NotContains(t, out, "panic")
			require.NotContains(t, out, "SIGSEGV")
		})
	}
}

// loaded makes two agents that know each other, in a child.
func loaded() (a, b *Agent, move func() error, l *Library, err error) {
	if l, err = childLibrary(); err != nil {
		return
	}
	if a, err = l.NewAgent(context.Background(), "decode", Config{}); err != nil {
		return
	}
	if b, err = l.NewAgent(context.Background(), "prefill", Config{}); err != nil {
		return
	}
	const size = 4 << 20
	mem, err := unix.Mmap(-1, 0, 2*size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return
	}
	base := uint64(uintptr(unsafe.Pointer(&mem[0])))
	d := [][]nixl.Descriptor{{{Addr: base, Len: size}}, {{Addr: base + size, Len: size}}}
	_, err = a.Register(nixl.DRAM, d[0])
	_, err2 := b.Register(nixl.DRAM, d[1])
	blob, err3 := b.Metadata()
	if err = errors.Join(err, err2, err3); err != nil {
		return
	}
	peer, err := a.AddPeer(blob)
	if err != nil {
		return
	}
	x, err := a.NewTransfer(nixl.Spec{Op: nixl.Write, Peer: peer, Local: d[0], Remote: d[1]})
	move = func() error {
		if err := x.Post(); err != nil {
			return err
		}
		return nixl.Wait(context.Background(), a.Clock(), a, x, a.Clock().Now()+patience)
	}
	return a, b, move, l, err
}

func init() {
	roles["handlers"] = func() error {
		c := make(chan os.Signal, 1)
		signal.Notify(c, syscall.SIGINT, syscall.SIGUSR1)
		var before [65]action
		var err error
		for n := 1; n <= 64; n++ {
			if before[n], err = actionOf(n); err != nil && err != unix.EINVAL {
				return err
			}
		}
		a, b, move, l, err := loaded()
		if err != nil {
			return err
		}
		if err := move(); err != nil {
			return err
		}
		for n := 1; n <= 64; n++ {
			now, err := actionOf(n)
			if err == unix.EINVAL {
				continue
			}
			if now.handler > 1 && now.flags&onStack == 0 {
				return fmt.Errorf("the handler of signal %d is not on the alternate stack", n)
			}
			if before[n].handler > 1 && now.handler != before[n].handler {
				return fmt.Errorf("signal %d has another handler now", n)
			}
		}
		fmt.Printf("handlers are as before; put back: %v\n", l.signals)
		return errors.Join(a.Close(), b.Close())
	}
	roles["fault"] = func() error {
		a, b, move, _, err := loaded()
		if err != nil {
			return err
		}
		if err := move(); err != nil {
			return err
		}
		func() {
			defer func() { fmt.Println("recovered:", recover()) }()
			debug.SetPanicOnFault(true)
			var p *int
			fmt.Println(*p)
		}()
		return errors.Join(move(), a.Close(), b.Close())
	}
	interrupted := func(handle bool) func() error {
		return func() error {
			a, b, move, _, err := loaded()
			if err != nil {
				return err
			}
			c := make(chan os.Signal, 1)
			if handle {
				signal.Notify(c, os.Interrupt)
			}
			clk := clock.Wall()
			clk.Go("interrupt", func() {
				_ = clk.Sleep(context.Background(), 50*time.Millisecond)
				_ = syscall.Kill(os.Getpid(), syscall.SIGINT)
			})
			for len(c) == 0 {
				if err := move(); err != nil {
					return err
				}
			}
			if err := errors.Join(a.Close(), b.Close()); err != nil {
				return err
			}
			fmt.Println("closed after interrupt")
			return nil
		}
	}
	roles["interrupted"], roles["interrupted unhandled"] = interrupted(true), interrupted(false)
}
