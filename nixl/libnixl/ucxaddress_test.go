//go:build linux

package libnixl

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
)

// ucxSample writes addresses as UCX does, in either version of the format.
type ucxSample struct {
	version byte
	b       []byte
	marks   map[string]int // where fields are
}

func (s *ucxSample) add(b ...byte) { s.b = append(s.b, b...) }

func (s *ucxSample) mark(name string) { s.marks[name] = len(s.b) }

// device begins a device; its interfaces follow.
func (s *ucxSample) device(domain byte, address ...byte) {
	s.mark(fmt.Sprint("domain ", domain))
	s.add(domain, byte(len(address)))
	s.add(address...)
}

func (s *ucxSample) iface(name string, last bool, address ...byte) {
	t := ucxTransports[ucxSum(name)]
	s.mark(name)
	s.b = binary.NativeEndian.AppendUint16(s.b, ucxSum(name))
	s.mark(name + " attributes")
	if s.version == 0 {
		for _, f := range []float32{1e-8, 2e10, 0} {
			s.b = binary.NativeEndian.AppendUint32(s.b, math.Float32bits(f))
		}
		s.b = binary.NativeEndian.AppendUint32(s.b, t.flags<<8|3<<30)
	} else {
		s.add(0x44, 0x26, 0, 0)
		s.b = binary.NativeEndian.AppendUint16(s.b, 0x80)
		s.b = binary.NativeEndian.AppendUint16(s.b, uint16(ucxFlags2(t.flags))|3<<8)
	}
	n := byte(len(address))
	if last {
		n |= ucxLast
	}
	s.mark(name + " length")
	s.add(n)
	s.mark(name + " address")
	s.add(address...)
}

func newUCXSample(version byte) *ucxSample {
	s := &ucxSample{version: version, marks: map[string]int{}}
	if version == 0 {
		s.add(ucxUUID << 4)
	} else {
		s.add(7<<4|1, ucxUUID)
	}
	s.add(1, 2, 3, 4, 5, 6, 7, 8)
	host := []byte{9, 9, 9, 9, 9, 9, 9, 0x19}
	s.device(0)
	s.iface("self", true, 1, 1, 1, 1, 1, 1, 1, 1)
	s.device(1, 0, 2, 192, 0, 2, 2)
	s.iface("tcp", true, 0x12, 0x34)
	s.device(2, host...)
	s.iface("sysv", true, 6, 0, 0, 0, 0, 0, 0, 0)
	s.device(3, host...)
	s.iface("posix", true, 0xa6, 0x6b, 0, 0x40, 5, 0, 0, 0xc0)
	s.mark("cma device")
	s.device(4, host...)
	s.iface("cma", true, 0xa6, 0x6b, 0, 0)
	if version == 0 {
		s.mark("release")
		s.add(ucxEmptyDevice|7, ucxLast)
	} else {
		s.b[s.marks["domain 4"]+1] |= ucxLast
	}
	return s
}

func TestUCXAddress(t *testing.T) {
	for version := range byte(2) {
		s := newUCXSample(version)
		a, err := parseUCXAddress(s.b)
		require.NoError(t, err)
		require.Equal(t, 23, a.release)
		var names []string
		for _, x := range a.transport {
			if x != nil {
				names = append(names, x.name)
			}
		}
		require.Equal(t, []string{"self", "tcp", "sysv", "posix", "cma"}, names)
		for n := range s.b {
			_, err := parseUCXAddress(s.b[:n])
			require.ErrorContains(t, err, "UCX address, byte ", "cut to %d", n)
		}
		_, err = parseUCXAddress(append(s.b, 0))
		require.ErrorContains(t, err, "1 bytes behind the end")
	}
}

