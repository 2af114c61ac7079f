//go:build !cgo || !linux

// Package canonical gives the program that imports it the CUDA driver's own
// names, served by the simulator. Without cgo it gives nothing.
package canonical
