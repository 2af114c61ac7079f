//go:build cgo && linux

// Libcuda is the simulator as libcuda.so.1, for programs that are not Go:
//
//	go build -buildmode=c-shared -o libcuda.so.1 ./cuda/softcuda/libcuda
//
// Package softcuda/canonical says how to set it up. A second Go program in the
// same process is not supported by Go.
package main

import "C"

import _ "github.com/kvgate/kvgate/cuda/softcuda/canonical" // the names, and the devices

func main() {}
