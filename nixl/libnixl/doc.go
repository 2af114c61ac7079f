// Package libnixl is a binding of NVIDIA's NIXL through its C ABI,
// libnixl_capi.so, which it loads at run time: nothing of it is needed to
// build. [Open] finds the library and [Library.NewAgent] makes an [Agent], which
// is a [nixl.Agent] with more to it.
//
// What the library leaves open, the binding closes:
//
//   - Releasing a request does not stop it. Closing a transfer in flight, its
//     registration, its peer or its agent is refused with [nixl.ErrBusy], and
//     one that was canceled is in flight until it has ended.
//     [nixl.Wait] polls a request to its end; then it can be closed.
//   - A failure does not tell whether memory is still being written. It is
//     poisoned: it can not be deregistered, and [Agent.Poisoned] names it,
//     until [Agent.Recover] or the end of the agent.
//   - Equal and overlapping registrations confuse it. Regions are counted and go
//     down once, one inside another not at all, and any other overlap is refused.
//   - It follows pointers in requests whose memory or peer is gone. Their
//     native requests are released first; posting them is refused.
//   - A load that fails in the middle drops a peer with transfers in flight, and
//     every later blob of its name is refused. What makes it fail is refused here
//     first, sections without regions, which a registration that failed leaves, are
//     taken out, and after a failure all the same the peer can be added again.
//   - A blob is trusted, and UCX follows addresses and keys without bounds. What
//     [Agent.AddPeer] gets is parsed here first ([ParseMetadata]): its form, its
//     checksum if it has one, and without one the addresses and keys of UCX. See
//     below for what is not.
//   - What comes by etcd or by its listener it loads in the background, unread
//     and untold. Neither is used: package nixl/exchange does both in Go, with the
//     library's keys and protocol, and all of it goes through AddPeer. The library's
//     own client, which NIXL_ETCD_ENDPOINTS starts, is left with nothing but to write
//     the agent's name.
//   - It replaces signal handlers that Go needs. They are put back after each
//     call that loads code ([Library.RestoredSignals]).
//   - Its C ABI has one code for many errors: see below.
//   - Where a transfer is over with its post it sends the notification with the
//     post. Here it leaves with the poll that sees the end, always.
//
// # What stays open
//
//   - Metadata of other bindings has no checksum, and damage that leaves its form
//     right is not seen. In an address or a key it costs a transport or makes
//     another one preferred: with every value of every byte of both tried over
//     shared memory, TCP and CMA, no process ended. Of transports for InfiniBand and
//     GPUs only the lengths are checked, and other backends' part not at all. The
//     address of a region has no form: transfers then use other memory of the
//     peer, and over TCP, where the peer follows it, the peer can end. Set
//     [Config.RequireSeal] where all peers are of this binding. A checksum is no
//     signature: it does not keep out what is made to do harm, nor does a
//     listener of nixl/exchange ask who connects.
//   - UCX connects over TCP when a peer is added, and all calls of the agent wait.
//     A host that does not answer is refused before ([Config.ConnectTimeout]). One
//     that falls silent just then, or has several addresses of which UCX takes a
//     silent one, holds the agent until the kernel gives up: 7 s, since the binding
//     sets UCX_TCP_SYN_CNT to 2 where nobody else does, instead of two minutes.
//     With UCX_TCP_CONN_NB=y nothing waits, and many meet sooner: 200 agents of one
//     process met another, both ways, in 7 to 9 s instead of 42 s, without an error
//     (2 cores, loaded). A peer whose process is gone then shows with its first
//     transfer only, which fails without proof that it is quiet.
//   - The library has no cancel: a posted transfer ends by itself or not at all.
//     [Transfer.Cancel] of one in flight keeps its notification back and names
//     its end; its bytes all move. Who needs it no more cancels it, polls it
//     to its end ([nixl.Wait]) and leaves the memory alone until then.
//   - A peer that hangs without disconnecting keeps its transfers in flight,
//     canceled or not, and [Agent.Close] refused. [Agent.Recover] of the peer
//     ends them, and with them the connections to all others; transfers with
//     others have to have ended or be canceled. UCX then aborts the process of a
//     peer that goes on in the middle of answering a read over TCP.
//   - Closing a registration does not stop peers from writing into the memory:
//     they hold its keys. Tell them first, and wait until they have said that
//     none of their transfers is in flight.
//
// # Errors
//
// The C ABI has one code, -2, for a canceled request, a disconnect, a request
// that was posted already, one that was not, a mismatch, what is not allowed or
// not supported, and a failure of the transport; before 1.5 also for what was
// not found, which has the code -6 since. What the binding knows tells most of
// them apart:
//
//	posted already, not posted, closed,       refused before the library is asked
//	unknown or earlier peer, memory that
//	nobody registered, bad lists
//	-2 or -6, and the library has             nixl.ErrDisconnected
//	dropped the peer since
//	-2 of a posted request that UCX carries   nixl.ErrDisconnected
//	-6, and the peer is still there           nixl.ErrNoPeer
//	-6 of a call about no peer                nixl.ErrInvalid
//	-2 where a request is made                nixl.ErrInvalid: no backend moves this
//	-1                                        nixl.ErrInvalid
//	everything else                           nixl.ErrBackend
//
// With ErrDisconnected the peer is lost, and its generation over: another AddPeer
// begins the next. Over shared memory there is no connection that could fail; the
// end of the peer shows as an ErrBackend of each post, until the peer is removed.
// Only errors of the first row, those of calls that hand nothing over,
// [nixl.ErrCanceled], what [Agent.Recover] ends and a notification that could not
// be sent after all bytes had moved are quiet. A failure of POSIX is not, not even
// one of the post: a queue is shared by all requests of the backend, and what it
// says of one entry tells nothing of the others. The library's own
// code for a canceled request does not occur: the binding releases none that is
// in flight.
//
// SYMBOLS.md lists every function that the library exports, with where it is
// used or why it is not.
//
// Built without cgo, or where the library is missing, Open fails with
// [nixl.ErrUnavailable] and the reason.
package libnixl
