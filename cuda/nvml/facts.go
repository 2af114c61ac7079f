package nvml

import (
	"errors"
	"fmt"
	"io"

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
	PCI      string // address, as 0000:01:00.0
	NUMANode int    // -1: unknown
	Memory   uint64 // bytes
	BAR1     uint64 // bytes: the most that can be registered with NICs at a time; 0: unknown
	Links    []Link
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

// Describe returns what CUDA says of a device, and beside it what NVML does,
// where the library is there: lib may be nil, with why it is. The device is
// found by its PCI address.
func Describe(info cuda.Info, pci string, lib *Library, why error) Facts {
	f := Facts{Name: info.Name, PCI: pci, NUMANode: -1, Memory: info.Memory, CUDA: info.Driver}
	if lib == nil {
		f.Unknown = append(f.Unknown, fmt.Sprintf("all but what CUDA tells: %v", why))
		return f
	}
	d, err := lib.Find(pci)
	if err != nil {
		f.Unknown = append(f.Unknown, fmt.Sprintf("all but what CUDA tells: %v", err))
		return f
	}
	return d.Facts()
}

// Write prints the facts, one a line.
func (f Facts) Write(w io.Writer) error {
	_, err := fmt.Fprintf(w, "name    %s\nUUID    %s\nPCI     %s\nNUMA    %d\nmemory  %d MiB\nBAR1    %d MiB\nlinks   %d\n"+
		"clocks  SM %d of %d MHz, memory %d of %d MHz\nECC     %d uncorrected\ndriver  %s (CUDA %d.%d)\n",
		f.Name, f.UUID, f.PCI, f.NUMANode, f.Memory>>20, f.BAR1>>20, len(f.Links), f.Now.SM, f.Max.SM, f.Now.Memory,
		f.Max.Memory, f.UncorrectedECC, f.Driver, f.CUDA/1000, f.CUDA%1000/10)
	for _, u := range f.Unknown {
		if err == nil {
			_, err = fmt.Fprintf(w, "unknown %s\n", u)
		}
	}
	return err
}
