package nvml

import (
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/kvgate/kvgate/cuda"
)

// ErrNoNVML: there is no usable NVML. The wrapping error says why.
var ErrNoNVML = errors.New("no usable NVML")

// Clocks are clock rates in MHz; 0 where unknown.
type Clocks struct{ SM, Memory uint32 }

// Link is an NVLink that is up.
type Link struct {
	Index  int
	Remote string // PCI address of the other end
}

// Facts are what is known of a device.
type Facts struct {
	Name     string
	UUID     string
	SliceOf  string // UUID of the GPU, of which the device is a slice (MIG); empty: it is the whole
	PCI      string // address, as 0000:01:00.0
	NUMANode int    // of the host, nearest; -1: unknown
	OwnNode  int    // the NUMA node that its memory is, on coherent machines; -1: none
	Memory   uint64 // bytes
	BAR1     uint64 // bytes: the most that can be registered with NICs at a time; 0: unknown
	Links    []Link
	NICs     []NIC // nearest first
	Now      Clocks
	Max      Clocks
	// UncorrectedECC is the number of uncorrected memory errors since the
	// driver was loaded.
	UncorrectedECC uint64
	Driver         string // version of the driver
	CUDA           int    // version that the driver supports, as CUDA counts

	// Unknown says what could not be found out, and why.
	Unknown []string
}

// Source is a device that CUDA tells of: cuda/driver's.
type Source interface {
	Info() cuda.Info
	PCIAddress() (string, error)
	UUID() (string, error)
}

// Describe returns what CUDA and the system say of a device, and beside it what
// NVML does, where the library is there: lib may be nil, with why it is. The
// device is found by its PCI address, and a slice of a GPU (MIG) by its UUID:
// name, UUID and memory are then the slice's, all else the GPU's.
func Describe(s Source, lib *Library, why error) Facts { return describe(s, lib, why, systemFiles) }

func describe(s Source, lib *Library, why error, sys string) Facts {
	info := s.Info()
	f := Facts{Name: info.Name, NUMANode: -1, OwnNode: -1, Memory: info.Memory, CUDA: info.Driver}
	var err error
	if f.PCI, err = s.PCIAddress(); err != nil {
		f.Unknown = append(f.Unknown, fmt.Sprintf("PCI address, and what goes by it: %v", err))
	} else if lib != nil {
		d, err := lib.Find(f.PCI)
		if err == nil {
			f := d.Facts()
			d.slice(&f, s)
			return f
		}
		why = err
	}
	if f.UUID, err = s.UUID(); err != nil {
		f.Unknown = append(f.Unknown, fmt.Sprintf("UUID: %v", err))
	}
	if f.PCI != "" {
		f.surroundings(sys)
		f.Unknown = append(f.Unknown, fmt.Sprintf("what NVML alone tells: %v", why))
	}
	return f
}

// Write prints the facts, one a line.
func (f Facts) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "name    %s\nUUID    %s\nPCI     %s\nNUMA    %d\nmemory  %d MiB\nBAR1    %d MiB\nlinks   %d\nNICs    %s\n"+
		"clocks  SM %d of %d MHz, memory %d of %d MHz\nECC     %d uncorrected\ndriver  %s (CUDA %d.%d)\n",
		f.Name, f.identity(), f.PCI, f.NUMANode, f.Memory>>20, f.BAR1>>20, len(f.Links), near(f.NICs), f.Now.SM, f.Max.SM, f.Now.Memory,
		f.Max.Memory, f.UncorrectedECC, f.Driver, f.CUDA/1000, f.CUDA%1000/10)
	for _, u := range f.Unknown {
		if err == nil {
			_, err = fmt.Fprintf(w, "unknown %s\n", u)
		}
	}
	return err
}

func (f Facts) identity() string {
	if f.SliceOf == "" {
		return f.UUID
	}
	return f.UUID + ", a slice of " + f.SliceOf
}

// near names NICs with their distances.
func near(nics []NIC) string {
	var names []string
	for _, n := range nics {
		names = append(names, fmt.Sprintf("%s (%s)", n.Name, n.Distance))
	}
	if names == nil {
		return "none"
	}
	return strings.Join(names, ", ")
}
