package loadgate

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/stream"
)

// TableOptions say which block tables a gate keeps in device memory. The zero
// value is none.
type TableOptions struct {
	Requests int // rows: as many requests may be open at a time
	Tokens   int // that a request has at most, lookahead included
}

// BlockTable is the block table of a group in device memory: a row of Len 32-bit
// ids for each request ([Request.Row]), row r at Addr + 4*r*Len. It stays where it
// is, so that graphs can hold its address.
//
// The ids are those of kernel blocks, the first tokens in front: a block is as
// many ids that follow each other as the group's layout.Group.Ratio says. A place
// without a block has 0, the null block, or -1 where the plan has none
// (layout.Options.RealNull). A row is up to date for the steps that name its
// request: each step writes what has changed, ahead of its own work. What a step
// reads never changes under it, on whatever streams the steps are.
type BlockTable struct {
	Addr cuda.DevicePtr
	Rows int
	Len  int
}

// Table returns the block table of a group. It is refused where [Options.Tables]
// asked for none.
func (g *Gate) Table(group int) (BlockTable, error) {
	if g.owned == nil || g.owned.tables.buffer == nil {
		return BlockTable{}, fmt.Errorf("loadgate: table: the gate has none (Options.Tables): %w", core.ErrInvalid)
	}
	if err := g.owned.requests.checkGroup("table", group); err != nil {
		return BlockTable{}, err
	}
	t := &g.owned.tables
	at := &t.groups[group]
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.released {
		return BlockTable{}, fmt.Errorf("loadgate: table: %w", ErrClosed)
	}
	return BlockTable{t.base + cuda.DevicePtr(4*at.at), len(t.rows), int(at.len)}, nil
}

// tables are the block tables of a gate, guarded by its lock.
type tables struct {
	buffer *memory.Buffer // nil: none
	base   cuda.DevicePtr
	words  uint32
	null   int32
	groups []groupTable
	rows   []tableRow
	runs   []kernels.Run
	waits  []kv.Point
}

// groupTable is where a group's table starts and how long a row is, in words.
type groupTable struct {
	at    uint32
	len   uint32
	ratio uint32
}

// tableRow is what is known of the rows of a request slot.
type tableRow struct {
	groups  []rowState
	version uint64     // of the request that the device has; 0: of none
	last    []kv.Point // the marks of the last step that named it
	begun   bool       // a step that names it is between Begin and End
}

// rowState is what the device has of a row, in places of the request's list:
// those from lo to hi-1 may hold ids, those from first to end-1 the right ones.
type rowState struct {
	lo, hi     int
	first, end int

	wasLo, wasHi int // before the last write
}

// tableAlign is what tables of groups start at, in words: a line of the L2 cache
// of any GPU so far (128 bytes) twice, which also is how cuMemAlloc aligns.
const tableAlign = 64

// open allocates the tables and fills them with the null block.
func (t *tables) open(h *owned, o TableOptions) error {
	if o == (TableOptions{}) {
		return nil
	}
	p := h.arena.Plan
	if o.Requests < 1 || o.Tokens < 1 || o.Tokens > layout.MaxTokens {
		return fmt.Errorf("block tables for %d requests of %d tokens: %w", o.Requests, o.Tokens, core.ErrInvalid)
	}
	words := uint64(0)
	for i := range p.Groups {
		rule, ratio := ruleOf(p, i), uint64(p.Groups[i].Ratio)
		if ratio > math.MaxUint16 || uint64(h.arena.Blocks)*ratio > math.MaxInt32 {
			return fmt.Errorf("block tables: group %d: %d blocks of %d kernel blocks: %w", i, h.arena.Blocks, ratio, core.ErrInvalid)
		}
		at := groupTable{at: uint32(words), len: uint32(uint64(rule.blocks(o.Tokens)) * ratio), ratio: uint32(ratio)}
		words += uint64(o.Requests) * uint64(rule.blocks(o.Tokens)) * ratio
		words = (words + tableAlign - 1) / tableAlign * tableAlign
		if words > math.MaxUint32 {
			return fmt.Errorf("block tables for %d requests of %d tokens have more than 2^32 words: %w", o.Requests, o.Tokens, core.ErrInvalid)
		}
		t.groups = append(t.groups, at)
	}
	if p.Options.RealNull {
		t.null = -1
	}
	var err error
	if t.buffer, err = memory.NewBuffer(h.reg.Device(), 4*words, cuda.AllocOptions{Name: "block tables"}); err != nil {
		return err
	}
	t.base, t.words = t.buffer.Ptr(), uint32(words)
	b := stream.NewBatch(h.reg)
	defer b.Reset()
	b.Fill32(h.compute, t.base, uint32(t.null), words)
	f := b.Record(h.compute)
	if err := b.Submit(); err != nil {
		return fmt.Errorf("block tables: %w", err)
	}
	t.rows = make([]tableRow, o.Requests)
	for i := range t.rows {
		t.rows[i].groups = make([]rowState, len(t.groups))
	}
	return f.Wait(context.Background())
}

func (t *tables) close() error {
	if t.buffer == nil {
		return nil
	}
	return t.buffer.Close()
}

// cut notes that a request has only the places first to end-1 of its list left.
func (t *tables) cut(slot int32, group, first, end int) {
	if t.buffer == nil {
		return
	}
	r := &t.rows[slot].groups[group]
	r.first = max(r.first, first)
	r.end = max(min(r.end, end), r.first)
}

