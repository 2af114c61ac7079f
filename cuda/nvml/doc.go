// Package nvml tells what NVML knows of a GPU and CUDA does not: where it sits
// (NUMA node, NVLinks, NICs nearby), how much of it a NIC can reach (BAR1), its clocks, and
// the errors that end it (ECC, Xid).
//
// A program that wants it imports it; nothing of this module does. Built without
// cgo, [Open] fails with [ErrNoNVML], as it does where the library is missing;
// [Describe] then goes by what CUDA says. The folder is a module of its own,
// since go-nvml prints a page of compiler warnings on a cold build and links
// its importers with unresolved symbols, which they do not survive with -z now.
// ./build.sh nvml tests it with go-nvml's own mock servers.
package nvml
