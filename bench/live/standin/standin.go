// Package standin stands in for a model's forward pass: kernels that read, check
// and write the blocks of a step, and take a set time. The sources are beside
// this file, with the PTX made from them, which every device runs.
//
// Each token of a request has a slot in every page of its block. A slot holds
// 64-bit words that no other token, page or request has; slots that nothing has
// been written to hold zeros. So a word that zeroing or another's write has hit
// shows, and so does zeroing that did not happen.
package standin

import (
	"context"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

//go:embed forward.ptx
var image []byte

// The fields of a stamp.
const (
	MaxRequest  = 1<<24 - 1
	MaxPosition = 1<<20 - 1
	MaxSegments = 1 << 6
	maxWords    = 1 << 14 // of a slot
)

// Pages say where blocks lie: block b of segment s at
// Base + s*SegmentStride + b*PageBytes. It is laid out as the kernels have it.
type Pages struct {
	Base          cuda.DevicePtr
	SegmentStride uint64
	PageBytes     uint32
	Segments      uint32
	shift         uint32
	_             uint32
}

// NewPages returns the pages of blocks whose segments follow each other from
// base on. A page has a slot for each of tokens.
func NewPages(base cuda.DevicePtr, blocks, segments, pageBytes, tokens int) (Pages, error) {
	switch {
	case segments < 1 || segments > MaxSegments:
		return Pages{}, fmt.Errorf("%d segments: want 1 to %d", segments, MaxSegments)
	case tokens < 1 || tokens > 1<<16-1 || pageBytes%tokens != 0:
		return Pages{}, fmt.Errorf("%d tokens in a page of %d bytes: want equal slots, and at most 65535", tokens, pageBytes)
	}
	words := pageBytes / tokens / 8
	if pageBytes/tokens%8 != 0 || words < 2 || words > maxWords || bits.OnesCount(uint(words)) != 1 {
		return Pages{}, fmt.Errorf("a slot of %d bytes: want a power of two from 16 to %d", pageBytes/tokens, 8*maxWords)
	}
	return Pages{Base: base, SegmentStride: uint64(blocks) * uint64(pageBytes), PageBytes: uint32(pageBytes),
		Segments: uint32(segments), shift: uint32(bits.TrailingZeros(uint(words)))}, nil
}

// Address returns where a page lies.
func (p *Pages) Address(segment int, b kv.Block) uint64 {
	return uint64(p.Base) + uint64(segment)*p.SegmentStride + uint64(b)*uint64(p.PageBytes)
}

// Item is a block as a request uses it. It is laid out as the kernels have it.
type Item struct {
	Block    kv.Block
	Request  uint32 // 1 to MaxRequest
	Position uint32 // of the token in the block's first slot; the last is at most MaxPosition
	First    uint16 // slots to write, from First to End;
	End      uint16 // and to check: those before End are written, the others are zero
}

// ItemBytes is the size of an Item in memory.
const ItemBytes = int(unsafe.Sizeof(Item{}))

// PutItems writes items to memory that a kernel reads.
func PutItems(dst []byte, items []Item) {
	for i, it := range items {
		b := dst[i*ItemBytes:]
		binary.LittleEndian.PutUint32(b, uint32(it.Block))
		binary.LittleEndian.PutUint32(b[4:], it.Request)
		binary.LittleEndian.PutUint32(b[8:], it.Position)
		binary.LittleEndian.PutUint16(b[12:], it.First)
		binary.LittleEndian.PutUint16(b[14:], it.End)
	}
}

// stamp is a word of a token's slot.
func stamp(request, position, segment, word uint32) uint64 {
	return uint64(request)<<40 | uint64(position)<<20 | uint64(segment)<<14 | uint64(word)
}

// Write is what write_tokens does to one page, in memory of the host.
func (p *Pages) Write(page []byte, segment int, it Item) {
	for w := uint32(it.First) << p.shift; w < uint32(it.End)<<p.shift; w++ {
		binary.LittleEndian.PutUint64(page[8*w:], stamp(it.Request, it.Position+w>>p.shift, uint32(segment), w&(1<<p.shift-1)))
	}
}

// Report is a word that a check leaves for a page of an item.
func Report(word uint64) (step uint32, wrong bool) { return uint32(word >> 32), uint32(word) != 0 }

type checkArgs struct {
	Pages  Pages
	Items  cuda.DevicePtr
	Count  uint32
	Step   uint32
	Report cuda.DevicePtr
	Time   uint64
}

type writeArgs struct {
	Pages Pages
	Items cuda.DevicePtr
	Count uint32
	_     uint32
}

const writeBytes = int(unsafe.Offsetof(writeArgs{}.Count)) + 4 // no padding behind it

// Set is the kernels of one device, loaded.
type Set struct {
	dev          cuda.Device
	sms          int
	module       cuda.Module
	check, write cuda.Function
}

// Load loads the kernels and launches each once.
func Load(dev cuda.Device) (s *Set, err error) {
	s = &Set{dev: dev, sms: max(dev.Info().SMs, 1)}
	if s.module, err = dev.LoadModule(image); err != nil {
		return nil, fmt.Errorf("standin: load forward.ptx: %w", err)
	}
	if s.check, err = dev.Function(s.module, "check_tokens"); err == nil {
		s.write, err = dev.Function(s.module, "write_tokens")
	}
	if err == nil {
		err = s.warmUp()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("standin: %w", err), s.Close())
	}
	return s, nil
}

