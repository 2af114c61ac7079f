package kernels

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// segmentOracles is a file of segment tables, each with what vLLM's own kernel
// made of an arena of 0xA5.
type segmentOracles struct {
	Cases []struct {
		Case         string
		Layout       string
		NumBlocks    int        `json:"num_blocks"`
		ArenaBytes   uint64     `json:"arena_bytes"`
		ZeroBlockIDs []kv.Block `json:"zero_block_ids"`
		ZeroedBytes  int        `json:"zeroed_bytes"`
		Segments     [][3]uint64
		SHA256       string `json:"sha256_after"`
	}
}

// TestSegmentOracles runs our kernel on every segment table of these files and
// compares the arena with what vLLM's kernel left.
func TestSegmentOracles(t *testing.T) {
	paths, err := filepath.Glob("../memory/layout/testdata/segment-*.json")
	require.NoError(t, err)
	require.NotEmpty(t, paths)
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) { testSegmentOracles(t, path) })
	}
}

func testSegmentOracles(t *testing.T, path string) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	text, err = testutil.Expand(text)
	require.NoError(t, err)
	var o segmentOracles
	require.NoError(t, json.Unmarshal(text, &o))
	require.NotEmpty(t, o.Cases, "%s holds no cases", path)
	for _, c := range o.Cases {
		t.Run(c.Case+" "+c.Layout, func(t *testing.T) {
			r := newRig(t, c.ArenaBytes)
			// The oracle's kernel knows no null block: it zeroes what it is told.
			l := layout.Table{Blocks: c.NumBlocks, RealNull: true}
			for _, s := range c.Segments {
				l.Segments = append(l.Segments, layout.Segment{Base: r.arena + s[0], Stride: s[1], Page: s[2]})
			}
			table := r.table(t, l, 0)
			r.run(t, func(b *cuda.Batch) error {
				b.Fill8(r.stream, cuda.DevicePtr(r.arena), 0xA5, r.size)
				return r.set.ZeroBlocks(b, r.stream, table, c.ZeroBlockIDs)
			})
			arena := r.read(t, r.arena, r.size)
			require.Equal(t, c.ZeroedBytes, bytes.Count(arena, []byte{0}), "bytes zeroed")
			sum := sha256.Sum256(arena)
			require.Equal(t, c.SHA256, hex.EncodeToString(sum[:]))
			require.NoError(t, table.Close())
		})
	}
}
