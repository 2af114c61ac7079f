package layout

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/memory/kv"
)

func TestValidateNamesSegmentAndBlock(t *testing.T) {
	ok := Segment{Base: 0x1000, Stride: 64, Page: 64}
	for name, c := range map[string]struct {
		table Table
		want  string
	}{
		"no blocks":       {Table{Segments: []Segment{ok}}, "0 blocks"},
		"negative blocks": {Table{Blocks: -1, Segments: []Segment{ok}}, "-1 blocks"},
		"empty page":      {Table{Blocks: 2, Segments: []Segment{ok, {0x9000, 64, 0}}}, "segment 1: page of 0 bytes"},
		"no base":         {Table{Blocks: 2, Segments: []Segment{{0, 64, 64}}}, "segment 0: base address 0"},
		"page over stride": {Table{Blocks: 2, Segments: []Segment{{0x1000, 64, 65}}},
			"segment 0: page of 65 bytes is larger than the stride of 64"},
		"stride wraps": {Table{Blocks: 3, Segments: []Segment{{0x1000, 1 << 63, 64}}}, "segment 0: block 2"},
		"page wraps": {Table{Blocks: 2, Segments: []Segment{{math.MaxUint64 - 100, 64, 64}}},
			"segment 0: block 1 of 64 bytes reaches past"},
		"same bytes, same stride, shifted": {Table{Blocks: 4, Segments: []Segment{{0x1000, 64, 64}, {0x1040, 64, 64}}},
			"block 0 of segment 1 and block 1 of segment 0 share the byte at 0x1040"},
		"window too wide": {Table{Blocks: 4, Segments: []Segment{{0x1000, 64, 32}, {0x1020, 64, 33}}},
			"block 0 of segment 1 and block 1 of segment 0 share the byte at 0x1040"},
		"other stride": {Table{Blocks: 4, Segments: []Segment{{0x1000, 64, 16}, {0x1020, 96, 16}}},
			"share the byte at"},
		"too many pages to look at": {Table{Blocks: 1 << 24, Segments: []Segment{{0x1000, 64, 16}, {0x1020, 96, 16}}},
			"too many to check"},
		"a block past 2^64": {Table{Blocks: 1, Segments: []Segment{{1, 1 << 63, 1 << 63}, {2, 1 << 63, 1 << 63}}},
			"more than 2^64 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.table.Validate()
			require.ErrorIs(t, err, ErrTable)
			require.ErrorContains(t, err, c.want)
			_, err = NewMap(c.table)
			require.ErrorIs(t, err, ErrTable)
		})
	}
}

func TestLegalTables(t *testing.T) {
	for name, table := range map[string]Table{
		"no segments":                       {Blocks: 4},
		"layer outermost":                   {Blocks: 4, Segments: []Segment{{0x1000, 64, 64}, {0x1100, 64, 64}}},
		"block outermost":                   {Blocks: 4, Segments: []Segment{{0x1000, 128, 64}, {0x1040, 128, 64}}},
		"overlap inside blocks":             {Blocks: 4, Segments: []Segment{{0x1000, 128, 100}, {0x1010, 128, 100}}},
		"one block, any stride":             {Blocks: 1, Segments: []Segment{{0x1000, 0, 64}, {0x1020, 3, 64}}},
		"pages of two strides side by side": {Blocks: 4, Segments: []Segment{{0x1000, 64, 16}, {0x1020, 128, 16}}},
	} {
		t.Run(name, func(t *testing.T) { require.NoError(t, table.Validate()) })
	}
}

func TestFirstAndBytes(t *testing.T) {
	table := Table{Blocks: 4, Segments: []Segment{{0x1000, 64, 10}, {0x2000, 64, 7}}}
	require.EqualValues(t, 17, table.Bytes())
	require.EqualValues(t, 1, table.First())
	table.RealNull = true
	require.EqualValues(t, 0, table.First())
}

