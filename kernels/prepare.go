package kernels

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/memory/kv"
)

// Preparation collects what the blocks of a step need before it runs: zeroing,
// resets of state rows, and copies, over any tables of one device. The outcome is as
// if each were done in the order in which it was added. In how many launches, the
// conflicts decide: blocks of one pool that are written twice, or written and read,
// are in launches that follow each other, and all else shares the first.
//
// Pools are told apart by their ids. Blocks of different pools are taken not to
// share memory. Ids that are negative, the null block, or not of the pool are
// skipped, and so is zeroing or a reset that has been asked for already.
//
// The zero Preparation is empty. It keeps its memory over Reset, and is for one
// goroutine.
type Preparation struct {
	dev    cuda.Device
	pools  []poolMarks
	parts  []part
	levels int
}

// part is the work of one kind, on one table, in one launch.
type part struct {
	level int
	key   partKey
	pairs []Pair
}

type partKey struct {
	table *Table
	src   side
}

// poolMarks knows of each block when it is written and read.
type poolMarks struct {
	pool    kv.PoolID
	marks   []blockMark
	touched []kv.Block
}

// blockMark has the greatest levels, counted from 1, of the launches that write and
// read a block, and the part that wrote it last.
type blockMark struct {
	write, read int32
	by          int32
}

// Reset empties p.
func (p *Preparation) Reset() {
	for i := range p.pools {
		m := &p.pools[i]
		for _, b := range m.touched {
			m.marks[b] = blockMark{}
		}
		m.touched = m.touched[:0]
	}
	p.parts = p.parts[:0]
	p.levels = 0
	p.dev = nil
}

// Zero adds the zeroing of blocks.
func (p *Preparation) Zero(t *Table, ids []kv.Block) error { return p.write(t, ids, side{}) }

// ResetState adds the reset of blocks to a row, as [Set.ResetState] has it.
func (p *Preparation) ResetState(t *Table, ids []kv.Block, row cuda.DevicePtr) error {
	if err := t.checkRow(row); err != nil {
		return err
	}
	src := side{}
	if row != 0 {
		src = side{Base: uint64(row), Stride: 1, Span: 1} // a staging area of one row
	}
	return p.write(t, ids, src)
}

// Copy adds copies of blocks to blocks. A copy reads what was added before it has
// written.
func (p *Preparation) Copy(t *Table, pairs []Pair) error {
	if err := p.take(t); err != nil {
		return err
	}
	if err := t.checkCopy(); err != nil || t.resting {
		return err
	}
	m := p.marksOf(t)
	key := partKey{table: t, src: t.blocks()}
	for _, c := range pairs {
		if !t.writes(c.Dst) || !t.writes(c.Src) || c.Dst == c.Src {
			continue
		}
		d, s := m.at(c.Dst), m.at(c.Src)
		level := max(d.write, d.read, s.write) + 1
		d.write, d.by = level, p.add(int(level), key, c)
		s.read = max(s.read, level)
	}
	return nil
}

func (p *Preparation) write(t *Table, ids []kv.Block, src side) error {
	if err := p.take(t); err != nil || t.resting {
		return err
	}
	m := p.marksOf(t)
	key := partKey{table: t, src: src}
	for _, id := range ids {
		if !t.writes(id) {
			continue
		}
		d := m.at(id)
		if d.write > 0 && p.parts[d.by].key == key {
			continue // it holds this already
		}
		level := max(d.write, d.read) + 1
		d.write, d.by = level, p.add(int(level), key, Pair{Dst: id})
	}
	return nil
}

// take checks a table, and that it is of the same device as the others.
func (p *Preparation) take(t *Table) error {
	switch {
	case t == nil:
		return fmt.Errorf("kernels: no table: %w", cuda.ErrInvalidValue)
	case t.closed:
		return fmt.Errorf("kernels: table of pool %d: %w", t.layout.Pool, cuda.ErrClosed)
	case p.dev != nil && t.dev != p.dev:
		return fmt.Errorf("kernels: table of pool %d is of another device: %w", t.layout.Pool, cuda.ErrInvalidValue)
	}
	p.dev = t.dev
	return nil
}

func (p *Preparation) marksOf(t *Table) *poolMarks {
	for i := range p.pools {
		if m := &p.pools[i]; m.pool == t.layout.Pool {
			m.grow(t.layout.Blocks)
			return m
		}
	}
	p.pools = append(p.pools, poolMarks{pool: t.layout.Pool})
	m := &p.pools[len(p.pools)-1]
	m.grow(t.layout.Blocks)
	return m
}

func (m *poolMarks) grow(blocks int) {
	if n := blocks - len(m.marks); n > 0 {
		m.marks = append(m.marks, make([]blockMark, n)...)
	}
}

func (m *poolMarks) at(b kv.Block) *blockMark {
	k := &m.marks[b]
	if *k == (blockMark{}) {
		m.touched = append(m.touched, b)
	}
	return k
}

