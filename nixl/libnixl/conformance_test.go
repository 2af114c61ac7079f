//go:build linux

package libnixl

import (
	"strings"
	"testing"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/nixltest"
)

// Two agents in this process.
func TestConformanceInProcess(t *testing.T) {
	library(t)
	nixltest.Run(t, func(t *testing.T) nixltest.Pair {
		p := nixltest.Pair{Clock: clock.Wall(), Memory: nixl.DRAM}
		p.A, p.BufferA = agent(t, "decode", Config{}), pages(t, nixltest.Size)
		p.B, p.BufferB = agent(t, "prefill", Config{}), pages(t, nixltest.Size)
		return p
	})
}

// The second agent in a process of its own, over TCP on the loopback. Where the
// table wants a transfer in mid flight, that process stands still unless it is
// asked something: over TCP a read needs its target to run.
//
// A disconnect is the end of that process, and another in its place. Cutting the
// connection alone is no use: UCX aborts a process whose connection goes while
// it answers a read ("unexpected error: Endpoint timeout").
func TestConformanceTwoProcesses(t *testing.T) {
	library(t)
	t.Setenv("UCX_TLS", "tcp,self")
	nixltest.Run(t, func(t *testing.T) nixltest.Pair {
		file, view := memory(t, nixltest.Size)
		a := agent(t, "decode", Config{})
		p := nixltest.Pair{Clock: clock.Wall(), Memory: nixl.DRAM, A: a, BufferA: pages(t, nixltest.Size)}
		b := newPeer(t, "prefill", file)
		b.paused = strings.Contains(t.Name(), "disconnect:") || strings.Contains(t.Name(), "restart:")
		p.B, p.BufferB = b, nixltest.Buffer{Addr: childMemory, Data: view}
		p.Disconnect = func() {
			b.kill()
			b.again()
		}
		p.RestartB = func() nixl.Agent {
			b.kill()
			return newPeer(t, "prefill", file)
		}
		return p
	})
}
