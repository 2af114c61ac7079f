// Package nixl moves bytes between the memory of agents: registered regions,
// one-sided reads and writes over descriptor lists, notifications. [Agent] and
// [Transfer] are served by nixl/softnic, a fabric inside the process, and are
// shaped so that NVIDIA's NIXL library can serve them too.
//
// The package knows nothing of CUDA: addresses are integers, and nothing here
// orders a transfer against a stream. That is the business of loadgate.
package nixl
