package nvml

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// systemFiles is where Linux describes devices.
const systemFiles = "/sys"

// Distance is how far a NIC is from a GPU, in the words of nvidia-smi topo -m.
// The nearer, the faster GPUDirect RDMA; beyond PXB it passes the host.
type Distance uint8

const (
	PIX  Distance = iota // one PCIe switch or bridge in between, at most
	PXB                  // several bridges, but no host bridge
	PHB                  // a PCIe host bridge
	NODE                 // host bridges of one NUMA node
	SYS                  // NUMA nodes, or nobody knows
)

var distances = [...]string{"PIX", "PXB", "PHB", "NODE", "SYS"}

func (d Distance) String() string {
	if int(d) < len(distances) {
		return distances[d]
	}
	return fmt.Sprintf("distance %d", uint8(d))
}

// NIC is a network card that does RDMA.
type NIC struct {
	Name     string // as in /sys/class/infiniband
	PCI      string // address
	NUMANode int    // -1: unknown
	Distance Distance
}

// place is where a PCI device sits: the bridges above it, from its host bridge
// down, and itself.
type place struct {
	path []string
	node int // NUMA; -1: unknown
}

// locate follows a link of sysfs to a PCI device.
func locate(sys, link string) (place, error) {
	dir, err := filepath.EvalSymlinks(link)
	if err != nil {
		return place{}, err
	}
	root, err := filepath.EvalSymlinks(filepath.Join(sys, "devices"))
	if err != nil {
		return place{}, err
	}
	below, err := filepath.Rel(root, dir)
	if err != nil || strings.HasPrefix(below, "..") {
		return place{}, fmt.Errorf("%s is not below %s", dir, root)
	}
	p := place{path: strings.Split(below, string(filepath.Separator)), node: -1}
	if text, err := os.ReadFile(filepath.Join(dir, "numa_node")); err == nil {
		if n, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil {
			p.node = n
		}
	}
	return p, nil
}

func distance(a, b place) Distance {
	common := 0
	for common < min(len(a.path), len(b.path)) && a.path[common] == b.path[common] {
		common++
	}
	switch {
	case common > 1 && max(len(a.path), len(b.path))-common <= 2: // a port of the same switch each
		return PIX
	case common > 1:
		return PXB
	case common == 1:
		return PHB
	case a.node >= 0 && a.node == b.node:
		return NODE
	}
	return SYS
}

// surroundings tells what lies about the device at a PCI address: the NUMA node
// of the host that is nearest, and the NICs, nearest first. Linux writes addresses
// with small letters, CUDA with capital ones.
func (f *Facts) surroundings(sys string) {
	gpu, err := locate(sys, filepath.Join(sys, "bus", "pci", "devices", strings.ToLower(f.PCI)))
	if err != nil {
		f.Unknown = append(f.Unknown, fmt.Sprintf("NUMA node and NICs: %v", err))
		return
	}
	if f.NUMANode = gpu.node; gpu.node < 0 {
		f.Unknown = append(f.Unknown, "NUMA node: the system does not tell")
	}
	cards := filepath.Join(sys, "class", "infiniband")
	list, err := os.ReadDir(cards)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // without RDMA there is no such folder
		f.Unknown = append(f.Unknown, fmt.Sprintf("NICs: %v", err))
	}
	for _, e := range list {
		nic, err := locate(sys, filepath.Join(cards, e.Name(), "device"))
		if err != nil {
			f.Unknown = append(f.Unknown, fmt.Sprintf("NIC %s: %v", e.Name(), err))
			continue
		}
		f.NICs = append(f.NICs, NIC{Name: e.Name(), PCI: nic.path[len(nic.path)-1], NUMANode: nic.node, Distance: distance(gpu, nic)})
	}
	slices.SortStableFunc(f.NICs, func(a, b NIC) int { return cmp.Compare(a.Distance, b.Distance) })
}
