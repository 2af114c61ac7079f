package sim

import "golang.org/x/sys/unix"

// What the simulator asks of the operating system that not every one has.

// newMemoryFile returns a descriptor of a file in memory that another process can
// open by it. It is an error where there is no such file.
func newMemoryFile() (fd int, err error) {
	return unix.MemfdCreate(sharedName, unix.MFD_CLOEXEC)
}

// punchHole gives the pages of a part of a memory file back.
func punchHole(fd int, off, size int64) error {
	return unix.Fallocate(fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, off, size)
}

// mapFixedNoReplace is a flag of mmap: these addresses or none. Where it is 0 they
// are a wish, and what is mapped elsewhere has to be unmapped.
const mapFixedNoReplace = unix.MAP_FIXED_NOREPLACE

// threadID returns a number of the calling thread that no other running thread of
// the process has, or 0 where there is none.
func threadID() int64 { return int64(unix.Gettid()) }
