package main

import "syscall"

// ofTheKit gives a part a process group of its own, and ends it with the kit,
// whatever ends that: a part without a deadline of its own would keep the GPU.
func ofTheKit() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
