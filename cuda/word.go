package cuda

import (
	"fmt"
	"sync/atomic"
	"unsafe"
)

// WaitFlush, in the Flags of [OpWaitWord], has the device make writes from
// outside, as a NIC's, visible to the work behind the wait where they had reached
// it before the wait was over. Devices without [Info.FlushesWrites] refuse it with
// [ErrNotSupported].
const WaitFlush uint8 = 1

// WriteWord adds a write of v to the aligned 32-bit word at p, in device or
// pinned memory. What the stream did before is visible to whoever sees it.
//
// Waits for words are unknown to CUDA's scheduler, which may put the write that
// would end one behind it: work that is ordered by a word needs an event as well.
func (b *Batch) WriteWord(s Stream, p DevicePtr, v uint32) {
	c := b.add(s, OpWriteWord)
	c.A, c.B = uint64(p), uint64(v)
}

// WaitWord makes s wait on the device until the aligned 32-bit word at p has
// cyclically reached v: until int32(word-v) >= 0. Nothing but a write ends the
// wait, be it a stream's, the host's through [PinnedBuffer.Word] or a NIC's.
//
// A wait takes its hardware queue as well as its stream. A process has 8 of them, or
// as many as the environment variable CUDA_DEVICE_MAX_CONNECTIONS says when the
// driver starts, at most 32 (CUDA C++ Programming Guide, "CUDA environment
// variables"). Streams beyond that share queues, and work of a stream behind the
// wait in its queue waits with it: if that work would write the word, both wait for
// ever. So a process that has streams wait for words sets the variable to 32, has
// no more streams than that on the device, and launches nothing for the first time
// meanwhile: loading a kernel waits for all streams unless CUDA_MODULE_LOADING=EAGER.
func (b *Batch) WaitWord(s Stream, p DevicePtr, v uint32) {
	c := b.add(s, OpWaitWord)
	c.A, c.B = uint64(p), uint64(v)
}

// WaitWordFlush is WaitWord with [WaitFlush].
func (b *Batch) WaitWordFlush(s Stream, p DevicePtr, v uint32) {
	b.WaitWord(s, p, v)
	b.commands[len(b.commands)-1].Flags = WaitFlush
}

// Signal adds a call of a host function with that argument, in the order of the
// stream: work before it is over, work behind it waits until the function has
// returned. After an error of the device it is not called.
//
// The function must not call CUDA, nor wait for what a stream has still to do.
func (b *Batch) Signal(s Stream, f HostFunc, arg uint64) {
	c := b.add(s, OpSignal)
	c.A, c.B = uint64(f), arg
}

// Word returns the 32-bit word at that offset in bytes, to be read and written
// beside a device: by [Batch.WriteWord] and [Batch.WaitWord], or as the word of a
// [Mark]. It is valid as long as the buffer. It panics, like an index out of
// range, where the word is not wholly inside or off is no multiple of 4.
func (p PinnedBuffer) Word(off int) *atomic.Uint32 {
	w := p.Host[off : off+4]
	if off%4 != 0 {
		panic(fmt.Sprintf("cuda: word at offset %d, which is no multiple of 4", off))
	}
	return (*atomic.Uint32)(unsafe.Pointer(unsafe.SliceData(w)))
}
