package libnixl

import (
	"encoding/binary"
	"fmt"
	"math"
)

// UCX is told no lengths: it follows a worker's address (src/ucp/wireup/address.c
// of UCX 1.23) and a packed key (src/ucp/core/ucp_rkey.c) by what they say of
// themselves, and ends the process at some of what it does not expect. So those
// that no checksum covers are read here first, by the same rules but within
// bounds, and whatever UCX does not write is refused.

// ucxAddress is what a worker's address says that its keys depend on.
type ucxAddress struct {
	version   byte                      // of the format
	release   int                       // minor version of the UCX that wrote it; 0: older than 1.16
	domains   []ucxDomain               // in the order of the address
	transport [ucxDomains]*ucxTransport // by memory domain; nil: none in the address
}

// ucxDomain is one interface in an address.
type ucxDomain struct {
	index         byte
	transport     *ucxTransport
	device, iface string // addresses
}

const (
	ucxDomains   = 64  // UCP_MAX_MDS
	ucxResources = 128 // UCP_MAX_RESOURCES

	ucxWireBits = 4 // of a release

	ucxUUID      = 1 << 1 // flags of the header
	ucxDebugInfo = 1 << 0

	ucxEmptyDevice = 0x80 // of the domain
	ucxLast        = 0x80 // of the lengths of device and interface
	ucxPaths       = 0x40 // of the length of a device
	ucxSystem      = 0x20
	ucxEndpoints   = 0x40 // of the length of an interface
)

// ucxReader reads an address or a key; after the first failure all reads return
// nothing.
type ucxReader struct {
	all  []byte
	at   int
	what string
	err  error
}

func (r *ucxReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("UCX %s, byte %d: %s", r.what, r.at, fmt.Sprintf(format, args...))
	}
}

func (r *ucxReader) bytes(n int, what string) []byte {
	if r.err == nil && n > len(r.all)-r.at {
		r.fail("%s of %d bytes, and %d are left", what, n, len(r.all)-r.at)
	}
	if r.err != nil {
		return nil
	}
	b := r.all[r.at : r.at+n]
	r.at += n
	return b
}

func (r *ucxReader) byte(what string) byte {
	if b := r.bytes(1, what); b != nil {
		return b[0]
	}
	return 0
}

// end fails where something is left.
func (r *ucxReader) end() {
	if r.err == nil && r.at != len(r.all) {
		r.fail("%d bytes behind the end", len(r.all)-r.at)
	}
}

// value reads the bits of mask in a byte, which in version 2 of the format
// extends to another byte where all of them are set. It returns the byte, too.
func (r *ucxReader) value(mask, version byte, what string) (value, first byte) {
	first = r.byte(what)
	if value = first & mask; value == mask && version > 0 {
		value = r.byte(what)
		if r.err == nil && value < mask {
			r.fail("%s %d is extended without need", what, value)
		}
	}
	return value, first
}

// parseUCXAddress reads the address of a worker.
func parseUCXAddress(b []byte) (*ucxAddress, error) {
	r := &ucxReader{all: b, what: "address"}
	a := &ucxAddress{}
	flags := r.header(a)
	switch {
	case r.err != nil:
	case flags&ucxUUID == 0 || flags&^(ucxUUID|ucxDebugInfo) != 0:
		r.fail("flags %#x", flags)
	}
	r.bytes(8, "worker id")
	if flags&ucxDebugInfo != 0 {
		if n := int(r.byte("worker name")); n > 31 {
			r.fail("worker name of %d bytes", n)
		} else {
			r.bytes(n, "worker name")
		}
	}
	resources := 0
	for last := false; !last && r.err == nil; {
		last = r.device(a, &resources)
	}
	r.end()
	r.domains(a)
	if r.err != nil {
		return nil, r.err
	}
	return a, nil
}

// domains finds the transport of each memory domain, which has to be of one
// component.
func (r *ucxReader) domains(a *ucxAddress) {
	for _, d := range a.domains {
		if a.version == 0 && a.release < 19 {
			d.index &^= 0x60 // two flags of UCX 1.18 and earlier
		}
		if d.index >= ucxDomains {
			r.fail("memory domain %d", d.index)
			return
		}
		if was := a.transport[d.index]; was != nil && was.component != d.transport.component {
			r.fail("memory domain %d is of %s and of %s", d.index, was.component, d.transport.component)
			return
		}
		a.transport[d.index] = d.transport
	}
}

// header reads the version and the flags.
func (r *ucxReader) header(a *ucxAddress) byte {
	first := r.byte("header")
	switch a.version = first & addressVersion; a.version {
	case 0:
		return first >> ucxWireBits
	case 1:
		a.release = ucxRelease(first >> ucxWireBits)
		return r.byte("flags")
	}
	r.fail("version %d of the format", a.version)
	return 0
}

// ucxRelease is the minor version that four bits on the wire stand for. UCX takes
// the one closest to its own, which for those that NIXL is built with, 1.18 to
// 1.23, is this.
func ucxRelease(wire byte) int {
	if wire == 15 {
		return 15
	}
	return 16 + int(wire)
}

