package libnixl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
)

// UCX follows what a blob says of addresses and keys: one flipped bit in there
// ends the process. So blobs of this binding carry a checksum, in a place where
// other readers of the library pass over it: a whole blob as the connection of
// a backend that nobody has, a partial one (which may have no connections)
// behind its end.
//
// What has a backend of a name this long is taken for sealed, so that damage to
// the name does not make a blob an unsealed one.
const sealName = "kvgate:checksum:sha256:of:this:metadata"

// seal returns a copy of a blob with its checksum.
func seal(blob []byte) []byte {
	m, at, err := parseMetadata(blob)
	if err != nil || m.sealed {
		return blob // not as known: it is the receiver's to judge
	}
	blob = m.blob // sections that go stand behind the connections
	if len(m.Connections) == 0 {
		sum := sha256.Sum256(blob)
		return append(append(bytes.Clone(blob), sealName...), sum[:]...)
	}
	out := bytes.Clone(blob[:at.count])
	out = binary.NativeEndian.AppendUint64(out, uint64(len(m.Connections)+1))
	out = append(out, '|')
	out = appendField(out, "t", []byte(sealName))
	out = appendField(out, "c", make([]byte, sha256.Size))
	sum := len(out) - 1 - sha256.Size
	out = append(out, blob[at.connections:]...)
	digest := sha256.Sum256(out)
	copy(out[sum:], digest[:])
	return out
}

func appendField(b []byte, tag string, data []byte) []byte {
	b = append(b, tag...)
	b = binary.NativeEndian.AppendUint64(b, uint64(len(data)))
	return append(append(b, data...), '|')
}

// checkSeal checks the checksum that the seal at that offset of the blob holds.
func checkSeal(blob []byte, name string, at int) bool {
	if name != sealName || at+sha256.Size > len(blob) {
		return false
	}
	was := blob[at : at+sha256.Size]
	h := sha256.New()
	h.Write(blob[:at])
	h.Write(make([]byte, sha256.Size))
	h.Write(blob[at+sha256.Size:])
	return bytes.Equal(h.Sum(nil), was)
}

// trailer splits a checksum off that stands behind the end of a partial blob.
func trailer(blob, rest []byte) bool {
	if len(rest) != len(sealName)+sha256.Size || string(rest[:len(sealName)]) != sealName {
		return false
	}
	sum := sha256.Sum256(blob[:len(blob)-len(rest)])
	return bytes.Equal(sum[:], rest[len(sealName):])
}
