package sim

import (
	"encoding/binary"
	"fmt"
	"sync/atomic"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// word returns an aligned word of memory, to be read and written atomically: the
// host may be at it, too.
func (m *Memory) word(addr uint64, write bool) (*uint32, *region, error) {
	b, r, err := m.locate(addr, 4, write)
	if err != nil {
		return nil, nil, err
	}
	if addr%4 != 0 {
		return nil, nil, fmt.Errorf("%#x is no multiple of 4", addr)
	}
	return (*uint32)(unsafe.Pointer(unsafe.SliceData(b))), r, nil
}

// wordText is for reports.
func (m *Memory) wordText(addr uint64) string {
	w, r, err := m.word(addr, false)
	if err != nil {
		return err.Error()
	}
	return fmt.Sprintf("%#x at offset %#x of %q", atomic.LoadUint32(w), addr-r.base, r.name)
}

// reached compares words cyclically.
func reached(seen, want uint32) bool { return int32(seen-want) >= 0 }

func (d *Device) submitWord(c *cuda.Command, s *stream) error {
	op := c.Op.String()
	if c.B>>32 != 0 {
		return invalid(op, "value %#x in a word", c.B)
	}
	if c.Flags&^cuda.WaitFlush != 0 || c.Flags != 0 && c.Op == cuda.OpWriteWord {
		return invalid(op, "flags %#x", c.Flags)
	}
	if err := d.mem.known(c.A, 4, c.Op == cuda.OpWriteWord); err != nil {
		return invalid(op, "%v", err)
	}
	if c.A%4 != 0 {
		return invalid(op, "%#x is no multiple of 4", c.A)
	}
	r := d.mem.below(c.A)
	if r == nil || c.A-r.base >= r.size {
		r = d.mem.far(c.A)
	}
	if r != nil && r.kind == cuda.ManagedMemory {
		return invalid(op, "%q is %s memory", r.name, r.kind)
	}
	n := s.push(c.Op)
	n.a, n.b, n.flags = c.A, c.B, c.Flags
	s.advance()
	return nil
}

// writeWord carries out the write at the head.
func (s *stream) writeWord() {
	d := s.d
	if d.stopped() {
		return
	}
	c := &s.queue[s.head]
	w, _, err := d.mem.word(c.a, true)
	if err != nil {
		d.fail(s, c, err)
		return
	}
	s.begins(c)
	if c.by != nil { // who sees the word sees what came before
		d.words[c.a] = c.by.Clock()
	}
	atomic.StoreUint32(w, uint32(c.b))
	d.activity.Add(1)
	s.complete()
}

// wordThere reports whether the wait at the head is over, for good or bad.
func (s *stream) wordThere() bool {
	d := s.d
	if d.stopped() {
		return true
	}
	c := &s.queue[s.head]
	w, _, err := d.mem.word(c.a, false)
	if err != nil {
		return true
	}
	seen := atomic.LoadUint32(w)
	if c.flags&cuda.WaitFlush != 0 && len(d.nic.late) > 0 {
		var b [4]byte
		binary.NativeEndian.PutUint32(b[:], seen)
		d.nic.overlay(c.a, b[:])
		seen = binary.NativeEndian.Uint32(b[:])
	}
	return reached(seen, uint32(c.b))
}

// wordReached ends the wait at the head.
func (s *stream) wordReached() {
	d := s.d
	if d.stopped() {
		return
	}
	s.onWord = false
	c := &s.queue[s.head]
	if _, _, err := d.mem.word(c.a, false); err != nil {
		d.fail(s, c, err)
		return
	}
	if c.flags&cuda.WaitFlush != 0 {
		d.nic.flush()
	}
	if l := s.timeline(); l != nil && !s.lane {
		l.Join(d.words[c.a])
		l.Join(d.races.HostLine().Now()) // it may be the host that wrote it
	}
	d.world.After(d.costs.StreamWait, "wait is over", s.resumeFn)
}
