package nvml

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
)

var (
	_ Source = (*driver.Device)(nil)
	_ Killer = (*driver.Device)(nil)
)

// system makes a sysfs of PCI devices, by their places below devices, and of
// NICs.
func system(t *testing.T, nodes map[string]string, nics map[string]string) string {
	sys := t.TempDir()
	link := func(to, at string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(at), 0o777))
		require.NoError(t, os.Symlink(to, at))
	}
	for place, node := range nodes {
		dir := filepath.Join(sys, "devices", place)
		require.NoError(t, os.MkdirAll(dir, 0o777))
		if node != "" {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "numa_node"), []byte(node+"\n"), 0o666))
		}
		link(dir, filepath.Join(sys, "bus", "pci", "devices", filepath.Base(place)))
	}
	for name, place := range nics {
		link(filepath.Join(sys, "devices", place), filepath.Join(sys, "class", "infiniband", name, "device"))
	}
	return sys
}

func TestSurroundings(t *testing.T) {
	const (
		gpu    = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:00.0/0000:03:00.0" // root port, switch, its port
		sibl   = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:01.0/0000:04:00.0"
		deeper = "pci0000:00/0000:00:01.0/0000:01:00.0/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0"
		port   = "pci0000:00/0000:00:02.0/0000:08:00.0"
		node   = "pci0000:40/0000:40:01.0/0000:41:00.0"
		far    = "pci0000:80/0000:80:01.0/0000:81:00.0"
	)
	sys := system(t, map[string]string{gpu: "0", sibl: "0", deeper: "0", port: "0", node: "0", far: "1"},
		map[string]string{"mlx5_0": far, "mlx5_1": node, "mlx5_2": port, "mlx5_3": deeper, "mlx5_4": sibl, "mlx5_5": "pci0000:ff/gone"})
	f := Facts{PCI: "0000:03:00.0"}
	f.surroundings(sys)
	require.Equal(t, []NIC{
		{"mlx5_4", "0000:04:00.0", 0, PIX}, {"mlx5_3", "0000:07:00.0", 0, PXB}, {"mlx5_2", "0000:08:00.0", 0, PHB},
		{"mlx5_1", "0000:41:00.0", 0, NODE}, {"mlx5_0", "0000:81:00.0", 1, SYS},
	}, f.NICs)
	require.Zero(t, f.NUMANode)
	require.Len(t, f.Unknown, 1)
	require.Contains(t, f.Unknown[0], "NIC mlx5_5: ")

	f = Facts{PCI: "0000:99:00.0", NUMANode: -1}
	f.surroundings(sys)
	require.Equal(t, -1, f.NUMANode)
	require.Len(t, f.Unknown, 1)
	require.Contains(t, f.Unknown[0], "NUMA node and NICs: ")

	sys = system(t, map[string]string{gpu: "-1"}, nil)
	f = Facts{PCI: "0000:03:00.0"}
	f.surroundings(sys)
	require.Equal(t, []string{"NUMA node: the system does not tell"}, f.Unknown)
	require.Empty(t, f.NICs)
	require.Equal(t, "distance 9", Distance(9).String())
}

// source is a device without NVML.
type source struct{ pci, uuid string }

func (s source) Info() cuda.Info { return cuda.Info{Name: "a GPU", Memory: 5, Driver: 12040} }
func (s source) PCIAddress() (string, error) {
	if s.pci == "" {
		return "", errors.New("no address")
	}
	return s.pci, nil
}
func (s source) UUID() (string, error) {
	if s.uuid == "" {
		return "", errors.New("no UUID")
	}
	return s.uuid, nil
}

// Without NVML the device is described by what CUDA and the system say.
func TestDescribeWithoutNVML(t *testing.T) {
	sys := system(t, map[string]string{"pci0000:00/0000:01:00.0": "1"}, map[string]string{"mlx5_0": "pci0000:00/0000:01:00.0"})
	why := errors.New("no NVML here")
	f := describe(source{"0000:01:00.0", "GPU-1"}, nil, why, sys)
	require.Equal(t, Facts{Name: "a GPU", UUID: "GPU-1", PCI: "0000:01:00.0", NUMANode: 1, OwnNode: -1, Memory: 5, CUDA: 12040,
		NICs:    []NIC{{"mlx5_0", "0000:01:00.0", 1, PIX}},
		Unknown: []string{"what NVML alone tells: no NVML here"}}, f)
	sys = system(t, map[string]string{"pci0000:c0/0000:c1:00.0": "1"}, map[string]string{"mlx5_0": "pci0000:c0/0000:c1:00.0"})
	f = describe(source{"0000:C1:00.0", "GPU-1"}, nil, why, sys)
	require.Equal(t, 1, f.NUMANode, "as CUDA writes it, with capitals")
	require.Equal(t, []NIC{{"mlx5_0", "0000:c1:00.0", 1, PIX}}, f.NICs)
	require.Equal(t, []string{"what NVML alone tells: no NVML here"}, f.Unknown)
	f = describe(source{}, nil, why, sys)
	require.Equal(t, []string{"PCI address, and what goes by it: no address", "UUID: no UUID"}, f.Unknown)
	require.Equal(t, -1, f.NUMANode)
}
