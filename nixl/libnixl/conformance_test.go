package libnixl

import (
	"strings"
	"testing"

	"github.com/kvgate/kvgate/internal/clock"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/conformance"
)

// Two agents in this process.
func TestConformanceInProcess(t *testing.T) {
	library(t)
	conformance.Run(t, func(t *testing.T) conformance.Pair {
		p := conformance.Pair{Clock: clock.Wall(), Memory: nixl.DRAM}
		p.A, p.BufferA = agent(t, "decode", Config{}), pages(t, conformance.Size)
		p.B, p.BufferB = agent(t, "prefill", Config{}), pages(t, conformance.Size)
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
	conformance.Run(t, func(t *testing.T) conformance.Pair {
		file, view := memory(t, conformance.Size)
		a := agent(t, "decode", Config{})
		p := conformance.Pair{Clock: clock.Wall(), Memory: nixl.DRAM, A: a, BufferA: pages(t, conformance.Size)}
		b := newPeer(t, "prefill", file)
		b.paused = strings.Contains(t.Name(), "disconnect:") || strings.Contains(t.Name(), "restart:")
		p.B, p.BufferB = b, conformance.Buffer{Addr: childMemory, Data: view}
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
