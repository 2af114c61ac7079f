package libnixl

import (
	"errors"
	"math"
	"time"

	"golang.org/x/sys/unix"
)

// limitConnect bounds how long the kernel waits for an answer to a SYN, by time
// (since Linux 4.19 to the millisecond, but a second at least), and as UCX does.
func limitConnect(fd int, limit time.Duration) error {
	ms := max(limit.Milliseconds(), 1)
	return errors.Join(
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(min(ms, math.MaxInt32))),
		unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_SYNCNT, synRepeats),
	)
}
