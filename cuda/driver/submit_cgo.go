//go:build cgo && linux

package driver

/*
#include "driver.h"
*/
import "C"

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// The C side reads commands and marks as they lie.
const (
	_ = -uint(unsafe.Sizeof(cuda.Command{}) ^ C.sizeof_kvg_command)
	_ = -uint(unsafe.Sizeof(cuda.Mark{}) ^ C.sizeof_kvg_mark)
)

// Submit puts the commands of b into their streams in one crossing. A stream
// with too many pending launches makes it wait. A batch that uses an adopted
// stream which is capturing is refused as a whole, with
// [cuda.ErrStreamCapturing].
func (d *Device) Submit(b *cuda.Batch) error {
	if b == nil {
		return &cuda.Error{Code: cuda.ErrInvalidValue, Op: "submit", Detail: "no batch"}
	}
	if err := d.enter("submit"); err != nil {
		if b.Len() == 0 {
			return err
		}
		return submitError(b, 0, err)
	}
	defer d.leave()
	commands, arena, streams := b.Commands(), b.Arena(), b.Streams()
	if len(commands) == 0 {
		return nil
	}
	uncaptured := C.int(0)
	if b.RefusesCapture() {
		uncaptured = 1
	}
	rs := C.kvg_submit(d.address, (*C.kvg_command)(unsafe.Pointer(unsafe.SliceData(commands))), C.uint32_t(len(commands)),
		(*C.uint8_t)(unsafe.SliceData(arena)), C.uint64_t(len(arena)),
		(*C.uint64_t)(unsafe.Pointer(unsafe.SliceData(streams))), C.uint32_t(len(streams)), uncaptured)
	if rs.r.why == C.KVG_OK {
		return nil
	}
	i := int(rs.index)
	return submitError(b, i, d.fail(commands[i].Op.String(), rs.r, d.detail(&commands[i], rs.r)))
}

func submitError(b *cuda.Batch, i int, err error) error {
	commands := b.Commands()
	e := &cuda.SubmitError{Index: i, Op: commands[i].Op, Done: make([]int, len(b.Streams())), Err: err}
	for _, c := range commands[:i] {
		e.Done[c.Stream]++
	}
	return e
}

// detail names what a command was to work on.
func (d *Device) detail(c *cuda.Command, r C.kvg_result) string {
	switch {
	case r.why == C.KVG_MISSING && c.Op == cuda.OpWriteWord:
		return "cuStreamWriteValue32_v2"
	case r.why == C.KVG_MISSING && c.Op == cuda.OpWaitWord:
		return "cuStreamWaitValue32_v2"
	case r.why == C.KVG_MISSING && c.Op == cuda.OpLaunchGraph:
		return "cuGraphLaunch"
	case c.Op == cuda.OpWriteWord || c.Op == cuda.OpWaitWord:
		return fmt.Sprintf("word at %#x, value %#x, flags %#x", c.A, c.B, c.Flags)
	case c.Op == cuda.OpLaunch:
		return fmt.Sprintf("function %#x, grid %d, block %d, %d bytes of shared memory, %d bytes of arguments",
			c.A, c.Grid, c.Block, c.Shared, c.Len)
	case c.Op == cuda.OpCopy:
		return fmt.Sprintf("%d bytes from %#x to %#x", c.C, c.B, c.A)
	}
	return fmt.Sprintf("%#x", c.A)
}

// Poll answers the marks in one crossing. As in CUDA an event that was never
// recorded has fired. A word must lie in memory of [Device.AllocPinned].
func (d *Device) Poll(marks []cuda.Mark) error {
	const op = "poll"
	if err := d.enter(op); err != nil {
		return err
	}
	defer d.leave()
	if len(marks) == 0 {
		return nil
	}
	rs := C.kvg_poll(d.address, (*C.kvg_mark)(unsafe.Pointer(unsafe.SliceData(marks))), C.uint32_t(len(marks)))
	if rs.r.why == C.KVG_OK {
		return nil
	}
	m := marks[rs.index]
	return d.failEvent(op, rs.r, m.Event, fmt.Sprintf("mark %d (event %#x, word %#x)", rs.index, uint64(m.Event), uint64(m.Word)))
}