// device reads a device with its interfaces and reports whether it is the last.
func (r *ucxReader) device(a *ucxAddress, resources *int) bool {
	domain, first := r.value(0x7f, a.version, "memory domain")
	empty := first&ucxEmptyDevice != 0
	n, first := r.value(0x1f, a.version, "length of the device address")
	last := first&ucxLast != 0
	if empty {
		// Stands for the release of the UCX that wrote this.
		if r.err == nil && (a.version != 0 || !last || n != 0 || first != ucxLast || domain >= 1<<ucxWireBits) {
			r.fail("device without interfaces: domain %d, length %#x", domain, first)
		}
		a.release = ucxRelease(domain)
		return last
	}
	if first&ucxPaths != 0 && r.byte("number of paths") < 2 {
		r.fail("needless number of paths")
	}
	if first&ucxSystem != 0 && r.byte("system device") == 0xff {
		r.fail("needless system device")
	}
	address := r.bytes(int(n), "device address")
	for more := r.err == nil; more; {
		if *resources++; *resources > ucxResources {
			r.fail("more than %d interfaces", ucxResources)
		}
		more = r.iface(a, domain, address) && r.err == nil
	}
	return last
}

// iface reads an interface of a device and reports whether another one follows.
func (r *ucxReader) iface(a *ucxAddress, domain byte, device []byte) bool {
	sum := r.bytes(2, "checksum of the transport's name")
	if r.err != nil {
		return false
	}
	t := ucxTransports[binary.NativeEndian.Uint16(sum)]
	if t == nil {
		r.fail("transport of an unknown name (checksum %x)", sum)
		return false
	}
	if a.version == 0 {
		r.attributes1(t)
	} else {
		r.attributes2(t)
	}
	n, first := r.value(0x3f, a.version, "length of the interface address")
	if first&ucxEndpoints != 0 {
		r.fail("%s: an endpoint in the address of a worker", t.name)
	}
	address := r.bytes(int(n), "interface address")
	a.domains = append(a.domains, ucxDomain{domain, t, string(device), string(address)})
	if r.err == nil && t.check != nil {
		if err := t.check(device, address); err != nil {
			r.fail("%s: %v", t.name, err)
		}
	}
	return first&ucxLast == 0
}

// attributes1 reads the attributes of an interface in version 1: three numbers of
// floating point, and a word of priority and flags.
func (r *ucxReader) attributes1(t *ucxTransport) {
	b := r.bytes(16, "attributes")
	if r.err != nil {
		return
	}
	f := func(i int) float64 { return float64(math.Float32frombits(binary.NativeEndian.Uint32(b[i:]))) }
	overhead, bandwidth, latency := f(0), f(4), f(8)
	// A negative bandwidth is of UCX 1.11 and earlier. No transport takes a
	// second for anything, nor moves less than a kilobyte in one.
	if !(overhead >= 0 && overhead < 1) || !(latency >= 0 && latency < 1) {
		r.fail("%s: overhead %g s, latency %g s", t.name, overhead, latency)
	}
	if !(bandwidth >= 1e3 && bandwidth < 1e15) {
		r.fail("%s: bandwidth %g bytes/s", t.name, bandwidth)
	}
	flags := binary.NativeEndian.Uint32(b[12:]) >> 8
	const known, atomics = 1<<14 - 1, 3 << 22
	if flags&^(known|atomics) != 0 {
		r.fail("%s: flags %#x", t.name, flags)
	}
	if want := t.flags; want != 0 && flags&known&^t.options != want {
		r.fail("%s: flags %#x, where it has %#x", t.name, flags&known, want)
	}
}

// attributes2 reads those of version 2: three numbers of eight bits, the priority,
// the size of segments and flags.
func (r *ucxReader) attributes2(t *ucxTransport) {
	b := r.bytes(8, "attributes")
	if r.err != nil {
		return
	}
	flags := uint32(binary.NativeEndian.Uint16(b[6:]))
	const known, atomics = 1<<8 - 1, 3 << 8
	if flags&^(known|atomics) != 0 {
		r.fail("%s: flags %#x", t.name, flags)
	}
	if want := ucxFlags2(t.flags); want != 0 && flags&known&^ucxFlags2(t.options) != want {
		r.fail("%s: flags %#x, where it has %#x", t.name, flags&known, want)
	}
	// UCX divides by the size of segments where it sends messages.
	if segment := binary.NativeEndian.Uint16(b[4:]); flags&ucxMessages2 != 0 && segment < ucxSegment {
		r.fail("%s: segments of %d bytes", t.name, 64*int(segment))
	}
}

const (
	ucxMessages2 = 1 << 1 // flag
	ucxSegment   = 4      // the least, in units of 64 bytes
)

// ucxFlags2 packs the capabilities of version 1 as version 2 does.
func ucxFlags2(f uint32) (packed uint32) {
	for i, mask := range []uint32{1 << 8, 0, 1 << 10, 7 << 2, 7 << 5, 1 << 11, 1 << 12, 1 << 13} {
		if f&mask != 0 {
			packed |= 1 << i
		}
	}
	if f&(1|1<<9) == 1|1<<9 {
		packed |= ucxMessages2
	}
	return packed
}
