//go:build !cgo || !linux

// Libcuda is the simulator as libcuda.so.1. Without cgo there is none.
package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "libcuda: build it with cgo, as -buildmode=c-shared")
	os.Exit(1)
}
