package libnixl

import (
	"encoding/binary"
	"fmt"
)

// ucxTransport is what is known of a transport of UCX: the component that its
// keys are of, and, for those whose every field is understood here, what its
// addresses and keys look like.
type ucxTransport struct {
	name, component string
	// check is nil where only the form around the addresses is checked.
	check func(device, iface []byte) error
	// flags are the capabilities that it always has, packed as in version 1 of an
	// address, and options those that depend on its configuration; 0: not known.
	flags, options uint32
	// key is the length of its packed keys; -1: not known, -2: it has none that
	// could be of memory which an application registered.
	key int
}

const (
	keyUnknown = -1
	keyNever   = -2
)

// ucxTransports are those in UCX 1.23 (UCT_TL_DEFINE in src/uct), by the checksum
// of their names.
var ucxTransports = func() map[uint16]*ucxTransport {
	all := []ucxTransport{
		{name: "self", component: "self", check: checkSelf, flags: 0x34f, key: 0},
		{name: "tcp", component: "tcp", check: checkTCP, flags: 0x2303, options: 0x10, key: 0},
		{name: "posix", component: "posix", check: checkPosix, flags: 0x234f, key: keyNever},
		{name: "sysv", component: "sysv", check: checkSysv, flags: 0x234f, key: keyNever},
		{name: "cma", component: "cma", check: checkCMA, flags: 0x2192, key: 0},
	}
	for name, component := range map[string]string{
		"xpmem": "xpmem", "knem": "knem",
		"rc_verbs": "ib", "ud_verbs": "ib", "rc_mlx5": "ib", "ud_mlx5": "ib", "dc_mlx5": "ib", "srd": "ib", "rc_gda": "ib",
		"gga_mlx5": "gga", "cuda_copy": "cuda_copy", "cuda_ipc": "cuda_ipc", "gdr_copy": "gdr_copy",
		"rocm_copy": "rocm_copy", "rocm_ipc": "rocm_ipc", "ze_copy": "ze_copy", "gaudi_gdr": "gaudi_gdr",
		"ugni_rdma": "ugni", "ugni_smsg": "ugni", "ugni_udt": "ugni",
	} {
		all = append(all, ucxTransport{name: name, component: component, key: keyUnknown})
	}
	m := make(map[uint16]*ucxTransport, len(all))
	for _, t := range all {
		m[ucxSum(t.name)] = &t
	}
	return m
}()

// ucxSum is the CRC-16 (polynomial 0x8408, as in X.25) of a transport's name.
func ucxSum(name string) uint16 {
	crc := ^uint16(0)
	for _, b := range []byte(name) {
		crc ^= uint16(b)
		for range 8 {
			crc = crc>>1 ^ -(crc&1)&0x8408
		}
	}
	return ^crc
}

func checkSelf(device, iface []byte) error {
	if len(device) != 0 || len(iface) != 8 {
		return lengths(device, iface)
	}
	return nil
}

func lengths(device, iface []byte) error {
	return fmt.Errorf("device address of %d bytes, interface address of %d", len(device), len(iface))
}

// checkTCP: flags and family, then an address, or for a loopback the host's
// identity and network namespace; the interface address is a port.
func checkTCP(device, iface []byte) error {
	if len(device) < 2 || len(iface) != 2 {
		return lengths(device, iface)
	}
	want := map[[2]byte]int{{0, 2}: 4, {0, 10}: 16, {1, 2}: 12, {1, 10}: 12}
	n, ok := want[[2]byte(device)]
	if !ok {
		return fmt.Errorf("flags %#x and family %d of its address", device[0], device[1])
	}
	if len(device) != 2+n {
		return lengths(device, iface)
	}
	if iface[0] == 0 && iface[1] == 0 {
		return fmt.Errorf("port 0")
	}
	return nil
}

// checkHost: the host's identity, with a namespace where the highest bit says so.
func checkHost(device []byte) error {
	if len(device) != 8 && len(device) != 12 {
		return fmt.Errorf("device address of %d bytes", len(device))
	}
	if named := binary.NativeEndian.Uint64(device)>>63 == 1; named != (len(device) == 12) {
		return fmt.Errorf("device address of %d bytes, and its flag of a namespace is %v", len(device), named)
	}
	return nil
}

// checkPosix: the identity of a shared segment, and what it takes to open it.
func checkPosix(device, iface []byte) error {
	if err := checkHost(device); err != nil {
		return err
	}
	if len(iface) < 8 {
		return lengths(device, iface)
	}
	const procfs, namespace = 1 << 63, 1 << 60
	id, rest := binary.NativeEndian.Uint64(iface), iface[8:]
	switch {
	case id&procfs != 0:
		want := 0
		if id&namespace != 0 {
			want = 4
		}
		if len(rest) != want || id&(1<<30-1) == 0 {
			return fmt.Errorf("segment %#x with %d bytes more", id, len(rest))
		}
	case id&namespace != 0:
		return fmt.Errorf("segment %#x: a namespace without a process", id)
	case len(rest) > 0:
		// A directory, ended by a zero.
		for i, b := range rest {
			if (b == 0) != (i == len(rest)-1) {
				return fmt.Errorf("segment %#x: no name of a directory behind it", id)
			}
		}
	}
	return nil
}

// checkSysv: the number of a shared segment, an int.
func checkSysv(device, iface []byte) error {
	if err := checkHost(device); err != nil {
		return err
	}
	if len(iface) != 8 {
		return lengths(device, iface)
	}
	if id := binary.NativeEndian.Uint64(iface); id >= 1<<31 {
		return fmt.Errorf("segment %#x", id)
	}
	return nil
}

// checkCMA: the number of a process, with its namespace where the highest bit
// says so.
func checkCMA(device, iface []byte) error {
	if err := checkHost(device); err != nil {
		return err
	}
	if len(iface) != 4 && len(iface) != 8 {
		return lengths(device, iface)
	}
	pid := binary.NativeEndian.Uint32(iface)
	if named := pid>>31 == 1; named != (len(iface) == 8) || pid&(1<<31-1) == 0 {
		return fmt.Errorf("process %#x in %d bytes", pid, len(iface))
	}
	return nil
}
