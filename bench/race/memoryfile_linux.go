package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// memoryFile returns an open file in memory. It is an error where NIXL does not run.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), name), nil
}