// forget notes that no id in a row is right.
func (t *tables) forget(slot int32) {
	if t.buffer == nil {
		return
	}
	t.rows[slot].version = 0
	for i := range t.rows[slot].groups {
		r := &t.rows[slot].groups[i]
		r.first, r.end = 0, 0
	}
}

// addTables adds what changed in the rows of a step's requests to the batch. The
// step's streams wait for the last steps that named them, if those ran on other
// streams: rows are not written before these have read them, nor read before they
// were written. It says whether it may have noted writes.
func (g *Gate) addTables(b *stream.Batch, uses []stepUse, streams []*stream.Stream) (wrote bool, err error) {
	if g.owned == nil || g.owned.tables.buffer == nil {
		return false, nil
	}
	t := &g.owned.tables
	t.runs, t.waits = t.runs[:0], t.waits[:0]
	for _, u := range uses {
		if t.rows[u.slot].begun {
			return false, fmt.Errorf("loadgate: %v: %w", Request{g, u.slot, u.gen}, core.ErrInUse)
		}
	}
	for _, u := range uses {
		row := &t.rows[u.slot]
		for _, p := range row.last {
			if len(streams) == 1 && p.Timeline == streams[0].ID() || slices.Contains(t.waits, p) {
				continue
			}
			t.waits = append(t.waits, p)
		}
		s := &g.owned.requests.all[u.slot]
		if row.version == s.version {
			continue
		}
		row.version = s.version
		for i := range t.groups {
			t.render(u.slot, i, &s.groups[i])
		}
	}
	for _, p := range t.waits {
		f, err := g.reg.Fence(p)
		if err != nil {
			return true, err
		}
		for _, s := range streams {
			if err := b.Wait(s, f); err != nil {
				return true, err
			}
		}
	}
	if len(t.runs) == 0 {
		return false, nil
	}
	if err := g.set.WriteWords(b.Raw(), streams[0].Handle(), t.base, t.words, t.runs); err != nil {
		return true, err
	}
	if len(streams) == 1 {
		return true, nil
	}
	f := b.Record(streams[0])
	for _, s := range streams[1:] {
		if err := b.Wait(s, f); err != nil {
			return true, err
		}
	}
	return true, nil
}

// render collects the runs of words by which a row comes to hold a list, and
// notes that it does.
func (t *tables) render(slot int32, group int, l *blockList) {
	r := &t.rows[slot].groups[group]
	first, end := l.first, l.end()
	if r.lo == first && r.hi == end && r.first == first && r.end == end {
		return
	}
	at := &t.groups[group]
	base := at.at + uint32(slot)*at.len
	if r.lo < first {
		t.addNulls(base, at.ratio, r.lo, min(first, r.hi))
	}
	if end < r.hi {
		t.addNulls(base, at.ratio, max(end, r.lo), r.hi)
	}
	if r.first >= r.end {
		r.first, r.end = first, first
	}
	for k := first; k < end; k++ {
		if k == r.first {
			k = r.end
			if k >= end {
				break
			}
		}
		t.addRun(kernels.Run{At: base + uint32(k)*at.ratio, Value: int32(l.blocks.At(k-first).Block) * int32(at.ratio), Count: uint16(at.ratio), Step: 1})
	}
	*r = rowState{first, end, first, end, r.lo, r.hi}
}

func (t *tables) addNulls(base, ratio uint32, from, to int) {
	at, end := base+uint32(from)*ratio, base+uint32(to)*ratio
	for at < end {
		n := min(end-at, math.MaxUint16)
		t.addRun(kernels.Run{At: at, Value: t.null, Count: uint16(n)})
		at += n
	}
}

// addRun adds a run, or makes the last one longer.
func (t *tables) addRun(r kernels.Run) {
	if n := len(t.runs); n > 0 {
		p := &t.runs[n-1]
		if p.At+uint32(p.Count) == r.At && p.Step == 1 && r.Step == 1 && p.Value+int32(p.Count) == r.Value &&
			int(p.Count)+int(r.Count) <= math.MaxUint16 {
			p.Count += r.Count
			return
		}
	}
	t.runs = append(t.runs, r)
}

// tablesBegun notes that a step which reads the rows will have its marks later.
func (g *Gate) tablesBegun(uses []stepUse) {
	if g.owned != nil && g.owned.tables.buffer != nil {
		for _, u := range uses {
			g.owned.tables.rows[u.slot].begun = true
		}
	}
}

// tablesRead notes the marks of a step that is in its streams.
func (g *Gate) tablesRead(uses []stepUse, marks []kv.Point) {
	if g.owned == nil || g.owned.tables.buffer == nil {
		return
	}
	for _, u := range uses {
		row := &g.owned.tables.rows[u.slot]
		row.last, row.begun = append(row.last[:0], marks...), false
	}
}

// tablesFailed notes that nobody knows whether a step's writes happened.
func (g *Gate) tablesFailed(uses []stepUse) {
	if g.owned == nil || g.owned.tables.buffer == nil {
		return
	}
	for _, u := range uses {
		row := &g.owned.tables.rows[u.slot]
		row.begun, row.version = false, 0
		for i := range row.groups {
			r := &row.groups[i]
			r.lo, r.hi = min(r.lo, r.wasLo), max(r.hi, r.wasHi)
			r.first, r.end = 0, 0
		}
	}
}