// What UCX has been seen to end the process at, and what it follows blindly.
func TestUCXAddressRefused(t *testing.T) {
	for _, c := range []struct {
		version byte
		field   string
		off     int
		value   byte
		want    string
	}{
		{0, "domain 0", -9, 0x22, "version 2 of the format"},
		{0, "domain 0", -9, 0x60, "flags 0x6"},
		{0, "domain 0", -9, 0x00, "flags 0x0"},
		{0, "domain 0", -9, 0x30, "unknown name"},
		{0, "domain 0", 0, 0x80, "device without interfaces"},
		{0, "domain 0", 0, 0x40, "memory domain 64"},
		{0, "domain 2", 0, 3, "memory domain 3 is of sysv and of posix"},
		{0, "domain 1", 1, 31, "unknown name"},
		{0, "domain 1", 2, 1, "tcp: device address of 6 bytes"},
		{0, "domain 1", 3, 3, "flags 0x0 and family 3"},
		{0, "tcp", 0, 0, "transport of an unknown name"},
		{0, "tcp attributes", 3, 0xff, "tcp: overhead"},
		{0, "tcp attributes", 7, 0x7f, "tcp: bandwidth"},
		{0, "tcp attributes", 13, 0x42, "tcp: flags"},
		{0, "tcp attributes", 14, 0x63, "tcp: flags"},
		{0, "tcp length", 0, 2, "transport of an unknown name"},
		{0, "tcp length", 0, 0xc2, "tcp: an endpoint"},
		{0, "sysv address", 7, 1, "sysv: segment"},
		{0, "sysv", -1, 0x99, "sysv: device address of 8 bytes"},
		{0, "posix address", 7, 0xd0, "posix: segment"},
		{0, "cma address", 3, 0x80, "cma: process"},
		{0, "release", 1, 0x81, "device without interfaces"},
		{1, "tcp attributes", 4, 0, "tcp: segments of 0 bytes"},
		{1, "tcp attributes", 7, 0x83, "tcp: flags"},
		{1, "self length", 0, 0xbf, "is extended without need"},
	} {
		s := newUCXSample(c.version)
		s.b[s.marks[c.field]+c.off] = c.value
		_, err := parseUCXAddress(s.b)
		require.ErrorContains(t, err, c.want, "%s%+d = %#x", c.field, c.off, c.value)
	}
}

// Addresses of releases before 1.19 have two flags in the domain's byte.
func TestUCXAddressOfOldReleases(t *testing.T) {
	s := newUCXSample(0)
	s.b[s.marks["domain 2"]] |= 0x60
	_, err := parseUCXAddress(s.b)
	require.ErrorContains(t, err, "memory domain 98")
	s.b[s.marks["release"]] = ucxEmptyDevice | 2
	a, err := parseUCXAddress(s.b)
	require.NoError(t, err)
	require.Equal(t, 18, a.release)
	require.Equal(t, "sysv", a.transport[2].name)
}

func TestUCXKey(t *testing.T) {
	a, err := parseUCXAddress(newUCXSample(0).b)
	require.NoError(t, err)
	old := *a
	old.release = 19
	key := func(domains, kind byte, rest ...byte) []byte {
		return append([]byte{domains, 0, 0, 0, 0, 0, 0, 0, kind}, rest...)
	}
	for _, c := range []struct {
		a    *ucxAddress
		key  []byte
		want string
	}{
		{a, key(0, 0), ""},
		{a, key(1, 0, 0, 0xff), ""},
		{a, key(1, 0, 0, 0x85, 3, 1, 1, 4, 1, 1, 0xff), ""},
		{a, key(0x21, 1, 0, 2, 7, 7, 0xff), ""}, // a domain that the address does not have
		{a, key(0x13, 9, 0, 0, 0, 0xff), ""},
		{&old, key(1, 0, 0), ""},
		{&old, key(1, 0, 0, 0xff), ""},
		{&old, key(1, 0, 0, 5, 3, 1, 1), ""},
		{a, key(1, 0, 0), "system device of 1 bytes, and 0 are left"},
		{a, key(1, 0, 0, 5), "device of 1 bytes, and 0 are left"},
		{a, key(1, 0, 0, 5, 3, 1), "distance of a device of 2 bytes"},
		{a, key(1, 0, 0, 5, 3, 1, 1), "device of 1 bytes, and 0 are left"},
		{a, key(1, 0, 0, 0xff, 0), "1 bytes behind the end"},
		{a, key(0, 0, 0), "1 bytes behind the end"},
		{a, key(1, 10, 0, 0xff), "memory type 10"},
		{a, key(1, 0, 1, 7, 0xff), "a key of self of 1 bytes, not 0"},
		{a, key(4, 0, 12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff), "a key of sysv"},
		{a, key(0x20, 0, 200, 0xff), "a key of 200 bytes, and 1 are left"},
		{a, key(1, 0)[:8], "memory type of 1 bytes"},
		{a, nil, "memory domains of 8 bytes, and 0 are left"},
	} {
		err := c.a.checkKey(c.key)
		if c.want == "" {
			require.NoError(t, err, "%x", c.key)
		} else {
			require.ErrorContains(t, err, c.want, "%x", c.key)
		}
	}
}

func FuzzUCXAddress(f *testing.F) {
	a, err := parseUCXAddress(newUCXSample(0).b)
	require.NoError(f, err)
	for version := range byte(2) {
		f.Add(newUCXSample(version).b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := parseUCXAddress(b)
		if (x == nil) == (err == nil) {
			t.Fatal("error or value, never both")
		}
		_ = a.checkKey(b)
	})
}
