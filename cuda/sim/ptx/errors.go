package ptx

import (
	"errors"
	"fmt"
)

// SyntaxError is why PTX was refused: it is malformed, or uses what this
// interpreter does not know.
type SyntaxError struct {
	Module string // as given to Parse
	Line   int
	Instr  string // the instruction as it is written, without operands; "" outside of one
	Source string // file and line of what was compiled, "a.cu:12", where the PTX tells; else ""
	Msg    string
}

func (e *SyntaxError) Error() string {
	s := fmt.Sprintf("ptx: %s:%d: ", e.Module, e.Line)
	if e.Instr != "" {
		s += e.Instr + ": "
	}
	s += e.Msg
	if e.Source != "" {
		s += " (" + e.Source + ")"
	}
	return s
}

// What a [Trap] may be of, for errors.Is.
var (
	// ErrOutOfBounds: an address in no region, or an access over a region's end.
	ErrOutOfBounds = errors.New("access out of bounds")
	// ErrMisaligned: an address that is no multiple of the access's size, of a
	// vector's whole size.
	ErrMisaligned = errors.New("misaligned access")
	// ErrReadOnly: a store to memory that may only be read.
	ErrReadOnly = errors.New("store to read-only memory")
	// ErrDivergentBarrier: the threads that a barrier or a .sync instruction
	// wants can no longer reach it together.
	ErrDivergentBarrier = errors.New("divergent barrier")
	// ErrStepLimit: a warp executed more instructions than Launch.StepLimit, or
	// waits for memory that nobody changes.
	ErrStepLimit = errors.New("step limit reached")
	// ErrTrapped: the kernel executed a trap instruction.
	ErrTrapped = errors.New("trap instruction")
	// ErrAssert: an assertion of the kernel failed.
	ErrAssert = errors.New("assertion failed")
	// ErrStack: calls in each other need more local memory than a thread has.
	ErrStack = errors.New("stack overflow")
	// ErrBadInstruction: an op without a case. Lowering makes none.
	ErrBadInstruction = errors.New("bad instruction")
)

// ErrLaunch is what Start's errors wrap: geometry, shared memory or parameters
// that the kernel or the architecture refuses.
var ErrLaunch = errors.New("launch refused")

// Trap is an error of a running kernel. The thread is the lowest lane that
// failed; lanes of one instruction are examined in order, and what lower lanes
// stored is in memory.
type Trap struct {
	Kernel string
	Line   int    // of the PTX
	Instr  string // the instruction, without operands
	Source string // file and line of what was compiled, where the PTX tells; else ""
	Block  [3]uint32
	Thread [3]uint32
	Addr   uint64 // of an access; an offset where Space is not global
	Size   int    // bytes of an access; 0 for other traps
	Space  string // "global", "shared", "local", "param"; "" for other traps
	Kind   error
	Detail string // more about it; may be empty
}

func (t *Trap) Error() string {
	at := t.Instr
	if t.Source != "" {
		at += ", " + t.Source
	}
	s := fmt.Sprintf("ptx: kernel %s, line %d (%s), block (%d,%d,%d), thread (%d,%d,%d): %v",
		t.Kernel, t.Line, at, t.Block[0], t.Block[1], t.Block[2], t.Thread[0], t.Thread[1], t.Thread[2], t.Kind)
	if t.Size != 0 {
		s += fmt.Sprintf(": %d bytes at %s address %#x", t.Size, t.Space, t.Addr)
	}
	if t.Detail != "" {
		s += ": " + t.Detail
	}
	return s
}

// Unwrap returns the kind, so that errors.Is matches it.
func (t *Trap) Unwrap() error { return t.Kind }
