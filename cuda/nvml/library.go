//go:build cgo && linux

package nvml

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Library is NVML, started. Methods are safe for use by several goroutines.
type Library struct {
	nvml nvml.Interface
	sys  string // systemFiles, but in tests
}

// Open starts the system's NVML. Where it can't be had the error is an
// [ErrNoNVML] that says why.
func Open() (*Library, error) { return New(nvml.New()) }

// New starts an NVML, for instance one of go-nvml's mock servers.
func New(i nvml.Interface) (*Library, error) {
	if r := i.Init(); r != nvml.SUCCESS {
		return nil, fmt.Errorf("cuda/nvml: %w: start: %s", ErrNoNVML, name(r))
	}
	return &Library{i, systemFiles}, nil
}

// Close ends NVML. Devices are dead afterwards.
func (l *Library) Close() error {
	if r := l.nvml.Shutdown(); r != nvml.SUCCESS {
		return fmt.Errorf("cuda/nvml: close: %s", name(r))
	}
	return nil
}

// name is of this package's own, since the library's ErrorString needs the
// library.
func name(r nvml.Return) string {
	switch r {
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return "library missing"
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return "driver not loaded"
	case nvml.ERROR_NO_PERMISSION:
		return "no permission"
	case nvml.ERROR_NOT_SUPPORTED:
		return "not supported"
	case nvml.ERROR_FUNCTION_NOT_FOUND:
		return "function missing"
	case nvml.ERROR_NOT_FOUND:
		return "not found"
	case nvml.ERROR_INVALID_ARGUMENT:
		return "invalid argument"
	case nvml.ERROR_GPU_IS_LOST:
		return "the GPU is lost"
	case nvml.ERROR_UNINITIALIZED:
		return "not started"
	}
	return fmt.Sprintf("NVML result %d", int32(r))
}

// Device is a GPU.
type Device struct {
	lib *Library
	dev nvml.Device
	pci string
}

// Count returns the number of devices.
func (l *Library) Count() (int, error) {
	n, r := l.nvml.DeviceGetCount()
	if r != nvml.SUCCESS {
		return 0, fmt.Errorf("cuda/nvml: count devices: %s", name(r))
	}
	return n, nil
}

// At returns the i-th device, which need not be CUDA's.
func (l *Library) At(i int) (*Device, error) {
	d, r := l.nvml.DeviceGetHandleByIndex(i)
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("cuda/nvml: device %d: %s", i, name(r))
	}
	x, err := l.device(d)
	if err != nil {
		return nil, fmt.Errorf("cuda/nvml: device %d: %w", i, err)
	}
	return x, nil
}

// Find returns the device at a PCI address, in the forms of CUDA (0000:01:00.0)
// and NVML (00000000:01:00.0).
func (l *Library) Find(pci string) (*Device, error) {
	n, err := l.Count()
	if err != nil {
		return nil, err
	}
	none := fmt.Errorf("cuda/nvml: none of %d devices is at %s", n, pci)
	for i := range n {
		d, err := l.At(i)
		if err != nil { // it may be lost, and the others well
			none = fmt.Errorf("%w; %w", none, err)
			continue
		}
		if short(d.pci) == short(pci) {
			return d, nil
		}
	}
	return nil, none
}

// short is an address with the domain that CUDA prints: four digits.
func short(pci string) string {
	pci = strings.ToLower(pci)
	if domain, rest, ok := strings.Cut(pci, ":"); ok && len(domain) > 4 {
		return domain[len(domain)-4:] + ":" + rest
	}
	return pci
}

func (l *Library) device(d nvml.Device) (*Device, error) {
	p, r := d.GetPciInfo()
	if r != nvml.SUCCESS {
		return nil, fmt.Errorf("PCI address: %s", name(r))
	}
	return &Device{l, d, busID(p)}, nil
}

func busID(p nvml.PciInfo) string {
	var b []byte
	for _, c := range p.BusId {
		b = append(b, byte(c))
	}
	if i := bytes.IndexByte(b, 0); i >= 0 {
		b = b[:i]
	}
	return short(string(b))
}

// PCI returns the device's PCI address, as CUDA prints it.
func (d *Device) PCI() string { return d.pci }

