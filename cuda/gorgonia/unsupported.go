//go:build gorgonia

package gorgonia

import "github.com/kvgate/kvgate/cuda"

var _ cuda.IPC = (*Device)(nil)

// lacks refuses what gorgonia.org/cu has no function for.
func (d *Device) lacks(op, symbol string) error {
	return d.within(op, func() error {
		return refuse(cuda.ErrNotSupported, op, "gorgonia.org/cu has no %s", symbol)
	})
}

// ExportMemory fails: gorgonia.org/cu shares no memory.
func (d *Device) ExportMemory(cuda.DevicePtr) (cuda.MemoryHandle, error) {
	return cuda.MemoryHandle{}, d.lacks("export memory", "cuIpcGetMemHandle")
}

// OpenMemory fails: gorgonia.org/cu shares no memory.
func (d *Device) OpenMemory(cuda.MemoryHandle) (cuda.DevicePtr, error) {
	return 0, d.lacks("open memory", "cuIpcOpenMemHandle")
}

// CloseMemory fails: gorgonia.org/cu shares no memory.
func (d *Device) CloseMemory(cuda.DevicePtr) error {
	return d.lacks("close memory", "cuIpcCloseMemHandle")
}
