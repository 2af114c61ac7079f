//go:build linux

package libnixl

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

const (
	seedVariable  = "KVGATE_TEST_SEED"
	countVariable = "KVGATE_TEST_COUNT"
)

// Damaged blobs, every second one without a checksum, in a child: each is refused with a typed error or loaded, and
// the process lives and still transfers.
func TestGarbageMetadata(t *testing.T) {
	seed, n := rand.Uint64(), 300
	if *long {
		n = 20_000
	}
	t.Logf("seed %d", seed)
	c := command(t, "garbage", seedVariable+"="+strconv.FormatUint(seed, 10), countVariable+"="+strconv.Itoa(n))
	out, err := finish(t, c, 20*time.Second+time.Duration(n)*10*time.Millisecond)
	require.NoError(t, err, out)
	require.Contains(t, out, "still alive")
	t.Log(out)
}

func init() {
	roles["garbage"] = func() error {
		a, b, move, _, err := loaded()
		if err != nil {
			return err
		}
		if err := b.enter("metadata"); err != nil {
			return err
		}
		good, _, err := b.d.metadata(b.h)
		b.leave()
		if err != nil {
			return err
		}
		seed, err := strconv.ParseUint(os.Getenv(seedVariable), 10, 64)
		if err != nil {
			return err
		}
		n, err := strconv.Atoi(os.Getenv(countVariable))
		if err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(seed, 0))
		refused, loaded := 0, 0
		for i := range n {
			// A name of its own, so that the good peer is left alone.
			m := renamed(good, fmt.Sprintf("stranger%d", i))
			if i%2 == 0 {
				m = seal(m)
			}
			damage(r, m)
			if r.IntN(4) == 0 {
				m = m[:r.IntN(len(m))]
			}
			p, err := a.AddPeer(m)
			if err != nil {
				if e := (*nixl.Error)(nil); !errors.As(err, &e) || !nixl.Quiet(err) {
					return fmt.Errorf("seed %d: blob %d: untyped: %w", seed, i, err)
				}
				refused++
				continue
			}
			loaded++
			if p.Name == "prefill" {
				continue
			}
			if err := a.RemovePeer(p); err != nil {
				return fmt.Errorf("seed %d: blob %d: remove: %w", seed, i, err)
			}
		}
		if err := move(); err != nil {
			return fmt.Errorf("seed %d: the good peer: %w", seed, err)
		}
		fmt.Printf("still alive: %d refused, %d loaded\n", refused, loaded)
		return errors.Join(a.Close(), b.Close())
	}
}

// damage changes a few bytes, or puts an absurd number somewhere.
func damage(r *rand.Rand, b []byte) {
	for range 1 + r.IntN(4) {
		switch r.IntN(3) {
		case 0:
			b[r.IntN(len(b))] ^= 1 << r.IntN(8)
		case 1:
			b[r.IntN(len(b))] = byte(r.Uint32())
		default:
			absurd := []uint64{0, 1, 1 << 31, 1 << 63, 1<<64 - 1}
			binary.NativeEndian.PutUint64(b[r.IntN(len(b)-8):], absurd[r.IntN(len(absurd))])
		}
	}
}
