package faultdev

import "github.com/kvgate/kvgate/cuda"

var _ cuda.IPC = (*device)(nil)

// lacks is the error of what the wrapped device does not implement.
func lacks(method string) error {
	return &cuda.Error{Code: cuda.ErrNotSupported, Op: method, Detail: "the wrapped device lacks it"}
}

func (f *device) ExportMemory(p cuda.DevicePtr) (cuda.MemoryHandle, error) {
	if err := f.method("ExportMemory"); err != nil {
		return cuda.MemoryHandle{}, err
	}
	d, ok := f.d.(cuda.IPC)
	if !ok {
		return cuda.MemoryHandle{}, lacks("ExportMemory")
	}
	return d.ExportMemory(p)
}

func (f *device) OpenMemory(h cuda.MemoryHandle) (cuda.DevicePtr, error) {
	if err := f.method("OpenMemory"); err != nil {
		return 0, err
	}
	d, ok := f.d.(cuda.IPC)
	if !ok {
		return 0, lacks("OpenMemory")
	}
	return d.OpenMemory(h)
}

func (f *device) CloseMemory(p cuda.DevicePtr) error {
	if err := f.method("CloseMemory"); err != nil {
		return err
	}
	d, ok := f.d.(cuda.IPC)
	if !ok {
		return lacks("CloseMemory")
	}
	return d.CloseMemory(p)
}