func TestLocate(t *testing.T) {
	blockOutermost := Table{Blocks: 4, Segments: []Segment{{0x1000, 256, 64}, {0x1040, 256, 100}}}
	layerOutermost := Table{Blocks: 4, Segments: []Segment{{0x1000, 64, 64}, {0x1100, 64, 48}}}
	overlapping := Table{Blocks: 4, Segments: []Segment{{0x1000, 256, 100}, {0x1020, 256, 100}}}
	reversed := Table{Blocks: 4, Segments: []Segment{{0x1040, 256, 64}, {0x1000, 256, 64}}}
	for name, c := range map[string]struct {
		table      Table
		address, n uint64
		block      kv.Block // Pad: an error
		want       kv.Range
	}{
		"start":                        {blockOutermost, 0x1000, 1, 0, kv.Range{Off: 0, Len: 1}},
		"second page":                  {blockOutermost, 0x1140, 100, 1, kv.Range{Off: 64, Len: 100}},
		"a whole block":                {blockOutermost, 0x1300, 164, 3, kv.Range{Off: 0, Len: 164}},
		"into the gap":                 {blockOutermost, 0x1300, 165, kv.Pad, kv.Range{}},
		"in the gap":                   {blockOutermost, 0x10b0, 1, kv.Pad, kv.Range{}},
		"below":                        {blockOutermost, 0xfff, 1, kv.Pad, kv.Range{}},
		"behind":                       {blockOutermost, 0x13a4, 1, kv.Pad, kv.Range{}},
		"nothing":                      {blockOutermost, 0x1000, 0, kv.Pad, kv.Range{}},
		"wraps":                        {blockOutermost, 0x1000, math.MaxUint64, kv.Pad, kv.Range{}},
		"second segment":               {layerOutermost, 0x1150, 8, 1, kv.Range{Off: 64 + 16, Len: 8}},
		"two blocks":                   {layerOutermost, 0x1030, 64, kv.Pad, kv.Range{}},
		"two segments of other blocks": {layerOutermost, 0x10f0, 32, kv.Pad, kv.Range{}},
		"overlap: everything":          {overlapping, 0x1110, 8, 1, kv.WholeBlock},
		"overlap: across":              {overlapping, 0x1100, 132, 1, kv.WholeBlock},
		"overlap: too far":             {overlapping, 0x1100, 133, kv.Pad, kv.Range{}},
		"in memory but not in order":   {reversed, 0x1000, 65, kv.Pad, kv.Range{}},
		"one page of such a table":     {reversed, 0x1100, 64, 1, kv.Range{Off: 64, Len: 64}},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := NewMap(c.table)
			require.NoError(t, err)
			b, r, err := m.Locate(c.address, c.n)
			if c.block == kv.Pad {
				require.ErrorIs(t, err, ErrNotInBlock)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.block, b)
			require.Equal(t, c.want, r)
		})
	}
}

// owners maps every byte of a table to its places, by going through all pages:
// the plain twin of Validate and Locate.
func owners(t *Table) (places map[uint64][]place, shared bool) {
	places = map[uint64][]place{}
	var off uint64
	for _, s := range t.Segments {
		for b := range t.Blocks {
			for i := range s.Page {
				a := s.Address(kv.Block(b)) + i
				for _, p := range places[a] {
					shared = shared || p.block != kv.Block(b)
				}
				places[a] = append(places[a], place{kv.Block(b), off + i})
			}
		}
		off += s.Page
	}
	return places, shared
}

type place struct {
	block kv.Block
	off   uint64
}

