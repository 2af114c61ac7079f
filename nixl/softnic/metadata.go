package softnic

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"github.com/kvgate/kvgate/nixl"
)

// A blob is the magic, a CRC-32 of what follows, the agent's life and name,
// and its regions; all numbers little endian.
const (
	blobMagic  = "kvgate-softnic-1"
	regionSize = 1 + 3*8
	maxName    = 255
)

type metadata struct {
	life    uint64
	name    string
	regions []nixl.Region
}

func (m *metadata) encode() []byte {
	le := binary.LittleEndian
	b := append(make([]byte, 0, len(blobMagic)+4+8+1+len(m.name)+4+len(m.regions)*regionSize), blobMagic...)
	b = le.AppendUint32(b, 0)
	b = le.AppendUint64(b, m.life)
	b = append(b, byte(len(m.name)))
	b = append(b, m.name...)
	b = le.AppendUint32(b, uint32(len(m.regions)))
	for _, r := range m.regions {
		b = append(b, byte(r.Type))
		b = le.AppendUint64(b, r.Addr)
		b = le.AppendUint64(b, r.Len)
		b = le.AppendUint64(b, r.Device)
	}
	const sum = len(blobMagic)
	le.PutUint32(b[sum:], crc32.ChecksumIEEE(b[sum+4:]))
	return b
}

func decodeMetadata(b []byte) (m metadata, err error) {
	le := binary.LittleEndian
	if len(b) < len(blobMagic)+4+8+1 || string(b[:len(blobMagic)]) != blobMagic {
		return metadata{}, fmt.Errorf("%d bytes that are no metadata of a softnic agent", len(b))
	}
	b = b[len(blobMagic):]
	sum, b := le.Uint32(b), b[4:]
	if crc32.ChecksumIEEE(b) != sum {
		return metadata{}, fmt.Errorf("truncated or damaged: its checksum differs")
	}
	m.life, b = le.Uint64(b), b[8:]
	n, b := int(b[0]), b[1:]
	if n == 0 || len(b) < n+4 {
		return metadata{}, fmt.Errorf("ends inside the name")
	}
	m.name, b = string(b[:n]), b[n:]
	count, b := uint64(le.Uint32(b)), b[4:]
	if uint64(len(b)) != count*regionSize {
		return metadata{}, fmt.Errorf("%d regions in %d bytes", count, len(b))
	}
	m.regions = make([]nixl.Region, 0, count)
	for ; len(b) > 0; b = b[regionSize:] {
		m.regions = append(m.regions, nixl.Region{
			Type:       nixl.MemoryType(b[0]),
			Descriptor: nixl.Descriptor{Addr: le.Uint64(b[1:]), Len: le.Uint64(b[9:]), Device: le.Uint64(b[17:])},
		})
	}
	return m, nil
}
