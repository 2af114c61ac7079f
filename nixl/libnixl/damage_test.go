//go:build linux

package libnixl

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

const (
	firstVariable = "KVGATE_TEST_FIRST"
	everyVariable = "KVGATE_TEST_EVERY"
)

// Every byte of the address and the key in a blob without a checksum is damaged
// in several ways, in a child: each is refused with a typed error, or loads and
// moves bytes or fails to, and the process lives.
func TestDamagedAddressesAndKeys(t *testing.T) {
	formats := []string{"v1"}
	if *long {
		formats = []string{"v1", "v2"}
	}
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	for _, format := range formats {
		total, deaths := damageAll(t, format, seed)
		t.Logf("UCX address %s: %v", format, total)
		require.Empty(t, deaths)
		require.Positive(t, total["refused"])
		require.Positive(t, total["moved"], "nothing undetected was ever used")
	}
}

// damageAll starts children until one has reached the end, and returns how often
// each outcome was and what a child did not survive.
func damageAll(t *testing.T, format string, seed uint64) (map[string]int, []string) {
	total, deaths, hung := map[string]int{}, []string(nil), map[string]int{}
	defer func() { t.Logf("still in flight after 20 ms: %v", hung) }()
	for first := 0; ; {
		c := command(t, "damage", "UCX_ADDRESS_VERSION="+format, seedVariable+"="+strconv.FormatUint(seed, 10),
			firstVariable+"="+strconv.Itoa(first), everyVariable+"="+strconv.FormatBool(*long))
		out, err := finish(t, c, 10*time.Minute)
		last := ""
		for s := bufio.NewScanner(strings.NewReader(out)); s.Scan(); {
			if k, what, ok := strings.Cut(s.Text(), " "); ok && k == "start" {
				last = what
			} else if ok && k == "result" {
				total[what]++
				if f := strings.Fields(last); what == "in flight" {
					hung[f[1]]++
				}
				last, first = "", first+1
			}
		}
		if err == nil {
			if strings.Contains(out, "that was all") {
				return total, deaths
			}
			continue
		}
		why := regexp.MustCompile("(?m)^.*(Assertion|SIG|fatal|Fatal|seed).*$").FindAllString(out, 3)
		deaths = append(deaths, fmt.Sprintf("%s: %v: %q", last, err, why))
		total["died"]++
		first++
		if len(deaths) > 200 {
			return total, deaths
		}
	}
}

// damages calls fn with each way to damage the parts of the blob, in an order of
// its own: what is where, and the byte in it.
func damages(r *rand.Rand, m *Metadata, every bool, fn func(part string, i int, b byte)) {
	parts := map[string][]byte{"address": m.Connections[0].Info, "key": m.Regions[0].Key}
	for _, name := range []string{"address", "key"} {
		for i, b := range parts[name] {
			values := []byte{0xff, b + 1, byte(r.Uint32())}
			if every {
				values = values[:0]
				for v := range 256 {
					values = append(values, byte(v))
				}
			}
			for k, v := range values {
				if v != b && !bytes.Contains(values[:k], []byte{v}) {
					fn(name, i, v)
				}
			}
		}
	}
}

// batch is how many blobs a child takes, so that what earlier ones left behind
// does not hide which one killed it.
const batch = 2000

func init() {
	roles["damage"] = func() error {
		a, b, move, _, err := loaded()
		if err != nil {
			return err
		}
		good, _, err := b.d.metadata(b.h)
		if err != nil {
			return err
		}
		var seed uint64
		var first int
		var every bool
		_, err1 := fmt.Sscan(os.Getenv(seedVariable), &seed)
		_, err2 := fmt.Sscan(os.Getenv(firstVariable), &first)
		_, err3 := fmt.Sscan(os.Getenv(everyVariable), &every)
		if err := errors.Join(err1, err2, err3); err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(seed, 0))
		m, err := ParseMetadata(good)
		if err != nil {
			return err
		}
		k := 0
		var failed error
		damages(r, m, every, func(part string, i int, v byte) {
			if k++; k <= first || k > first+batch || failed != nil {
				return
			}
			d := renamed(good, "stranger"+strconv.Itoa(k))
			dm, err := ParseMetadata(d)
			if err != nil {
				failed = err
				return
			}
			p := dm.Connections[0].Info
			if part == "key" {
				p = dm.Regions[0].Key
			}
			fmt.Printf("start %d %s[%d] %#x -> %#x\n", k-1, part, i, p[i], v)
			p[i] = v
			result, err := useDamaged(a, d, dm)
			if err != nil {
				failed = fmt.Errorf("%s[%d]: %w", part, i, err)
			}
			fmt.Println("result", result)
		})
		if failed == nil {
			failed = move()
		}
		if k <= first+batch {
			fmt.Println("that was all")
		}
		return failed
	}
}

// useDamaged loads a blob and moves bytes with what it says.
func useDamaged(a *Agent, blob []byte, m *Metadata) (string, error) {
	typed := func(err error) error {
		if e := (*nixl.Error)(nil); !errors.As(err, &e) {
			return fmt.Errorf("untyped: %w", err)
		}
		return nil
	}
	p, err := a.AddPeer(blob)
	if err != nil {
		if errors.Is(err, nixl.ErrInvalid) {
			return "refused", typed(err)
		}
		return "refused by the library", typed(err)
	}
	local := a.registry.Regions(nil)[0].Descriptor
	local.Len = 8192
	remote := m.Regions[0].Descriptor
	remote.Len = 8192
	x, err := a.NewTransfer(nixl.Spec{Op: nixl.Read, Peer: p, Local: []nixl.Descriptor{local}, Remote: []nixl.Descriptor{remote}})
	if err != nil {
		return "no transfer", errors.Join(typed(err), a.RemovePeer(p))
	}
	if err := x.Post(); err != nil {
		return "not posted", typed(err)
	}
	clk := a.Clock()
	err = nixl.Wait(context.Background(), clk, a, x, clk.Now()+20*time.Millisecond)
	switch {
	case err == nil:
		return "moved", errors.Join(x.Close(), a.RemovePeer(p))
	case errors.Is(err, context.DeadlineExceeded):
		return "in flight", nil
	}
	return "failed", typed(err)
}
