//go:build !linux

package main

import (
	"fmt"
	"os"
	"runtime"
)

// memoryFile returns an open file in memory. It is an error where NIXL does not run.
func memoryFile(string) (*os.File, error) {
	return nil, fmt.Errorf("-transport nixl: there is no NIXL for %s", runtime.GOOS)
}
