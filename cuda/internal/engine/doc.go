//go:build !cgo || !linux

// Package engine is CUDA code of somebody else's, for tests. There is none
// without cgo.
package engine
