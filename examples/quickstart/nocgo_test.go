//go:build !cgo

package main

import "testing"

func needNIXL(t *testing.T) { t.Skip("built without cgo: no C library can be called") }
