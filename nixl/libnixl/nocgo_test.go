//go:build !cgo || !linux

package libnixl

const hasCgo = false
