//go:build cgo && linux

package nvml

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// complete adds to a mock device what go-nvml's servers leave out.
func complete(d *server.Device, i int) {
	d.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pciInfo("0000" + d.PciBusID), nvml.SUCCESS }
	d.GetBAR1MemoryInfoFunc = func() (nvml.BAR1Memory, nvml.Return) {
		return nvml.BAR1Memory{Bar1Total: 256 << 30}, nvml.SUCCESS
	}
	d.GetNumaNodeIdFunc = func() (int, nvml.Return) { return i / 4, nvml.SUCCESS }
	d.GetClockInfoFunc = func(k nvml.ClockType) (uint32, nvml.Return) { return 1000 + uint32(k), nvml.SUCCESS }
	d.GetMaxClockInfoFunc = func(k nvml.ClockType) (uint32, nvml.Return) { return 2000 + uint32(k), nvml.SUCCESS }
	d.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) { return 3, nvml.SUCCESS }
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		switch {
		case link >= 6:
			return 0, nvml.ERROR_INVALID_ARGUMENT
		case link%2 == 1:
			return nvml.FEATURE_DISABLED, nvml.SUCCESS
		}
		return nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	d.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
		return pciInfo("00000000:C5:00.0"), nvml.SUCCESS
	}
}

func pciInfo(address string) (p nvml.PciInfo) {
	for i, c := range address {
		p.BusId[i] = int8(c)
	}
	return p
}

func open(t *testing.T, s *server.Server) *Library {
	for i, d := range s.Devices {
		complete(d.(*server.Device), i)
	}
	l, err := New(s)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	l.sys = t.TempDir() // one NIC beside each device
	for i, d := range s.Devices {
		dir := filepath.Join(l.sys, "devices", fmt.Sprintf("pci%d", i), short("0000"+d.(*server.Device).PciBusID))
		require.NoError(t, os.MkdirAll(dir, 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, "numa_node"), []byte(fmt.Sprint(i/4)), 0o666))
		bus, card := filepath.Join(l.sys, "bus/pci/devices"), filepath.Join(l.sys, "class/infiniband", fmt.Sprintf("mlx5_%d", i))
		require.NoError(t, os.MkdirAll(bus, 0o777))
		require.NoError(t, os.MkdirAll(card, 0o777))
		require.NoError(t, os.Symlink(dir, filepath.Join(bus, filepath.Base(dir))))
		require.NoError(t, os.Symlink(dir, filepath.Join(card, "device")))
	}
	return l
}

func TestFacts(t *testing.T) {
	for name, c := range map[string]struct {
		server *server.Server
		says   string
		memory uint64
	}{
		"DGX A100": {dgxa100.New(), "A100", 40 << 30},
		"DGX H200": {dgxh200.New(), "H200", 144384 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			l := open(t, c.server)
			n, err := l.Count()
			require.NoError(t, err)
			require.Equal(t, 8, n)
			for i := range n {
				d, err := l.At(i)
				require.NoError(t, err)
				again, err := l.Find(strings.ToUpper(d.PCI()))
				require.NoError(t, err)
				f := again.Facts()
				require.Empty(t, f.Unknown)
				require.Contains(t, f.Name, c.says)
				require.Regexp(t, "^GPU-", f.UUID)
				require.Equal(t, d.PCI(), f.PCI)
				require.Equal(t, i/4, f.NUMANode)
				require.Equal(t, i/4, f.OwnNode)
				require.Len(t, f.NICs, 8)
				require.Equal(t, fmt.Sprintf("mlx5_%d", i), f.NICs[0].Name)
				require.Equal(t, NODE, f.NICs[3].Distance)
				require.Equal(t, SYS, f.NICs[4].Distance)
				require.Equal(t, c.memory, f.Memory)
				require.Equal(t, uint64(256<<30), f.BAR1)
				require.Equal(t, []Link{{0, "0000:c5:00.0"}, {2, "0000:c5:00.0"}, {4, "0000:c5:00.0"}}, f.Links)
				require.Equal(t, Clocks{1001, 1002}, f.Now)
				require.Equal(t, Clocks{2001, 2002}, f.Max)
				require.Equal(t, uint64(3), f.UncorrectedECC)
				require.NotEmpty(t, f.Driver)
				require.Positive(t, f.CUDA)
				var w strings.Builder
				require.NoError(t, f.Write(&w))
				require.Contains(t, w.String(), "BAR1    262144 MiB\n")
				require.Contains(t, w.String(), fmt.Sprintf("NICs    mlx5_%d (PIX), ", i))
			}
			_, err = l.Find("0000:ff:1f.7")
			require.ErrorContains(t, err, "none of 8 devices is at 0000:ff:1f.7")
		})
	}
}

