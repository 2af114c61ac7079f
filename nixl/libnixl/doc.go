// Package libnixl is a binding of NVIDIA's NIXL through its C ABI,
// libnixl_capi.so, which it loads at run time: nothing of it is needed to
// build. [Open] finds the library and [Library.NewAgent] makes an [Agent], which
// is a [nixl.Agent] with more to it.
//
// What the library leaves open, the binding closes:
//
//   - Releasing a request does not stop it. Closing a transfer in flight, its
//     registration, its peer or its agent is refused with [nixl.ErrBusy].
//     [nixl.Poller] polls requests to their end and closes them then.
//   - A failure does not tell whether memory is still being written. It is
//     poisoned: it can not be deregistered, and [Agent.Poisoned] names it,
//     until [Agent.Recover] or the end of the agent.
//   - Equal registrations confuse it. Regions are counted and go down once.
//   - It follows pointers in requests whose memory or peer is gone. Their
//     native requests are released first; posting them is refused.
//   - A blob is trusted. It is parsed here first ([ParseMetadata]).
//   - It replaces signal handlers that Go needs. They are put back after each
//     call that loads code ([Library.RestoredSignals]).
//   - Its C ABI has one code for many errors. See the table in errors.go.
//
// SYMBOLS.md lists every function that the library exports, with where it is
// used or why it is not.
//
// Built without cgo, or where the library is missing, Open fails with
// [nixl.ErrUnavailable] and the reason.
package libnixl
