//go:build linux

package libnixl

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// The collector warns of what was dropped, and of nothing else.
func TestTheCollectorWarns(t *testing.T) {
	out, err := finish(t, command(t, "drop"), patience)
	require.NoError(t, err, out)
	require.Contains(t, out, "NIXL agent dropped was dropped without Close")
	require.NotContains(t, out, "agent closed")
}

func init() {
	roles["drop"] = func() error {
		l, err := childLibrary()
		if err != nil {
			return err
		}
		memory := make([]byte, 1<<16)
		named := func(name string, off int, end bool) error {
			a, err := l.NewAgent(context.Background(), name, Config{})
			if err != nil {
				return err
			}
			b := bufferOf(memory)
			r, err := a.Register(nixl.DRAM, []nixl.Descriptor{{Addr: b.Addr + uint64(off), Len: 4096}})
			if end {
				err = errors.Join(err, r.Close(), a.Close())
			}
			return err
		}
		warned := 0
		told := make(chan string, 8)
		print := Leaked
		Leaked = func(what string) { told <- what }
		if err := errors.Join(named("closed", 0, true), named("dropped", 8192, false)); err != nil {
			return err
		}
		clk := clock.Wall()
		for warned < 1 {
			runtime.GC()
			select {
			case what := <-told:
				print(what)
				warned++
			default:
			}
			if clk.Now() > patience/2 {
				return fmt.Errorf("%d warnings", warned)
			}
			_ = clk.Sleep(context.Background(), time.Millisecond)
		}
		runtime.KeepAlive(memory)
		return nil
	}
}
