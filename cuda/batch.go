package cuda

import (
	"fmt"
	"math"
)

// Op says what a command does.
type Op uint8

// The commands of a batch.
const (
	OpNone        Op = iota
	OpLaunch         // A function; Grid, Block, Shared; arguments at Off, Len
	OpCopy           // A destination, B source, C bytes
	OpFill           // A destination, B value, C count; Flags is log2 of the element size
	OpRecord         // A event
	OpWaitEvent      // A event: the stream waits on the device
	OpWriteWord      // A address, B value (32 bit)
	OpWaitWord       // A address, B value: until the word has cyclically reached it; Flags may be WaitFlush
	OpLaunchGraph    // A executable graph
	OpSignal         // A host function, B its argument
	opEnd
)

var opNames = [opEnd]string{"none", "launch", "copy", "fill", "record", "wait event",
	"write word", "wait word", "launch graph", "signal"}

func (o Op) String() string {
	if o < opEnd {
		return opNames[o]
	}
	return fmt.Sprintf("op %d", uint8(o))
}

// Command is one entry of a batch: 64 bytes without pointers, so that C reads
// the array as it lies. Which fields mean something depends on the Op.
type Command struct {
	Op     Op
	Flags  uint8
	Stream uint16 // index into the batch's streams
	Shared uint32 // dynamic shared memory of a launch, bytes
	Grid   [3]uint32
	Block  [3]uint16
	_      uint16
	Off    uint32 // launch arguments: place in the arena, a multiple of 16
	Len    uint32
	A      uint64
	B      uint64
	C      uint64
}

// MaxArgBytes is the most that the arguments of one launch may take: the
// parameter space of a kernel for compute_70 (PTX ISA, "Kernel function
// parameters").
const MaxArgBytes = 4096

// Geometry is the shape of a launch.
type Geometry struct {
	Grid   [3]uint32
	Block  [3]uint16
	Shared uint32 // dynamic shared memory, bytes
}

// Batch is a list of commands for any number of streams, in program order.
// Commands of one stream run in the order given; commands of different streams
// are ordered by events alone. It keeps its memory over Reset, so a batch that
// is used again allocates nothing.
//
// The methods do not check handles; [Device.Submit] does. More than 65,536
// streams in one batch are a programming error, and panic. A Batch is for one
// goroutine.
type Batch struct {
	commands   []Command
	arena      []byte
	streams    []Stream
	uncaptured bool
}

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	b.commands = b.commands[:0]
	b.arena = b.arena[:0]
	b.streams = b.streams[:0]
}

// Len returns the number of commands.
func (b *Batch) Len() int { return len(b.commands) }

// Commands returns the commands. The slice is valid until the next change.
func (b *Batch) Commands() []Command { return b.commands }

// Arena returns the bytes that launches take their arguments from. The slice
// is valid until the next change.
func (b *Batch) Arena() []byte { return b.arena }

// Streams returns the streams that the commands index.
func (b *Batch) Streams() []Stream { return b.streams }

// Part returns the commands from..to-1 as a batch that shares b's memory: it is
// valid until b changes, and nothing may be added to it.
func (b *Batch) Part(from, to int) Batch {
	return Batch{commands: b.commands[from:to:to], arena: b.arena, streams: b.streams, uncaptured: b.uncaptured}
}

// Append adds the commands from..to-1 of another batch, with copies of their
// arguments.
func (b *Batch) Append(o *Batch, from, to int) {
	for i := from; i < to; i++ {
		c := &o.commands[i]
		s := o.streams[c.Stream]
		if c.Op == OpLaunch && c.Len <= MaxArgBytes && int(c.Off)+int(c.Len) <= len(o.arena) {
			args := b.Launch(s, 0, Geometry{}, int(c.Len))
			copy(args, o.arena[c.Off:c.Off+c.Len])
			d := &b.commands[len(b.commands)-1]
			off, n, at := d.Off, d.Len, d.Stream
			*d = *c
			d.Off, d.Len, d.Stream = off, n, at
			continue
		}
		d := b.add(s, c.Op)
		at := d.Stream
		*d = *c
		d.Stream = at
	}
}

func (b *Batch) add(s Stream, op Op) *Command {
	i := 0
	for i < len(b.streams) && b.streams[i] != s {
		i++
	}
	if i == len(b.streams) {
		b.streams = append(b.streams, s)
	}
	if i > math.MaxUint16 {
		panic("cuda: batch over more than 65,536 streams")
	}
	n := len(b.commands)
	if n < cap(b.commands) {
		b.commands = b.commands[:n+1]
	} else {
		b.commands = append(b.commands, Command{})
	}
	c := &b.commands[n]
	*c = Command{Op: op, Stream: uint16(i)}
	return c
}

// Launch adds a kernel launch and returns the n bytes of its arguments for the
// caller to fill, laid out as the kernel's parameters are. They are valid until
// the next change to the batch.
//
// Where n is negative or above [MaxArgBytes], or the batch's arguments come to
// 4 GiB, there are no such bytes: Launch returns nil and adds a launch whose Len
// no device takes (n, or the greatest 32-bit number), so that Submit fails at
// that command with [ErrInvalidValue].
func (b *Batch) Launch(s Stream, f Function, g Geometry, n int) []byte {
	off := (len(b.arena) + 15) &^ 15
	if n < 0 || n > MaxArgBytes || off > math.MaxUint32-MaxArgBytes {
		length := uint32(math.MaxUint32)
		if n > MaxArgBytes && uint64(n) < math.MaxUint32 {
			length = uint32(n)
		}
		c := b.add(s, OpLaunch)
		c.A, c.Grid, c.Block, c.Shared, c.Len = uint64(f), g.Grid, g.Block, g.Shared, length
		return nil
	}
	for cap(b.arena) < off+n {
		b.arena = append(b.arena[:cap(b.arena)], 0)
	}
	b.arena = b.arena[:off+n]
	c := b.add(s, OpLaunch)
	c.A, c.Grid, c.Block, c.Shared = uint64(f), g.Grid, g.Block, g.Shared
	c.Off, c.Len = uint32(off), uint32(n)
	args := b.arena[off : off+n : off+n]
	clear(args)
	return args
}

// Copy adds a copy of n bytes. Addresses are unified: either side may be device
// or pinned host memory.
func (b *Batch) Copy(s Stream, dst, src DevicePtr, n uint64) {
	c := b.add(s, OpCopy)
	c.A, c.B, c.C = uint64(dst), uint64(src), n
}

// Fill8 adds a fill of n bytes with v.
func (b *Batch) Fill8(s Stream, dst DevicePtr, v uint8, n uint64) {
	c := b.add(s, OpFill)
	c.A, c.B, c.C = uint64(dst), uint64(v), n
}

// Fill32 adds a fill of n 32-bit words with v; dst must be 4-byte aligned.
func (b *Batch) Fill32(s Stream, dst DevicePtr, v uint32, n uint64) {
	c := b.add(s, OpFill)
	c.Flags, c.A, c.B, c.C = 2, uint64(dst), uint64(v), n
}

// Record adds the recording of e.
func (b *Batch) Record(s Stream, e Event) { b.add(s, OpRecord).A = uint64(e) }

// WaitEvent makes s wait on the device for the work that e covers at this
// moment. As in CUDA, an event that was never recorded holds nothing back.
func (b *Batch) WaitEvent(s Stream, e Event) { b.add(s, OpWaitEvent).A = uint64(e) }
