package nic

import (
	"context"
	"errors"

	"github.com/kvgate/kvgate/bench/internal/wheel"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

// openNIXL reads from another process by NIXL over UCX. Memory of a simulated
// device is memory of this process, and goes as such.
func (n *NIC) openNIXL(ctx context.Context) error {
	lib, err := wheel.Open() // before a process is started
	if err != nil {
		return err
	}
	simulated := n.o.Device.Info().Simulated
	n.local = nixl.VRAM
	if simulated {
		n.local = nixl.DRAM
	}
	n.remote = n.local
	clk := n.o.Device.Clock()
	p, a, err := startProcess(ctx, clk, hello{Kind: NIXL, Prompts: n.o.Prompts, Simulated: simulated})
	if err != nil {
		return err
	}
	n.process, n.addr, n.prepare = p, a.Addr, p.prepare
	n.onClose(p.close)
	if d, ok := n.o.Device.(cuda.RDMADevice); ok && !simulated {
		if _, err := d.PrepareRDMA(n.o.Base, n.o.Size); err != nil && !errors.Is(err, cuda.ErrNotSupported) {
			return err
		}
	}
	agent, err := lib.NewAgent(ctx, "decode", libnixl.Config{Clock: clk})
	if err != nil {
		return err
	}
	n.Agent = agent
	n.onClose(agent.Close)
	if _, err := agent.Register(n.local, []nixl.Descriptor{{Addr: uint64(n.o.Base), Len: n.o.Size}}); err != nil {
		return err
	}
	if n.peer, err = agent.AddPeer(a.Metadata); err != nil {
		return err
	}
	n.What = "NIXL " + lib.Version() + " over UCX, reading " + a.What
	return nil
}

// serveNIXL offers prompts to be read.
func (s *server) serveNIXL() (a answer, err error) {
	lib, err := wheel.Open()
	if err != nil {
		return a, err
	}
	m := nixl.VRAM
	if s.Simulated {
		m = nixl.DRAM
		h, err := newOnHost(s.Prompts)
		if err != nil {
			return a, err
		}
		s.store = h
		s.onClose(h.close)
		a.What = "another process's host memory"
	} else {
		if err := s.openDevice(); err != nil {
			return a, err
		}
		if err := s.keep(false); err != nil {
			return a, err
		}
		a.What = "another process's device memory"
	}
	agent, err := lib.NewAgent(context.Background(), "prefill", libnixl.Config{})
	if err != nil {
		return a, err
	}
	s.onClose(agent.Close)
	if _, err := agent.Register(m, []nixl.Descriptor{{Addr: s.store.addr(), Len: s.Prompts.bytes()}}); err != nil {
		return a, err
	}
	a.Metadata, err = agent.Metadata()
	return a, err
}
