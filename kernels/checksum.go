package kernels

import "encoding/binary"

// Checksum returns what checksum_blocks computes for a block, given its pages
// in the order of the table's segments.
//
// Each page is read as little-endian 64-bit words from its first byte, the last
// one filled up with zero bytes. The checksum is the sum, modulo 2^64, of the
// SplitMix64 hash (Steele, Lea, Flood, OOPSLA 2014) of each word together with
// the offset of its first byte in the pages laid end to end. It does not depend
// on the order in which words are added, and tells blocks apart whose words
// have changed places. It is no defence against an adversary.
func Checksum(pages ...[]byte) uint64 {
	var sum, offset uint64
	for _, p := range pages {
		for at := 0; at < len(p); at += 8 {
			var word [8]byte
			copy(word[:], p[at:])
			sum += mix(binary.LittleEndian.Uint64(word[:]), offset+uint64(at))
		}
		offset += uint64(len(p))
	}
	return sum
}

func mix(word, offset uint64) uint64 {
	z := word + (offset+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
