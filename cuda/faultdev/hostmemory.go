package faultdev

import "github.com/kvgate/kvgate/cuda"

var (
	_ cuda.Managed    = (*device)(nil)
	_ cuda.HostMemory = (*device)(nil)
)

func (f *device) AllocManaged(size uint64, o cuda.AllocOptions) (cuda.ManagedBuffer, error) {
	if err := f.method("AllocManaged"); err != nil {
		return cuda.ManagedBuffer{}, err
	}
	d, ok := f.d.(cuda.Managed)
	if !ok {
		return cuda.ManagedBuffer{}, lacks("AllocManaged")
	}
	return d.AllocManaged(size, o)
}

func (f *device) FreeManaged(b cuda.ManagedBuffer) error {
	if err := f.method("FreeManaged"); err != nil {
		return err
	}
	d, ok := f.d.(cuda.Managed)
	if !ok {
		return lacks("FreeManaged")
	}
	return d.FreeManaged(b)
}

func (f *device) RegisterHost(b []byte) (cuda.PinnedBuffer, error) {
	if err := f.method("RegisterHost"); err != nil {
		return cuda.PinnedBuffer{}, err
	}
	d, ok := f.d.(cuda.HostMemory)
	if !ok {
		return cuda.PinnedBuffer{}, lacks("RegisterHost")
	}
	return d.RegisterHost(b)
}

func (f *device) UnregisterHost(b cuda.PinnedBuffer) error {
	if err := f.method("UnregisterHost"); err != nil {
		return err
	}
	d, ok := f.d.(cuda.HostMemory)
	if !ok {
		return lacks("UnregisterHost")
	}
	return d.UnregisterHost(b)
}

func (f *device) CopyIn(s cuda.Stream, dst cuda.DevicePtr, src []byte) error {
	if err := f.method("CopyIn"); err != nil {
		return err
	}
	d, ok := f.d.(cuda.HostMemory)
	if !ok {
		return lacks("CopyIn")
	}
	return d.CopyIn(s, dst, src)
}

func (f *device) CopyOut(s cuda.Stream, dst []byte, src cuda.DevicePtr) error {
	if err := f.method("CopyOut"); err != nil {
		return err
	}
	d, ok := f.d.(cuda.HostMemory)
	if !ok {
		return lacks("CopyOut")
	}
	return d.CopyOut(s, dst, src)
}