func (s *Set) warmUp() error {
	st, err := s.dev.NewStream(cuda.StreamOptions{Name: "stand-in warm-up"})
	if err != nil {
		return err
	}
	var b cuda.Batch
	nothing := Pages{PageBytes: 16, Segments: 1, shift: 1}
	s.Check(&b, st, nothing, 0, 0, 0, 0, 0)
	s.Write(&b, st, nothing, 0, 0)
	err = s.dev.Submit(&b)
	if err == nil {
		err = s.dev.SyncStream(context.Background(), st)
	}
	return errors.Join(err, s.dev.DestroyStream(st))
}

// Check adds the check of count items, which lie at items. It takes d at least,
// and leaves a word at report for each page of each item, item by item.
func (s *Set) Check(b *cuda.Batch, st cuda.Stream, p Pages, items cuda.DevicePtr, count int, step uint32, report cuda.DevicePtr, d time.Duration) {
	args := checkArgs{Pages: p, Items: items, Count: uint32(count), Step: step, Report: report, Time: uint64(d)}
	copy(b.Launch(st, s.check, s.geometry(p, count), int(unsafe.Sizeof(args))), bytesOf(&args))
}

// Write adds the writing of count items, which lie at items.
func (s *Set) Write(b *cuda.Batch, st cuda.Stream, p Pages, items cuda.DevicePtr, count int) {
	args := writeArgs{Pages: p, Items: items, Count: uint32(count)}
	copy(b.Launch(st, s.write, s.geometry(p, count), writeBytes), bytesOf(&args))
}

// geometry is a thread block on each multiprocessor, so that all are resident.
func (s *Set) geometry(p Pages, count int) cuda.Geometry {
	n := min(max(count*int(p.Segments), 1), s.sms)
	return cuda.Geometry{Grid: [3]uint32{uint32(n), 1, 1}, Block: [3]uint16{threads, 1, 1}}
}

const threads = 256

// Close unloads the kernels. No launch of theirs may be pending.
func (s *Set) Close() error {
	if s.module == 0 {
		return nil
	}
	m := s.module
	s.module = 0
	return s.dev.UnloadModule(m)
}

// bytesOf returns the memory of v, which is laid out as C does it; a test
// compares that with the PTX.
func bytesOf[T any](v *T) []byte { return unsafe.Slice((*byte)(unsafe.Pointer(v)), unsafe.Sizeof(*v)) }
