package softnic

import (
	"encoding/binary"
	"hash/crc32"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

func sealed(payload []byte) []byte {
	b := append([]byte(blobMagic), 0, 0, 0, 0)
	binary.LittleEndian.PutUint32(b[len(blobMagic):], crc32.ChecksumIEEE(payload))
	return append(b, payload...)
}

func TestMetadataRoundTrip(t *testing.T) {
	for _, m := range []metadata{
		{life: 1, name: "a", regions: []nixl.Region{}},
		{life: 1 << 63, name: "decode-7", regions: []nixl.Region{
			{Type: nixl.DRAM, Descriptor: nixl.Descriptor{Addr: 1, Len: 2, Device: 3}},
			{Type: nixl.VRAM, Descriptor: nixl.Descriptor{Addr: 1 << 60, Len: 1 << 40}},
		}},
	} {
		got, err := decodeMetadata(m.encode())
		require.NoError(t, err)
		require.Equal(t, m, got)
	}
}

// A blob with a right checksum may still lie about its lengths.
func TestMetadataAbsurdLengths(t *testing.T) {
	for name, payload := range map[string][]byte{
		"nothing":             {},
		"no name":             {1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0},
		"name too long":       {1, 0, 0, 0, 0, 0, 0, 0, 200, 'a', 0, 0, 0, 0},
		"four billion":        {1, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 255, 255, 255, 255},
		"one region, no data": {1, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 1, 0, 0, 0},
		"data, no region":     {1, 0, 0, 0, 0, 0, 0, 0, 1, 'a', 0, 0, 0, 0, 9},
	} {
		_, err := decodeMetadata(sealed(payload))
		require.Error(t, err, name)
	}
}

func FuzzMetadata(f *testing.F) {
	m := metadata{life: 7, name: "agent", regions: []nixl.Region{{Descriptor: nixl.Descriptor{Addr: 4096, Len: 64}}}}
	f.Add(m.encode()[len(blobMagic)+4:])
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, payload []byte) {
		// Both as it is and with a checksum that holds, or nothing would ever
		// get past it.
		if _, err := decodeMetadata(payload); err == nil {
			require.True(t, len(payload) > len(blobMagic))
		}
		m, err := decodeMetadata(sealed(payload))
		if err != nil {
			require.Zero(t, m)
			return
		}
		require.Equal(t, sealed(payload), m.encode(), "one blob for each meaning")
	})
}