// A GPU that is lost does not hide the others, wherever it is in the list, and is
// told of where none is found.
func TestLostGPU(t *testing.T) {
	for name, lose := range map[string]func(s *server.Server, i int){
		"it has no handle": func(s *server.Server, i int) {
			s.DeviceGetHandleByIndexFunc = func(n int) (nvml.Device, nvml.Return) {
				if n == i {
					return nil, nvml.ERROR_GPU_IS_LOST
				}
				return s.Devices[n], nvml.SUCCESS
			}
		},
		"it has no address": func(s *server.Server, i int) {
			s.Devices[i].(*server.Device).GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) {
				return nvml.PciInfo{}, nvml.ERROR_GPU_IS_LOST
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := dgxh200.New()
			l := open(t, s)
			at, err := l.At(5)
			require.NoError(t, err)
			for _, i := range []int{0, 3} {
				lose(s, i)
			}
			found, err := l.Find(at.PCI())
			require.NoError(t, err)
			require.Equal(t, at.PCI(), found.PCI())
			require.Contains(t, describe(source{pci: at.PCI()}, l, nil, l.sys).Name, "H200")
			_, err = l.Find("0000:ff:00.0")
			require.ErrorContains(t, err, "none of 8 devices is at 0000:ff:00.0")
			require.ErrorContains(t, err, "device 3: ")
			require.ErrorContains(t, err, "the GPU is lost")
		})
	}
}

// A link that can't be told of does not hide the others.
func TestUnknownLink(t *testing.T) {
	s := dgxh200.New()
	l := open(t, s)
	d := s.Devices[0].(*server.Device)
	whole := d.GetNvLinkStateFunc
	d.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		if link == 2 {
			return 0, nvml.ERROR_UNKNOWN
		}
		return whole(link)
	}
	dev, err := l.At(0)
	require.NoError(t, err)
	f := dev.Facts()
	require.Equal(t, []Link{{0, "0000:c5:00.0"}, {4, "0000:c5:00.0"}}, f.Links)
	require.Equal(t, []string{"NVLink 2: NVML result 999"}, f.Unknown)
}

// Of a slice of a GPU its own memory and UUID are told, not the GPU's.
func TestSlice(t *testing.T) {
	const slice, other = "MIG-c6d4f1ef-42e4-5de3-91c7-45d71c87eb3f", "MIG-11111111-42e4-5de3-91c7-45d71c87eb3f"
	s := dgxh200.New()
	l := open(t, s)
	d := s.Devices[2].(*server.Device)
	d.MigMode = nvml.DEVICE_MIG_ENABLE
	d.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	uuids := []string{"", other, slice}
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= len(uuids) || uuids[i] == "" {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return &mock.Device{
			GetUUIDFunc: func() (string, nvml.Return) { return uuids[i], nvml.SUCCESS },
			GetNameFunc: func() (string, nvml.Return) { return "NVIDIA H200 MIG 1g.18gb", nvml.SUCCESS },
			GetMemoryInfoFunc: func() (nvml.Memory, nvml.Return) {
				return nvml.Memory{Total: uint64(i) * 9 << 30}, nvml.SUCCESS
			},
		}, nvml.SUCCESS
	}
	whole, err := l.At(2)
	require.NoError(t, err)
	// CUDA prints each UUID as if it were a GPU's.
	src := source{whole.PCI(), "GPU-" + slice[4:]}
	f := describe(src, l, nil, l.sys)
	require.Equal(t, slice, f.UUID)
	require.Equal(t, uint64(18<<30), f.Memory)
	require.Equal(t, "NVIDIA H200 MIG 1g.18gb", f.Name)
	require.Equal(t, whole.Facts().UUID, f.SliceOf)
	require.Equal(t, whole.Facts().Links, f.Links, "the rest is the GPU's")
	require.Empty(t, f.Unknown)
	var w strings.Builder
	require.NoError(t, f.Write(&w))
	require.Contains(t, w.String(), "UUID    "+slice+", a slice of "+f.SliceOf+"\n")

	// What NVML does not know of the slice, CUDA does.
	uuids = uuids[:2]
	f = describe(src, l, nil, l.sys)
	require.Equal(t, "MIG-"+slice[4:], f.UUID)
	require.Equal(t, uint64(5), f.Memory)
	require.Equal(t, []string{"the slice's name: none of 7 slices is " + slice}, f.Unknown)

	f = whole.Facts()
	require.Equal(t, uint64(144384<<20), f.Memory)
	require.Empty(t, f.SliceOf)
}

// What a GPU does not tell leaves the rest as it is.
func TestUnknownFacts(t *testing.T) {
	s := dgxa100.New()
	l := open(t, s)
	d := s.Devices[0].(*server.Device)
	d.GetBAR1MemoryInfoFunc = func() (nvml.BAR1Memory, nvml.Return) { return nvml.BAR1Memory{}, nvml.ERROR_NOT_SUPPORTED }
	d.GetNumaNodeIdFunc = func() (int, nvml.Return) { return 0, nvml.ERROR_FUNCTION_NOT_FOUND }
	d.GetNvLinkStateFunc = func(int) (nvml.EnableState, nvml.Return) { return 0, nvml.ERROR_NOT_SUPPORTED }
	dev, err := l.At(0)
	require.NoError(t, err)
	f := dev.Facts()
	require.Equal(t, []string{"own NUMA node: function missing", "BAR1: not supported", "NVLinks: not supported"}, f.Unknown)
	require.Equal(t, -1, f.OwnNode)
	require.Zero(t, f.NUMANode)
	require.NotZero(t, f.Memory)
}

