// Package race finds accesses to the same bytes that nothing orders: of streams, host
// code, and transfers of NICs.
//
// Work is an [Op] of a [Line], a timeline: the host, a stream, a transfer. Its vector
// clock says what is ordered before it. When it touches memory, [Checker.Access]
// compares it with those that touched the same bytes before. Two accesses race when at
// least one writes and neither's clock has the other: it does not matter which of them
// was first, nor how long either took.
//
// The option Races of package sim takes one that is told of what a simulated device does, by
// timelines alone ([Checker.Line], [Line.Join], [Line.Next]). [Scenario.Judge] judges a
// small program by the rules of CUDA as its documents state them:
//
//   - A stream does its work in order. Host code does, too; all of it is one thread.
//   - The legacy default stream and blocking streams of its device wait for each other.
//   - A record stands for what its stream held at the call. Waits take the record that
//     is valid at their call, and an event without one orders nothing.
//   - A synchronous copy holds the host until it is done, but for one inside device
//     memory, which does not, and one from pageable memory to the device, which does
//     until the source has been read. A synchronous fill does where its target is
//     pinned. An asynchronous copy inside host memory does.
//   - A transfer touches its bytes at any time between its post and its completion.
//   - Allocating, freeing, cancelling and handing a block to another owner order
//     nothing. Freeing writes what it frees.
//
// A Checker is for one goroutine at a time.
package race
