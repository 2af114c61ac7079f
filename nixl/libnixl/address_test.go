//go:build linux

package libnixl

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// An address of a version that UCX does not know would end the process: it is
// refused, sealed or not, and a good one is still taken. In a child, which an
// abort would end.
func TestAddressVersion(t *testing.T) {
	for _, format := range []string{"v1", "v2"} {
		out, err := finish(t, command(t, "address", "UCX_ADDRESS_VERSION="+format), patience)
		require.NoError(t, err, out)
		require.Contains(t, out, "30 refused")
	}
}

func init() {
	roles["address"] = func() error {
		l, err := childLibrary()
		if err != nil {
			return err
		}
		a, err := l.NewAgent(context.Background(), "decode", Config{})
		if err != nil {
			return err
		}
		b, err := l.NewAgent(context.Background(), "prefill", Config{})
		if err != nil {
			return err
		}
		good, _, err := b.d.metadata(b.h)
		if err != nil {
			return err
		}
		m, err := ParseMetadata(good)
		if err != nil {
			return err
		}
		// Parts of a parsed blob lie in the blob itself.
		info := m.Connections[0].Info
		first, refused := info[0], 0
		for x := byte(1); x <= addressVersion; x++ {
			info[0] = first ^ x
			for _, blob := range [][]byte{good, seal(good)} {
				_, err := a.AddPeer(blob)
				if !errors.Is(err, nixl.ErrInvalid) || !nixl.Quiet(err) {
					return fmt.Errorf("first byte %#x: %v", info[0], err)
				}
				refused++
			}
		}
		info[0] = first
		for _, blob := range [][]byte{good, seal(good)} {
			p, err := a.AddPeer(blob)
			if err != nil {
				return err
			}
			if err := a.Connect(p); err != nil {
				return err
			}
		}
		fmt.Println(refused, "refused")
		return errors.Join(a.Close(), b.Close())
	}
}
