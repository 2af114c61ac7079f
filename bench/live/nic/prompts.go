package nic

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/bench/live/standin"
	"github.com/kvgate/kvgate/cuda"
)

// store is the memory that prompts wait in.
type store interface {
	addr() uint64
	prepare(slot int, request uint32) error
	close() error
}

// onDevice is memory that a device writes prompts into, its own or pinned.
type onDevice struct {
	Prompts
	dev    cuda.Device
	set    *standin.Set
	stream cuda.Stream
	base   cuda.DevicePtr
	pinned cuda.PinnedBuffer
	items  cuda.PinnedBuffer

	mu    sync.Mutex
	batch cuda.Batch
}

func newOnDevice(dev cuda.Device, p Prompts, pinned bool) (_ *onDevice, err error) {
	s := &onDevice{Prompts: p, dev: dev}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.set, err = standin.Load(dev); err != nil {
		return nil, err
	}
	if s.stream, err = dev.NewStream(cuda.StreamOptions{Name: "prefill"}); err != nil {
		return nil, err
	}
	o := cuda.AllocOptions{Name: "prompts"}
	if pinned {
		s.pinned, err = dev.AllocPinned(p.bytes(), o)
		s.base = s.pinned.Device
	} else {
		s.base, err = dev.Alloc(p.bytes(), o)
	}
	if err != nil {
		return nil, err
	}
	s.items, err = dev.AllocPinned(uint64(p.Blocks*standin.ItemBytes), cuda.AllocOptions{Name: "prompt's blocks"})
	return s, err
}

func (s *onDevice) addr() uint64 { return uint64(s.base) }

func (s *onDevice) prepare(slot int, request uint32) error {
	if slot < 0 || slot >= s.Slots {
		return fmt.Errorf("no slot %d", slot)
	}
	pages, err := s.pages(uint64(s.base), slot)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	standin.PutItems(s.items.Host, s.Prompts.items(request))
	s.batch.Reset()
	s.set.Write(&s.batch, s.stream, pages, s.items.Device, s.Blocks)
	if err := s.dev.Submit(&s.batch); err != nil {
		return err
	}
	return s.dev.SyncStream(context.Background(), s.stream)
}

// close gives everything back. No transfer may be reading it.
func (s *onDevice) close() error {
	var errs []error
	if s.items.Device != 0 {
		errs = append(errs, s.dev.FreePinned(s.items))
	}
	switch {
	case s.pinned.Device != 0:
		errs = append(errs, s.dev.FreePinned(s.pinned))
	case s.base != 0:
		errs = append(errs, s.dev.Free(s.base))
	}
	if s.stream != 0 {
		errs = append(errs, s.dev.DestroyStream(s.stream))
	}
	if s.set != nil {
		errs = append(errs, s.set.Close())
	}
	return errors.Join(errs...)
}

// onHost is memory of the process.
type onHost struct {
	Prompts
	mem []byte
}

func newOnHost(p Prompts) (*onHost, error) {
	mem, err := unix.Mmap(-1, 0, int(p.bytes()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, fmt.Errorf("memory for %d prompts: %w", p.Slots, err)
	}
	return &onHost{p, mem}, nil
}

func (s *onHost) addr() uint64 { return uint64(uintptr(unsafe.Pointer(&s.mem[0]))) }

func (s *onHost) prepare(slot int, request uint32) error {
	if slot < 0 || slot >= s.Slots {
		return fmt.Errorf("no slot %d", slot)
	}
	pages, err := s.pages(0, slot)
	if err != nil {
		return err
	}
	for g := range s.Segments {
		for _, it := range s.Prompts.items(request) {
			pages.Write(s.mem[pages.Address(g, it.Block):], g, it)
		}
	}
	return nil
}

func (s *onHost) close() error { return unix.Munmap(s.mem) }
