package libnixl

import "encoding/binary"

// ucxMemoryTypes is how many types of memory UCX 1.23 knows (ucs_memory_type_t).
const ucxMemoryTypes = 10

// checkKey reads the packed key of a region: which memory domains have keys, the
// type of the memory, the keys, the device and how far it is from others. The
// address is its agent's.
func (a *ucxAddress) checkKey(b []byte) error {
	r := &ucxReader{all: b, what: "key"}
	domains := r.bytes(8, "memory domains")
	if kind := r.byte("memory type"); kind >= ucxMemoryTypes {
		r.fail("memory type %d", kind)
	}
	if r.err != nil {
		return r.err
	}
	m := binary.NativeEndian.Uint64(domains)
	for d, t := range a.transport {
		if m>>d&1 == 0 {
			continue
		}
		n := int(r.byte("length of a key"))
		switch {
		case r.err != nil || t == nil || t.key == keyUnknown:
		case t.key == keyNever:
			r.fail("a key of %s, which has none for registered memory", t.name)
		case n != t.key:
			r.fail("a key of %s of %d bytes, not %d", t.name, n, t.key)
		}
		r.bytes(n, "a key")
	}
	if m != 0 {
		r.distances(a.release)
	}
	r.end()
	return r.err
}

// distances reads the system device of the memory, and where it is known, what
// lies between it and other devices. Before 1.20 there was nothing where it is
// not known, and no end mark.
func (r *ucxReader) distances(release int) {
	const unknown, newer = 0xff, 20
	if release < newer && r.at == len(r.all) {
		return
	}
	if r.byte("system device") == unknown {
		return
	}
	for {
		if release < newer && r.at == len(r.all) {
			return
		}
		if r.byte("device") == unknown || r.err != nil {
			return
		}
		r.bytes(2, "distance of a device")
	}
}
