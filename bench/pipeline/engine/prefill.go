package engine

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"time"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// prefill is the memory of the machine that prompts come from. It has no bytes:
// a load has a stretch of addresses, and what is read there is made from the
// ledger's rule.
type prefill struct {
	ledger *ledger
	shift  int // log2 of the addresses of a load
	next   uint64
	loads  map[uint64]*load
}

// Addresses of the prefill's memory, far from those of the process.
const (
	prefillBase = 1 << 56
	prefillSize = 1 << 55
)

// load is the transfer of a sequence's blocks.
type load struct {
	seq     *sequence
	id      uint64
	entries []loadEntry
	blocks  []kv.Tenancy
	ticket  loadgate.Transfer
	asked   time.Duration // when it was handed to the gate
	left    time.Duration // when the gate let it go; 0: it has not
	noted   bool          // as one that was held
	done    bool
}

type loadEntry struct {
	c      *cell
	page   int
	filled int
}

func newPrefill(l *ledger, most int) *prefill {
	return &prefill{ledger: l, shift: bits.Len64(uint64(most) * l.cache.held), loads: map[uint64]*load{}}
}

// open gives a load its addresses, until close.
func (p *prefill) open(l *load) error {
	if p.next >= prefillSize>>p.shift {
		return fmt.Errorf("engine: more than %d loads", p.next)
	}
	l.id = p.next
	p.loads[l.id] = l
	p.next++
	return nil
}

func (p *prefill) close(l *load) { delete(p.loads, l.id) }

func (p *prefill) address(l *load, entry int) uint64 {
	return prefillBase + l.id<<p.shift + uint64(entry)*p.ledger.cache.held
}

// find returns the entry that an address belongs to.
func (p *prefill) find(addr uint64) (*loadEntry, uint64, error) {
	if !p.Owns(addr, 1) {
		return nil, 0, fmt.Errorf("engine: %#x is not the prefill's", addr)
	}
	off := addr - prefillBase
	l := p.loads[off>>p.shift]
	in := off & (1<<p.shift - 1)
	if l == nil || in/p.ledger.cache.held >= uint64(len(l.entries)) {
		return nil, 0, fmt.Errorf("engine: no load has the prefill's %#x", addr)
	}
	return &l.entries[in/p.ledger.cache.held], in % p.ledger.cache.held, nil
}

// Read implements softnic.Memory.
func (p *prefill) Read(addr uint64, dst []byte) error {
	e, off, err := p.find(addr)
	if err != nil {
		return err
	}
	words := p.ledger.written(e.c.group, e.filled)
	for i := 0; i < len(dst); i += 8 {
		v := uint64(0)
		if w := int(off)/8 + i/8; w < words {
			v = word(e.c.tag, e.page, w, 0)
		}
		if len(dst)-i < 8 {
			return fmt.Errorf("engine: a read of %d bytes at %#x", len(dst), addr)
		}
		binary.LittleEndian.PutUint64(dst[i:], v)
	}
	return nil
}

// Write implements softnic.Memory: nothing is sent there.
func (p *prefill) Write(addr uint64, src []byte) error {
	return fmt.Errorf("engine: %d bytes written to the prefill's %#x", len(src), addr)
}

// Scale implements softnic.Memory.
func (p *prefill) Scale(uint64) uint32 { return p.ledger.cache.scale() }

// Bandwidth implements softnic.Memory: the prefill's memory is no limit.
func (p *prefill) Bandwidth() *vtime.Shared { return nil }

// Owns says which addresses are the prefill's.
func (p *prefill) Owns(addr, n uint64) bool {
	return addr >= prefillBase && n <= prefillSize && addr-prefillBase <= prefillSize-n
}

// landed holds a write of the NIC against the ledger.
func (p *prefill) landed(i softnic.ChunkInfo) {
	if e, _, err := p.find(i.SourceAddr); err == nil {
		p.ledger.writes(e.c)
	}
}

// spec lists what a load moves: the pages of each of its blocks.
func (e *engine) spec(l *load) nixl.Spec {
	s := nixl.Spec{Op: nixl.Read, Peer: e.peer, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM,
		Local: make([]nixl.Descriptor, len(l.entries)), Remote: make([]nixl.Descriptor, len(l.entries))}
	for i := range l.entries {
		en := &l.entries[i]
		s.Local[i] = nixl.Descriptor{Addr: e.cache.address(en.page, en.c.t.Block), Len: e.cache.held}
		s.Remote[i] = nixl.Descriptor{Addr: e.prefill.address(l, i), Len: e.cache.held}
	}
	return s
}
