//go:build cgo && linux

package libnixl

const hasCgo = true