// slice makes the facts of a whole GPU those of a slice, where CUDA's device is
// one: CUDA tells the slice's UUID and memory, with the address of the GPU.
func (d *Device) slice(f *Facts, s Source) {
	if mode, _, r := d.dev.GetMigMode(); r != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return // CUDA devices are whole GPUs
	}
	f.SliceOf = f.UUID
	f.Memory = s.Info().Memory
	uuid, err := s.UUID()
	if err != nil {
		f.UUID = ""
		f.Unknown = append(f.Unknown, fmt.Sprintf("UUID of the slice: %v", err))
		return
	}
	// CUDA's UUIDs are bytes, without the word before them.
	_, bytes, _ := strings.Cut(uuid, "-")
	f.UUID = "MIG-" + bytes
	n, ok := ask(f, "slices", d.dev.GetMaxMigDeviceCount)
	if !ok {
		return
	}
	for i := range n {
		m, r := d.dev.GetMigDeviceHandleByIndex(i)
		if r != nvml.SUCCESS {
			continue // no slice, or none that this process may see
		}
		if u, r := m.GetUUID(); r != nvml.SUCCESS || u != f.UUID {
			continue
		}
		set(f, &f.Name, "name of the slice", m.GetName)
		if memory, ok := ask(f, "memory of the slice", m.GetMemoryInfo); ok {
			f.Memory = memory.Total
		}
		return
	}
	f.Unknown = append(f.Unknown, fmt.Sprintf("the slice's name: none of %d slices is %s", n, f.UUID))
}

// asked is what a question to NVML found out.
func asked[T any](f *Facts, what string, v T, r nvml.Return) (T, bool) {
	if r != nvml.SUCCESS {
		f.Unknown = append(f.Unknown, what+": "+name(r))
	}
	return v, r == nvml.SUCCESS
}

// Facts asks for all there is to know. What this GPU or driver does not tell is
// in [Facts.Unknown].
func (d *Device) Facts() Facts {
	f := Facts{PCI: d.pci, NUMANode: -1, OwnNode: -1}
	set(&f, &f.Name, "name", d.dev.GetName)
	set(&f, &f.UUID, "UUID", d.dev.GetUUID)
	set(&f, &f.Driver, "driver version", d.lib.nvml.SystemGetDriverVersion)
	set(&f, &f.CUDA, "CUDA version", d.lib.nvml.SystemGetCudaDriverVersion)
	// NVML tells of GPUs that are NUMA nodes, no more: others say not supported.
	if node, r := d.dev.GetNumaNodeId(); r == nvml.SUCCESS {
		f.OwnNode = node
	} else if r != nvml.ERROR_NOT_SUPPORTED {
		f.Unknown = append(f.Unknown, "own NUMA node: "+name(r))
	}
	set(&f, &f.UncorrectedECC, "ECC errors", func() (uint64, nvml.Return) {
		return d.dev.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	})
	if m, ok := ask(&f, "memory", d.dev.GetMemoryInfo); ok {
		f.Memory = m.Total
	}
	if m, ok := ask(&f, "BAR1", d.dev.GetBAR1MemoryInfo); ok {
		f.BAR1 = m.Bar1Total
	}
	for _, c := range []struct {
		what string
		kind nvml.ClockType
		now  *uint32
		max  *uint32
	}{
		{"SM clock", nvml.CLOCK_SM, &f.Now.SM, &f.Max.SM},
		{"memory clock", nvml.CLOCK_MEM, &f.Now.Memory, &f.Max.Memory},
	} {
		set(&f, c.now, c.what, func() (uint32, nvml.Return) { return d.dev.GetClockInfo(c.kind) })
		set(&f, c.max, "greatest "+c.what, func() (uint32, nvml.Return) { return d.dev.GetMaxClockInfo(c.kind) })
	}
	d.links(&f)
	f.surroundings(d.lib.sys)
	return f
}

func ask[T any](f *Facts, what string, question func() (T, nvml.Return)) (T, bool) {
	v, r := question()
	return asked(f, what, v, r)
}

func set[T any](f *Facts, to *T, what string, question func() (T, nvml.Return)) {
	if v, ok := ask(f, what, question); ok {
		*to = v
	}
}

// links asks after each NVLink until the device says that it has no more.
func (d *Device) links(f *Facts) {
	for i := range nvml.NVLINK_MAX_LINKS {
		state, r := d.dev.GetNvLinkState(i)
		if r == nvml.ERROR_INVALID_ARGUMENT || r == nvml.ERROR_NOT_SUPPORTED && i > 0 {
			return // no such link
		}
		if i == 0 && r == nvml.ERROR_NOT_SUPPORTED {
			asked(f, "NVLinks", state, r)
			return
		}
		if _, ok := asked(f, fmt.Sprintf("NVLink %d", i), state, r); !ok {
			continue
		}
		if state != nvml.FEATURE_ENABLED {
			continue
		}
		l := Link{Index: i}
		if p, ok := ask(f, fmt.Sprintf("other end of NVLink %d", i), func() (nvml.PciInfo, nvml.Return) {
			return d.dev.GetNvLinkRemotePciInfo(i)
		}); ok {
			l.Remote = busID(p)
		}
		f.Links = append(f.Links, l)
	}
}
