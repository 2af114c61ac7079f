// Package event counts the work of streams and tells when it is over.
//
// A [Timeline] belongs to one stream. Each [Batch.Record] on it is a mark with
// the next 64-bit sequence number, and a [Fence] is the immutable point
// (timeline, sequence) that the mark stands for. Streams run in order, so a
// timeline's progress is one number, and a fence has fired when that number
// has reached its own.
//
// A [Registry] owns the events and timelines of one device. [Registry.Poll]
// asks after all open marks in one crossing; any number of fences wait on it
// without a goroutine each. Whoever waits polls: the package starts no
// goroutine.
//
// # What a fence promises
//
// A fence is never taken for fired because its record did not happen, though
// CUDA reports an event that was never recorded as done. A mark whose record
// failed is lost; the work before it is covered by the next good mark of its
// timeline, and until there is one a device wait for the fence is refused with
// [cuda.ErrNotRecorded] and a host wait returns it.
//
//	created ── submitted ──> recorded ── fired ──> fired
//	   │                         ▲
//	   └─ record failed ─> lost ─┘ the next good mark
//
// After a sticky device error the registry is dead: fences that had not fired
// never fire, and every waiter is told the first cause.
package event
