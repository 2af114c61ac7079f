// Package nixl moves bytes between the memory of agents: registered regions,
// one-sided reads and writes over descriptor lists, notifications. [Agent] and
// [Transfer] are served by nixl/libnixl, a binding of NVIDIA's NIXL library, and
// by nixl/softnic, a fabric inside the process.
//
// What a caller has to know of any fabric:
//   - An error is no proof of silence. Only errors for which [Quiet] holds prove
//     that a transfer touches no memory any more; a post that fails half way, a
//     disconnect and a failed status leave bytes on their way, and the memory of
//     the transfer poisoned ([ErrPoisoned]) until its agent ends.
//   - Nothing in flight can be taken back: closing the transfer, its
//     registration, its peer or its agent is refused with [ErrBusy]. Canceling
//     it ([Transfer.Cancel]) asks for its end, which has to be polled for like
//     any other.
//   - A posted transfer is in flight until [Transfer.Status] has told its end,
//     and its notification leaves with that poll. [Wait] polls one to its end;
//     [Inbox] keeps what arrives.
//   - A restart, a removal and a lost connection each begin a new generation of
//     the peer. Handles of an earlier one are refused.
//
// The table of nixl/nixltest holds a fabric to this. [Registry], [Peers],
// [Refuse] and [Spec.Check] are the parts that implementations share.
//
// Metadata travels by whatever connects two programs; nixl/exchange has two ways,
// through etcd and over a socket.
//
// The package knows nothing of CUDA: addresses are integers, and nothing here
// orders a transfer against a stream. That is the business of loadgate.
package nixl
