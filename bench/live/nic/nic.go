// Package nic brings prompts into device memory behind the back of the gate's
// streams: by NIXL from another process, by another process that has the memory
// through CUDA IPC, or by a copy engine of this one.
package nic

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/kvgate/kvgate/bench/live/standin"
	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

// The kinds of NIC, and the one that takes the first that can be had.
const (
	Auto = "auto"
	NIXL = "nixl"
	IPC  = "ipc"
	Copy = "copy"
)

// Kinds are the kinds in the order in which Auto tries them.
var Kinds = []string{NIXL, IPC, Copy}

// Prompts say what the other end holds: slots for prompts of a number of whole
// blocks.
type Prompts struct {
	Slots     int
	Blocks    int // of a prompt
	Segments  int
	PageBytes int
	Tokens    int // in a block
}

// SlotBytes is the size of a prompt.
func (p *Prompts) SlotBytes() uint64 {
	return uint64(p.Blocks) * uint64(p.Segments) * uint64(p.PageBytes)
}

func (p *Prompts) bytes() uint64 { return uint64(p.Slots) * p.SlotBytes() }

// pages returns where a slot's blocks lie, if slots begin at base.
func (p *Prompts) pages(base uint64, slot int) (standin.Pages, error) {
	return standin.NewPages(cuda.DevicePtr(base+uint64(slot)*p.SlotBytes()), p.Blocks, p.Segments, p.PageBytes, p.Tokens)
}

// items are the blocks of a request's prompt.
func (p *Prompts) items(request uint32) (out []standin.Item) {
	for b := range p.Blocks {
		out = append(out, standin.Item{Block: kv.Block(b), Request: request, Position: uint32(b * p.Tokens), End: uint16(p.Tokens)})
	}
	return out
}

// Options describe what prompts are brought into.
type Options struct {
	Device cuda.Device
	Base   cuda.DevicePtr // an allocation of the device, of at least a prompt
	Size   uint64
	Slow   float64 // how much slower than its model a simulated device is
	Prompts
}

// Skip is a kind that Auto did not take.
type Skip struct {
	Kind string `json:"kind"`
	Why  string `json:"why"`
}

// NIC brings prompts. Its methods are safe for use by several goroutines.
type NIC struct {
	Kind    string
	What    string // in words
	Skipped []Skip
	Agent   nixl.Agent

	o       Options
	peer    nixl.Peer
	local   nixl.MemoryType
	remote  nixl.MemoryType
	addr    uint64 // of the first slot
	prepare func(ctx context.Context, slot int, request uint32) error
	process *process // nil: there is none
	closers []func() error
}

// Open opens a NIC of a kind, or for Auto the first that can be had. One that is
// opened has brought a prompt to o.Base, and it was looked at.
func Open(ctx context.Context, kind string, o Options) (*NIC, error) {
	if o.Size < o.SlotBytes() {
		return nil, fmt.Errorf("nic: %d bytes to bring prompts of %d bytes into", o.Size, o.SlotBytes())
	}
	if kind != Auto {
		return open(ctx, kind, o)
	}
	var skipped []Skip
	for _, k := range Kinds {
		n, err := open(ctx, k, o)
		var busy *stuckError
		switch {
		case err == nil:
			n.Skipped = skipped
			return n, nil
		case ctx.Err() != nil || errors.As(err, &busy):
			return nil, err
		}
		skipped = append(skipped, Skip{k, strings.ReplaceAll(strings.TrimPrefix(err.Error(), "nic "+k+": "), "\n", "; ")})
	}
	var why []error
	for _, s := range skipped {
		why = append(why, fmt.Errorf("%s: %s", s.Kind, s.Why))
	}
	return nil, fmt.Errorf("nic: none can be had: %w", errors.Join(why...))
}

func open(ctx context.Context, kind string, o Options) (*NIC, error) {
	n := &NIC{Kind: kind, o: o}
	var err error
	switch kind {
	case NIXL:
		err = n.openNIXL(ctx)
	case IPC:
		err = n.openIPC(ctx)
	case Copy:
		err = n.openCopy()
	default:
		return nil, fmt.Errorf("nic: no kind %q", kind)
	}
	if err == nil {
		err = n.probe(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("nic %s: %w", kind, err), n.Close())
	}
	return n, nil
}

