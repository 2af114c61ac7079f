package sim

import (
	"errors"
	"fmt"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Each allocation of a device gets pages of its own, with unmapped ones behind
// it, further and further up: an address is never used twice, so a stale one can
// be told.
const (
	// The first places that are tried for a device's memory lie placeStep apart
	// from addressHint on, so that addresses are the same from run to run: above
	// Go's heap, below shared libraries, and outside what the race detector keeps
	// for itself.
	addressHint = 0x1800_0000_0000
	placeStep   = 1 << 40
	places      = 8
	// A device starts with firstReserve of address space and takes growReserve
	// more when that is used up, or less where there is a limit. Of the 128 TiB
	// that a process has, a thousand devices find room.
	firstReserve = 64 << 30
	growReserve  = 128 << 30
	minReserve   = 4 << 30
	// guard is the least distance between allocations.
	guard = 64 << 10
)

var errNoSpace = errors.New("the process's address space is used up")

// space is address space that has been reserved. It only grows.
type space struct {
	arenas []arena
}

// arena is one stretch of it.
type arena struct {
	base       unsafe.Pointer
	size, next uint64 // next: offset of what has not been given out
}

const reserveFlags = unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE

// reserve takes the first stretch.
func (s *space) reserve() error {
	for size := uint64(firstReserve); size >= minReserve; size /= 4 {
		for i := range uintptr(places) {
			hint := unsafe.Add(unsafe.Pointer(nil), addressHint+i*placeStep)
			if p, ok := mapAt(hint, size); ok {
				s.arenas = append(s.arenas, arena{base: p, size: size})
				return nil
			}
		}
		if p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, reserveFlags); err == nil {
			s.arenas = append(s.arenas, arena{base: p, size: size})
			return nil
		}
	}
	return fmt.Errorf("cuda/sim: reserving %d bytes of address space: %w", uint64(minReserve), errNoSpace)
}

// mapAt reserves addresses from p on, unless there is something.
func mapAt(p unsafe.Pointer, size uint64) (unsafe.Pointer, bool) {
	got, err := unix.MmapPtr(-1, 0, p, uintptr(size), unix.PROT_NONE, reserveFlags|mapFixedNoReplace)
	if err != nil {
		return nil, false
	}
	if got != p { // a system that does not know the flag
		_ = unix.MunmapPtr(got, uintptr(size))
		return nil, false
	}
	return got, true
}

// take returns span bytes of addresses with a guard behind them.
func (s *space) take(span uint64) (unsafe.Pointer, error) {
	need := roundUp(span+guard, guard)
	if need < span {
		return nil, errNoSpace
	}
	a := &s.arenas[len(s.arenas)-1]
	if need > a.size-a.next {
		if err := s.grow(need); err != nil {
			return nil, err
		}
		a = &s.arenas[len(s.arenas)-1]
	}
	p := unsafe.Add(a.base, a.next)
	a.next += need
	return p, nil
}

// grow makes room for need bytes: behind the last stretch, or elsewhere.
func (s *space) grow(need uint64) error {
	a := &s.arenas[len(s.arenas)-1]
	for _, size := range []uint64{max(growReserve, need), need} {
		if _, ok := mapAt(unsafe.Add(a.base, a.size), size); ok {
			a.size += size
			return nil
		}
		if p, err := unix.MmapPtr(-1, 0, nil, uintptr(size), unix.PROT_NONE, reserveFlags); err == nil {
			s.arenas = append(s.arenas, arena{base: p, size: size})
			return nil
		}
	}
	return errNoSpace
}

// unmap takes the pages away and keeps the addresses.
func unmap(p unsafe.Pointer, span uint64) error {
	_, err := unix.MmapPtr(-1, 0, p, uintptr(span), unix.PROT_NONE, reserveFlags|unix.MAP_FIXED)
	return err
}

func (s *space) close() error {
	var errs []error
	for _, a := range s.arenas {
		errs = append(errs, unix.MunmapPtr(a.base, uintptr(a.size)))
	}
	return errors.Join(errs...)
}
