//go:build linux

package libnixl

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// blob writes metadata as the library does.
type blob struct{ bytes.Buffer }

func (b *blob) field(tag string, data []byte) {
	b.WriteString(tag)
	_ = binary.Write(b, binary.NativeEndian, uint64(len(data)))
	b.Write(data)
	b.WriteByte('|')
}

func (b *blob) count(tag string, n uint64) {
	b.field(tag, binary.NativeEndian.AppendUint64(nil, n))
}

func (b *blob) region(addr, length, dev uint64, key string) {
	d := binary.NativeEndian.AppendUint64(nil, addr)
	d = binary.NativeEndian.AppendUint64(d, length)
	d = binary.NativeEndian.AppendUint64(d, dev)
	b.field("", append(d, key...))
}

func sample() []byte {
	b := &blob{}
	b.WriteString("nixlSerDes|")
	b.field("Agent", []byte("prefill"))
	b.count("Conns", 2)
	b.field("t", []byte("UCX"))
	b.field("c", []byte("worker address"))
	b.field("t", []byte("MOCK"))
	b.field("c", []byte{0})
	b.field("", []byte("MemSection"))
	b.count("nixlSecElms", 2)
	b.field("bknd", []byte("UCX"))
	b.field("nixlDList", []byte("nixlSDList"))
	b.field("t", binary.NativeEndian.AppendUint32(nil, uint32(nixl.DRAM)))
	b.count("n", 2)
	b.region(0x1000, 4096, 0, "key one")
	b.region(0x2000, 100, 0, "key two")
	b.field("bknd", []byte("UCX"))
	b.field("nixlDList", []byte("nixlSDList"))
	b.field("t", binary.NativeEndian.AppendUint32(nil, uint32(nixl.VRAM)))
	b.count("n", 0)
	return b.Bytes()
}

func TestParseMetadata(t *testing.T) {
	m, err := ParseMetadata(sample())
	require.NoError(t, err)
	require.Equal(t, "prefill", m.Agent)
	require.Equal(t, []Connection{{"UCX", []byte("worker address")}, {"MOCK", []byte{0}}}, m.Connections)
	require.Len(t, m.Regions, 2)
	require.Equal(t, nixl.Descriptor{Addr: 0x2000, Len: 100}, m.Regions[1].Descriptor)
	require.Equal(t, "key two", string(m.Regions[1].Key))
	r, err := m.registry()
	require.NoError(t, err)
	require.Equal(t, 2, r.Len())
}

// A sealed blob says the same, and no single bit of it can change.
func TestSeal(t *testing.T) {
	b := seal(sample())
	require.Equal(t, b, seal(b))
	m, err := ParseMetadata(b)
	require.NoError(t, err)
	require.True(t, m.Sealed())
	plain, err := ParseMetadata(sample())
	require.NoError(t, err)
	require.False(t, plain.Sealed())
	require.Equal(t, plain.Connections, m.Connections)
	require.Equal(t, plain.Regions, m.Regions)
	require.Equal(t, plain.life(), m.life())
	for i := range b {
		for bit := range 8 {
			b[i] ^= 1 << bit
			_, err := ParseMetadata(b)
			require.ErrorIs(t, err, nixl.ErrInvalid, "bit %d of byte %d", bit, i)
			b[i] ^= 1 << bit
		}
	}
	for n := range b {
		_, err := ParseMetadata(b[:n])
		require.ErrorIs(t, err, nixl.ErrInvalid)
	}
}

func TestParseMetadataOfAnAgent(t *testing.T) {
	a, buf := agent(t, "decode", Config{}), pages(t, 1<<16)
	reg, err := a.Register(nixl.DRAM, []nixl.Descriptor{region(buf, 0, 4096), region(buf, 4096, 8)})
	require.NoError(t, err)
	b, err := a.Metadata()
	require.NoError(t, err)
	m, err := ParseMetadata(b)
	require.NoError(t, err)
	require.Equal(t, "decode", m.Agent)
	require.True(t, m.Sealed())
	require.Len(t, m.Connections, 1)
	require.Equal(t, "UCX", m.Connections[0].Backend)
	require.Len(t, m.Regions, 2)
	for i, d := range reg.Regions() {
		require.Equal(t, d, m.Regions[i].Descriptor)
		require.NotEmpty(t, m.Regions[i].Key)
	}
	other := agent(t, "decode", Config{})
	b2, err := other.Metadata()
	require.NoError(t, err)
	m2, err := ParseMetadata(b2)
	require.NoError(t, err)
	require.NotEqual(t, m.life(), m2.life(), "two lives of one name")
}

func TestEveryCutIsRefused(t *testing.T) {
	b := sample()
	for n := range b {
		_, err := ParseMetadata(b[:n])
		require.ErrorIs(t, err, nixl.ErrInvalid, n)
	}
	_, err := ParseMetadata(append(b, 0))
	require.ErrorContains(t, err, "1 bytes behind the end")
}

func TestAbsurdLengths(t *testing.T) {
	b := sample()
	for i := 0; i+8 <= len(b); i++ {
		for _, v := range []uint64{1 << 63, 1<<64 - 1, 1 << 40, uint64(len(b)), 1<<64 - 9} {
			c := bytes.Clone(b)
			binary.NativeEndian.PutUint64(c[i:], v)
			m, err := ParseMetadata(c)
			require.True(t, (m == nil) != (err == nil))
		}
	}
}

func FuzzParseMetadata(f *testing.F) {
	f.Add(sample())
	f.Add([]byte("nixlSerDes|"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := ParseMetadata(b)
		if (m == nil) == (err == nil) {
			t.Fatal("error or value, never both")
		}
		if err == nil {
			m.life()
			_, _ = m.registry()
			m.keys()
		}
	})
}

func TestRequireSeal(t *testing.T) {
	a, b := agent(t, "decode", Config{RequireSeal: true}), agent(t, "prefill", Config{})
	sealed, err := b.Metadata()
	require.NoError(t, err)
	plain, _, err := b.d.metadata(b.h)
	require.NoError(t, err)
	_, err = a.AddPeer(plain)
	quiet(t, err, nixl.ErrInvalid)
	require.ErrorContains(t, err, "no checksum")
	_, err = a.AddPeer(sealed)
	require.NoError(t, err)
}