// add puts a pair into the part of its kind in a level, and returns which that is.
func (p *Preparation) add(level int, key partKey, c Pair) int32 {
	p.levels = max(p.levels, level)
	for i := len(p.parts) - 1; i >= 0; i-- {
		if q := &p.parts[i]; q.level == level && q.key == key {
			q.pairs = append(q.pairs, c)
			return int32(i)
		}
	}
	n := len(p.parts)
	if n < cap(p.parts) {
		p.parts = p.parts[:n+1]
	} else {
		p.parts = append(p.parts, part{})
	}
	q := &p.parts[n]
	*q = part{level: level, key: key, pairs: append(q.pairs[:0], c)}
	return int32(n)
}

// Levels returns how many launches have to follow each other.
func (p *Preparation) Levels() int { return p.levels }

func (k *partKey) section() section {
	return section{Dst: k.table.blocks(), Src: k.src, Tiles: k.table.tiles, TileCount: k.table.count}
}

// PrepareStep adds what p holds: a launch for each level, more where a level has
// more than 439 blocks and copies, or more than eight kinds of work on different
// tables. p may be reset afterwards.
func (s *Set) PrepareStep(b *cuda.Batch, stream cuda.Stream, p *Preparation) error {
	if err := s.checkStep(p); err != nil {
		return err
	}
	var args stepArgs[manySteps]
	for level := 1; level <= p.levels; level++ {
		n, items := 0, uint64(0)
		flush := func() {
			v := inMany
			if n <= fewStepPairs {
				v = inFew
			}
			if n > 0 {
				copy(s.launchItems(b, stream, prepareStep, v, items), bytesOf(&args))
			}
			args.Sections, n, items = 0, 0, 0
		}
		for i := range p.parts {
			q := &p.parts[i]
			if q.level != level {
				continue
			}
			for rest := q.pairs; len(rest) > 0; {
				if n == manyStepPairs || args.Sections == maxSections {
					flush()
				}
				c := q.key.section()
				k := copy(args.Pairs[n:], rest)
				c.List, c.Count = uint32(n), uint32(k)
				args.Section[args.Sections] = c
				args.Sections++
				n += k
				items += uint64(k) * uint64(c.TileCount)
				rest = rest[k:]
			}
		}
		flush()
	}
	return nil
}

func (s *Set) checkStep(p *Preparation) error {
	switch {
	case s.modules == nil:
		return fmt.Errorf("kernels: set: %w", cuda.ErrClosed)
	case p.dev != nil && p.dev != s.dev:
		return fmt.Errorf("kernels: preparation for another device: %w", cuda.ErrInvalidValue)
	}
	for i := range p.parts {
		if t := p.parts[i].key.table; t.closed {
			return fmt.Errorf("kernels: table of pool %d: %w", t.layout.Pool, cuda.ErrClosed)
		}
	}
	return nil
}

// StepBytes returns how many bytes [Preparation.Encode] takes for that many blocks
// and copies.
func StepBytes(pairs int) int {
	return int(unsafe.Sizeof(stepHead{})) + pairs*int(unsafe.Sizeof(Pair{}))
}

// Encode writes one level, counted from 0, into memory that a launch of
// [Set.PrepareStepAt] reads, and returns how many work items it has. A level that p
// does not have is a step of nothing: a graph with launches for three levels runs a
// step of one. dst is of [StepBytes] for the blocks and copies of the level, and no
// launch may read it meanwhile.
//
// It fails with [cuda.ErrInvalidValue], and writes nothing, where dst is too short or
// the level has more than eight kinds of work on different tables.
func (p *Preparation) Encode(level int, dst []byte) (items uint64, err error) {
	var h stepHead
	n := 0
	for i := range p.parts {
		if q := &p.parts[i]; q.level == level+1 {
			if h.Sections == maxSections {
				return 0, fmt.Errorf("kernels: level %d has more than %d kinds of work: %w", level, maxSections, cuda.ErrInvalidValue)
			}
			c := q.key.section()
			c.List, c.Count = uint32(n), uint32(len(q.pairs))
			h.Section[h.Sections] = c
			h.Sections++
			n += len(q.pairs)
			items += uint64(c.Count) * uint64(c.TileCount)
		}
	}
	if want := StepBytes(n); len(dst) < want {
		return 0, fmt.Errorf("kernels: level %d takes %d bytes, there are %d: %w", level, want, len(dst), cuda.ErrInvalidValue)
	}
	at := copy(dst, bytesOf(&h))
	for i := range p.parts {
		if q := &p.parts[i]; q.level == level+1 {
			at += copy(dst[at:], pairBytes(q.pairs))
		}
	}
	return items, nil
}

// PrepareStepAt adds a launch that does what [Preparation.Encode] has written at an
// address, a multiple of 8, when it runs. items is for how many work items the
// launch is sized, at least 1; with more, each warp takes several turns. A graph
// can hold the launch.
func (s *Set) PrepareStepAt(b *cuda.Batch, stream cuda.Stream, at cuda.DevicePtr, items uint64) error {
	switch {
	case s.modules == nil:
		return fmt.Errorf("kernels: set: %w", cuda.ErrClosed)
	case at == 0 || at%8 != 0 || items == 0:
		return fmt.Errorf("kernels: step at %#x of %d items, want a multiple of 8 and at least 1: %w",
			uint64(at), items, cuda.ErrInvalidValue)
	}
	copy(s.launchItems(b, stream, prepareStep, inMemory, items), bytesOf(&at))
	return nil
}