func TestNoNVML(t *testing.T) {
	s := dgxa100.New()
	s.InitFunc = func() nvml.Return { return nvml.ERROR_LIBRARY_NOT_FOUND }
	l, err := New(s)
	require.Nil(t, l)
	require.ErrorIs(t, err, ErrNoNVML)
	require.EqualError(t, err, "cuda/nvml: no usable NVML: start: library missing")

	l = open(t, dgxh200.New())
	f := describe(source{"0000:ff:00.0", "GPU-1"}, l, nil, l.sys)
	require.Contains(t, f.Unknown[1], "none of 8 devices")
	require.Equal(t, "a GPU", f.Name)
	at, err := l.At(2)
	require.NoError(t, err)
	require.Contains(t, describe(source{pci: at.PCI()}, l, nil, l.sys).Name, "H200")
}

// victim is a device that is told of its death.
type victim struct {
	clk  clock.Clock
	code atomic.Int32
	why  atomic.Value
}

func (v *victim) Clock() clock.Clock { return v.clk }
func (v *victim) Kill(c cuda.Code, why string) error {
	v.why.Store(why)
	v.code.Store(int32(c))
	return nil
}

func TestWatch(t *testing.T) {
	for name, c := range map[string]struct {
		events []nvml.EventData
		result nvml.Return // after them
		code   cuda.Code   // 0: it lives
		why    string
	}{
		"Xid of the program's own":   {[]nvml.EventData{{EventType: nvml.EventTypeXidCriticalError, EventData: 31}}, nvml.ERROR_TIMEOUT, 0, ""},
		"Xid 79, after one of those": {[]nvml.EventData{{EventType: nvml.EventTypeXidCriticalError, EventData: 13}, {EventType: nvml.EventTypeXidCriticalError, EventData: 79}}, nvml.ERROR_TIMEOUT, cuda.ErrLaunchFailed, "NVML: Xid 79: the GPU has fallen off the bus"},
		"ECC":                        {[]nvml.EventData{{EventType: nvml.EventTypeDoubleBitEccError}}, nvml.ERROR_TIMEOUT, cuda.ErrECC, "NVML: uncorrected ECC error"},
		"lost":                       {nil, nvml.ERROR_GPU_IS_LOST, cuda.ErrLaunchFailed, "NVML: the GPU is lost"},
	} {
		t.Run(name, func(t *testing.T) {
			s := dgxh200.New()
			l := open(t, s)
			var freed, waits atomic.Int32
			set := &mock.EventSet{
				FreeFunc: func() nvml.Return { freed.Add(1); return nvml.SUCCESS },
				WaitFunc: func(uint32) (nvml.EventData, nvml.Return) {
					if i := int(waits.Add(1)) - 1; i < len(c.events) {
						return c.events[i], nvml.SUCCESS
					}
					return nvml.EventData{}, c.result
				},
			}
			s.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return set, nvml.SUCCESS }
			m := s.Devices[1].(*server.Device)
			m.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0xff, nvml.SUCCESS }
			m.RegisterEventsFunc = func(kinds uint64, _ nvml.EventSet) nvml.Return {
				require.EqualValues(t, 10, kinds)
				return nvml.SUCCESS
			}
			d, err := l.At(1)
			require.NoError(t, err)
			v := &victim{clk: clock.Wall()}
			w, err := d.Watch(v)
			require.NoError(t, err)
			if c.code == 0 {
				require.NoError(t, v.clk.WaitUntil(t.Context(), clock.Func("some waits", func() bool { return waits.Load() > 5 }), clock.Never))
			} else {
				require.NoError(t, v.clk.WaitUntil(t.Context(), clock.Func("death", func() bool { return v.code.Load() != 0 }), clock.Never))
				require.Equal(t, c.why, v.why.Load())
			}
			require.NoError(t, w.Close())
			require.Equal(t, int32(c.code), v.code.Load())
			require.EqualValues(t, 1, freed.Load())
		})
	}
}

func TestWatchUnsupported(t *testing.T) {
	s := dgxa100.New()
	l := open(t, s)
	s.Devices[0].(*server.Device).GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return 0, nvml.SUCCESS }
	d, err := l.At(0)
	require.NoError(t, err)
	_, err = d.Watch(&victim{clk: clock.Wall()})
	require.ErrorIs(t, err, cuda.ErrNotSupported)
}

// The deadly Xids leave a device dead: their errors have to be sticky.
func TestFatalXidsAreSticky(t *testing.T) {
	for x, f := range fatal {
		require.True(t, f.code.Sticky(), "Xid %d", x)
		require.NotEmpty(t, f.text)
	}
}

// This machine's own NVML, where there is one; else the reason.
func TestOpen(t *testing.T) {
	l, err := Open()
	if err != nil {
		require.ErrorIs(t, err, ErrNoNVML)
		return
	}
	n, err := l.Count()
	require.NoError(t, err)
	for i := range n {
		d, err := l.At(i)
		require.NoError(t, err)
		require.NotEmpty(t, d.Facts().Name)
	}
	require.NoError(t, l.Close())
}
