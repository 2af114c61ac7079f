//go:build linux

package libnixl

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// stamped fills b with bytes that differ from page to page: a run of a length
// that no page has, over and over, and the page's number at a place of its own.
func stamped(b []byte, seed uint64) {
	const page, run = 4096, 1<<20 + 24
	pattern(b[:run], seed)
	for n := run; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
	for i := 0; i+page <= len(b); i += page {
		binary.NativeEndian.PutUint64(b[i+(i>>12*8)%page:], uint64(i)^seed)
	}
}

// The biggest transfers that are promised, in both directions, as one descriptor
// and as 4,096, in one process and between two; every byte is compared. What
// other sizes do is in TestSizes.
func TestOneGiB(t *testing.T) {
	library(t)
	const size = 1 << 30
	for _, where := range []string{"one process", "two processes"} {
		t.Run(where, func(t *testing.T) {
			var c *couple
			if where == "one process" {
				p := newPair(t, size, Config{})
				c = &couple{a: p.a, bufA: p.bufA, bufB: p.bufB, peer: p.peer}
			} else {
				c = newCouple(t, size)
			}
			for i, op := range []nixl.Op{nixl.Read, nixl.Write} {
				from, to := c.bufB.Data, c.bufA.Data
				if op == nixl.Write {
					from, to = to, from
				}
				for k, entries := range []uint64{1, 4096} {
					if (i+k)%2 == 1 && !*long {
						continue // the other number in the other direction
					}
					stamped(from, uint64(1+2*i+k))
					local, remote := split(c.bufA, c.bufB, size, entries)
					x, err := c.a.NewTransfer(nixl.Spec{Op: op, Peer: c.peer, Local: local, Remote: remote})
					require.NoError(t, err)
					clk := clock.Wall()
					require.NoError(t, x.Post())
					require.NoError(t, wait(t, c.a, x))
					t.Logf("%s of %d descriptors: %v", op, entries, clk.Now())
					require.NoError(t, x.Close())
					each := uint64(size) / entries
					for j := range local {
						l, r := local[j].Addr-c.bufA.Addr, remote[j].Addr-c.bufB.Addr
						if !bytes.Equal(c.bufA.Data[l:l+each], c.bufB.Data[r:r+each]) {
							t.Fatalf("%s of %d descriptors: entry %d differs", op, entries, j)
						}
					}
				}
			}
		})
	}
}