func drawTable(t *rapid.T) Table {
	table := Table{Blocks: rapid.IntRange(1, 5).Draw(t, "blocks")}
	strides := rapid.SampledFrom([][]uint64{{24}, {8}, {8, 24}, {5, 12, 24}}).Draw(t, "strides")
	at := uint64(100)
	for range rapid.IntRange(1, 6).Draw(t, "segments") {
		s := Segment{Stride: rapid.SampledFrom(strides).Draw(t, "stride")}
		s.Page = rapid.Uint64Range(1, s.Stride).Draw(t, "page")
		switch rapid.IntRange(0, 3).Draw(t, "place") {
		case 0: // behind everything
			s.Base = at
		case 1: // right behind the last page
			s.Base = 100
			if n := len(table.Segments); n > 0 {
				s.Base = table.Segments[n-1].Base + table.Segments[n-1].Page
			}
		default:
			s.Base = rapid.Uint64Range(90, 160).Draw(t, "base")
		}
		table.Segments = append(table.Segments, s)
		at = max(at, s.end(table.Blocks))
	}
	return table
}

func TestAgainstPlainTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		table := drawTable(t)
		places, shared := owners(&table)
		m, err := NewMap(table)
		if shared {
			require.ErrorIs(t, err, ErrTable)
			return
		}
		require.NoError(t, err)
		twice := false
		for _, p := range places {
			twice = twice || len(p) > 1
		}
		require.Equal(t, twice, m.Overlapping())
		for range 20 {
			address := rapid.Uint64Range(80, 320).Draw(t, "address")
			n := rapid.Uint64Range(1, 30).Draw(t, "n")
			block, r, err := m.Locate(address, n)
			want, alone, ok := plainLocate(places, address, n)
			switch {
			case !ok:
				require.ErrorIs(t, err, ErrNotInBlock, "%d bytes at %d", n, address)
			case r == kv.WholeBlock:
				require.NoError(t, err)
				require.Equal(t, want.block, block)
			case alone:
				require.NoError(t, err, "%d bytes at %d", n, address)
				require.Equal(t, want.block, block)
				require.Equal(t, kv.Range{Off: want.off, Len: n}, r)
			default:
				// Bytes of one block that are not one run of its bytes.
				require.ErrorIs(t, err, ErrNotInBlock)
			}
			checkPrefix(t, m, address, n)
		}
	})
}

// checkPrefix holds Prefix against Locate: it finds as many bytes as that does,
// and no more.
func checkPrefix(t *rapid.T, m *Map, address, n uint64) {
	block, r, found, err := m.Prefix(address, n)
	if err != nil {
		require.ErrorIs(t, err, ErrNotInBlock)
		_, _, err = m.Locate(address, 1)
		require.ErrorIs(t, err, ErrNotInBlock)
		return
	}
	require.True(t, 0 < found && found <= n)
	b, at, err := m.Locate(address, found)
	require.NoError(t, err)
	require.Equal(t, block, b)
	require.Equal(t, r, at)
	if found < n {
		_, _, err := m.Locate(address, found+1)
		require.ErrorIs(t, err, ErrNotInBlock)
	}
}

// plainLocate says where the first byte is, whether the bytes are one run of
// the block's bytes with no other place, and whether they are in one block.
func plainLocate(places map[uint64][]place, address, n uint64) (first place, alone, ok bool) {
	alone = true
	for i := range n {
		p := places[address+i]
		if len(p) == 0 {
			return place{}, false, false
		}
		if i == 0 {
			first = p[0]
		}
		if p[0].block != first.block {
			return place{}, false, false
		}
		alone = alone && len(p) == 1 && p[0].off == first.off+i
	}
	return first, alone, true
}

func BenchmarkLocate(b *testing.B) {
	table := Table{Blocks: 2000}
	for i := range 128 {
		table.Segments = append(table.Segments, Segment{1 << 30, 128 << 16, 1 << 16})
		table.Segments[i].Base += uint64(i) << 16
	}
	m, err := NewMap(table)
	require.NoError(b, err)
	b.ReportAllocs()
	i := uint64(0)
	for b.Loop() {
		i = (i + 7919) % (2000 * 128)
		if _, _, err := m.Locate(1<<30+i<<16, 1<<16); err != nil {
			b.Fatal(err)
		}
	}
}