// Prepare has the prompt of a request put into a slot at the other end, which no
// transfer may be reading. It blocks until it is there.
func (n *NIC) Prepare(ctx context.Context, slot int, request uint32) error {
	if err := n.prepare(ctx, slot, request); err != nil {
		return fmt.Errorf("nic %s: prepare a prompt: %w", n.Kind, err)
	}
	return nil
}

// Fetch makes the transfer that brings a slot's prompt into blocks; at says where
// the page of the i-th of them in a segment lies.
func (n *NIC) Fetch(slot int, at func(i, segment int) uint64) (nixl.Transfer, error) {
	from, err := n.o.pages(n.addr, slot)
	if err != nil {
		return nil, err
	}
	spec := nixl.Spec{Op: nixl.Read, Peer: n.peer, LocalMemory: n.local, RemoteMemory: n.remote}
	for s := range n.o.Segments {
		for i := range n.o.Blocks {
			spec.Local = append(spec.Local, nixl.Descriptor{Addr: at(i, s), Len: uint64(n.o.PageBytes)})
			spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: from.Address(s, kv.Block(i)), Len: uint64(n.o.PageBytes)})
		}
	}
	return n.Agent.NewTransfer(spec)
}

// Process returns the id of the other end's process; 0: it has none of its own.
func (n *NIC) Process() int {
	if n.process == nil {
		return 0
	}
	return n.process.cmd.Process.Pid
}

// Kill ends the other end's process, if it has one: it does not do what it is to.
func (n *NIC) Kill() error {
	if n.process == nil {
		return nil
	}
	return n.process.cmd.Process.Kill()
}

// Err returns why the other end is gone, or nil.
func (n *NIC) Err() error {
	if n.process == nil {
		return nil
	}
	if err := n.process.err(); err != nil {
		return fmt.Errorf("nic %s: %w", n.Kind, err)
	}
	return nil
}

// Close ends the NIC. Its transfers are to be over and closed.
func (n *NIC) Close() error {
	var errs []error
	for i := len(n.closers) - 1; i >= 0; i-- {
		errs = append(errs, n.closers[i]())
	}
	n.closers = nil
	return errors.Join(errs...)
}

func (n *NIC) onClose(fn func() error) { n.closers = append(n.closers, fn) }

// probeLimit is how long the first prompt may take to come.
const probeLimit = 20 * time.Second

// stuckError is a transfer that does not end: nobody knows what it still writes.
type stuckError struct{ error }

// probe brings a prompt, and looks whether it came.
func (n *NIC) probe(ctx context.Context) error {
	if err := n.prepare(ctx, 0, standin.MaxRequest); err != nil {
		return err
	}
	to, err := n.o.pages(uint64(n.o.Base), 0)
	if err != nil {
		return err
	}
	t, err := n.Fetch(0, func(i, s int) uint64 { return to.Address(s, kv.Block(i)) })
	if err != nil {
		return err
	}
	clk := n.o.Device.Clock()
	err = t.Post()
	if err == nil {
		over := clock.Func("the first prompt", func() bool { st, _ := t.Status(); return st != nixl.InProgress || n.Err() != nil })
		if waited := clk.WaitUntil(ctx, over, clk.Now()+probeLimit); waited != nil {
			return &stuckError{fmt.Errorf("the first prompt did not come within %v: %w", probeLimit, waited)}
		}
		_, err = t.Status()
	}
	if err := errors.Join(err, n.Err()); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	got, want := make([]byte, n.o.PageBytes), make([]byte, n.o.PageBytes)
	for s := range n.o.Segments {
		for _, it := range n.o.items(standin.MaxRequest) {
			to.Write(want, s, it)
			if err := n.o.Device.Read(got, cuda.DevicePtr(to.Address(s, it.Block))); err != nil {
				return err
			}
			if !bytes.Equal(got, want) {
				return fmt.Errorf("the first prompt was said to be there, but block %d of segment %d is not as sent", it.Block, s)
			}
		}
	}
	return nil
}

// Variable makes a program that calls [Serve] the other end of a NIC.
const Variable = "KVGATE_LIVE_NIC"

// Asked reports whether the program was started to be the other end.
func Asked() bool { return os.Getenv(Variable) != "" }
