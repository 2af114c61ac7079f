package sim

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/cuda"
)

// shared is the memory file that device memory comes from where other processes
// may open it. Its first pages are a directory of what has been exported: each
// slot holds the handle as it was given out, or nothing. Who opens a handle
// compares, so that a handle of a process that has gone, of memory that was
// freed, or that nobody has made is told.
type shared struct {
	fd   int
	size uint64
	free []uint32 // slots
}

const (
	sharedName = "kvgate-device-memory"
	slots      = 1 << 14
	// directory is the size of the directory; memory starts behind it.
	directory = slots * handleBytes
)

const handleBytes = uint64(len(cuda.MemoryHandle{}))

func newShared() (*shared, error) {
	fd, err := newMemoryFile()
	if err != nil {
		return nil, fmt.Errorf("cuda/sim: making memory to share: %w", err)
	}
	s := &shared{fd: fd, size: directory}
	if err := unix.Ftruncate(fd, int64(directory)); err != nil {
		return nil, fmt.Errorf("cuda/sim: making memory to share: %w", errors.Join(err, s.close()))
	}
	for i := uint32(slots); i > 0; i-- {
		s.free = append(s.free, i-1)
	}
	return s, nil
}

// grow adds span bytes to the file and returns where.
func (s *shared) grow(span uint64) (int64, error) {
	if err := unix.Ftruncate(s.fd, int64(s.size+span)); err != nil {
		return 0, fmt.Errorf("growing the memory file by %d bytes: %w", span, err)
	}
	off := s.size
	s.size += span
	return int64(off), nil
}

// drop gives the pages of a region back, and ends its handle.
func (s *shared) drop(r *region, span uint64) error {
	if s == nil {
		return nil
	}
	var err error
	if r.ipc.exported {
		_, err = unix.Pwrite(s.fd, make([]byte, handleBytes), int64(r.ipc.slot)*int64(handleBytes))
		s.free = append(s.free, r.ipc.slot)
		r.ipc.exported = false
	}
	return errors.Join(err, punchHole(s.fd, r.ipc.off, int64(span)))
}

func (s *shared) close() error {
	if s == nil {
		return nil
	}
	return unix.Close(s.fd)
}

// ticket is what a handle says.
type ticket struct {
	pid   uint32
	fd    uint32
	slot  uint32
	scale uint32
	nonce uint64
	off   uint64 // in the file
	size  uint64
}

const ticketMagic = "kvgate-mem/1"

func (t ticket) handle() (h cuda.MemoryHandle) {
	b := append(h[:0], ticketMagic...)
	for _, v := range []uint32{t.pid, t.fd, t.slot, t.scale} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, v := range []uint64{t.nonce, t.off, t.size} {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return h
}

func parseTicket(h cuda.MemoryHandle) (t ticket, ok bool) {
	b, ok := strings.CutPrefix(string(h[:]), ticketMagic)
	if !ok {
		return t, false
	}
	word := func(i int) uint32 { return binary.LittleEndian.Uint32([]byte(b[4*i:])) }
	long := func(i int) uint64 { return binary.LittleEndian.Uint64([]byte(b[16+8*i:])) }
	t = ticket{word(0), word(1), word(2), word(3), long(0), long(1), long(2)}
	return t, t.handle() == h
}

// export gives a region a slot and a handle.
func (s *shared) export(r *region) (h cuda.MemoryHandle, err error) {
	if len(s.free) == 0 {
		return h, fmt.Errorf("%d allocations are exported", slots)
	}
	var nonce [8]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return h, err
	}
	slot := s.free[len(s.free)-1]
	h = ticket{
		pid: uint32(os.Getpid()), fd: uint32(s.fd), slot: slot, scale: r.scale,
		nonce: binary.LittleEndian.Uint64(nonce[:]), off: uint64(r.ipc.off), size: r.size,
	}.handle()
	if _, err := unix.Pwrite(s.fd, h[:], int64(slot)*int64(handleBytes)); err != nil {
		return h, err
	}
	s.free = s.free[:len(s.free)-1]
	r.ipc.exported, r.ipc.slot, r.ipc.handle = true, slot, h
	return h, nil
}

// openTicket opens the file that a handle is of, which the caller closes.
func openTicket(t ticket, h cuda.MemoryHandle) (fd int, err error) {
	path := fmt.Sprintf("/proc/%d/fd/%d", t.pid, t.fd)
	// Only a memory file of a device is opened: opening another may block.
	to, err := os.Readlink(path)
	if err != nil {
		return -1, fmt.Errorf("process %d has gone, or may not be looked into: %w", t.pid, err)
	}
	if !strings.HasPrefix(to, "/memfd:"+sharedName) {
		return -1, fmt.Errorf("process %d has no device memory under that number", t.pid)
	}
	if fd, err = unix.Open(path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
		return -1, err
	}
	if err := checkTicket(fd, t, h); err != nil {
		return -1, errors.Join(err, unix.Close(fd))
	}
	return fd, nil
}

func checkTicket(fd int, t ticket, h cuda.MemoryHandle) error {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	var now cuda.MemoryHandle
	if t.slot >= slots {
		return fmt.Errorf("no slot %d", t.slot)
	}
	if _, err := unix.Pread(fd, now[:], int64(t.slot)*int64(handleBytes)); err != nil {
		return err
	}
	page := uint64(os.Getpagesize())
	switch size := uint64(st.Size); {
	case now != h:
		return errors.New("the memory has been freed, or was never exported")
	case t.size == 0 || t.off < directory || t.off%page != 0 || t.off > size || t.size > size-t.off:
		return fmt.Errorf("%d bytes at %d of a file of %d", t.size, t.off, size)
	}
	return nil
}
