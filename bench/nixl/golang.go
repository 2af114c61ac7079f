package main

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

const (
	descriptorBytes = 4096
	most            = 512 // descriptors of a transfer
)

// requests returns how many transfers of n descriptors make a batch, and how
// often a batch is run.
func requests(n int) (batch, times int) { return max(64/n, 8), 20 }

// golang measures the Go binding.
type golang struct {
	a, b *libnixl.Agent
	peer nixl.Peer
	mem  []byte
	clk  clock.Clock
}

func openGo(lib *libnixl.Library) (*golang, error) {
	g := &golang{clk: clock.Wall()}
	var err error
	if g.mem, err = unix.Mmap(-1, 0, 2*most*descriptorBytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE); err != nil {
		return nil, err
	}
	if g.a, err = lib.NewAgent(context.Background(), "go-a", libnixl.Config{}); err != nil {
		return nil, err
	}
	if g.b, err = lib.NewAgent(context.Background(), "go-b", libnixl.Config{}); err != nil {
		return nil, errors.Join(err, g.a.Close())
	}
	base := uint64(uintptr(unsafe.Pointer(&g.mem[0])))
	half := uint64(len(g.mem) / 2)
	_, err = g.a.Register(nixl.DRAM, []nixl.Descriptor{{Addr: base, Len: half}})
	if err == nil {
		_, err = g.b.Register(nixl.DRAM, []nixl.Descriptor{{Addr: base + half, Len: half}})
	}
	var blob []byte
	if err == nil {
		blob, err = g.b.Metadata()
	}
	if err == nil {
		g.peer, err = g.a.AddPeer(blob)
	}
	if err != nil {
		return nil, errors.Join(err, g.Close())
	}
	return g, nil
}

func (g *golang) Close() error { return errors.Join(g.a.Close(), g.b.Close(), unix.Munmap(g.mem)) }

// spec is a read of n descriptors, each beside the other with a gap, so that
// nothing can join them.
func (g *golang) spec(n int) nixl.Spec {
	s := nixl.Spec{Op: nixl.Read, Peer: g.peer}
	base := uint64(uintptr(unsafe.Pointer(&g.mem[0])))
	for i := range uint64(n) {
		s.Local = append(s.Local, nixl.Descriptor{Addr: base + i*descriptorBytes, Len: descriptorBytes})
		s.Remote = append(s.Remote, nixl.Descriptor{Addr: base + uint64(len(g.mem)/2) + i*descriptorBytes, Len: descriptorBytes})
	}
	return s
}

func (g *golang) measure(n int) (figures, error) {
	batch, times := requests(n)
	spec := g.spec(n)
	best := figures{}
	note := func(phase string, from time.Duration, count int) time.Duration {
		now := g.clk.Now()
		v := float64(now-from) / float64(count)
		if old, ok := best[phase]; !ok || v < old {
			best[phase] = v
		}
		return g.clk.Now()
	}
	all := make([]nixl.Transfer, batch)
	for range times {
		var err error
		t := g.clk.Now()
		for i := range all {
			if all[i], err = g.a.NewTransfer(spec); err != nil {
				return nil, err
			}
		}
		t = note("make", t, batch)
		for _, x := range all {
			if err := x.Post(); err != nil {
				return nil, err
			}
		}
		t = note("post", t, batch)
		for _, x := range all {
			if err := finish(x); err != nil {
				return nil, err
			}
		}
		t = note("finish", t, batch)
		const asks = 32
		for _, x := range all {
			for range asks {
				if s, err := x.Status(); s != nixl.Done {
					return nil, fmt.Errorf("status %v: %w", s, err)
				}
			}
		}
		t = note("status", t, batch*asks)
		for _, x := range all {
			if err := x.Close(); err != nil {
				return nil, err
			}
		}
		note("release", t, batch)
	}
	x, err := g.a.NewTransfer(spec)
	if err != nil {
		return nil, err
	}
	for range times {
		t := g.clk.Now()
		for range batch {
			if err := x.Post(); err != nil {
				return nil, err
			}
			if err := finish(x); err != nil {
				return nil, err
			}
		}
		note("repost", t, batch)
	}
	return best, x.Close()
}

// finish polls without a pause, as the others do.
func finish(x nixl.Transfer) error {
	for {
		switch s, err := x.Status(); s {
		case nixl.Done:
			return nil
		case nixl.Failed:
			return err
		}
	}
}
