//go:build !linux

package main

import "syscall"

// ofTheKit gives a part a process group of its own. Nothing ends it with the kit
// here.
func ofTheKit() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
