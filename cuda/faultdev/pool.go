package faultdev

import "github.com/kvgate/kvgate/cuda"

var _ cuda.StreamAllocator = (*device)(nil)

// allocator asks about a method of [cuda.StreamAllocator] and returns the device
// below as one, which it may not be.
func (f *device) allocator(name string) (cuda.StreamAllocator, error) {
	if err := f.method(name); err != nil {
		return nil, err
	}
	if a, ok := f.d.(cuda.StreamAllocator); ok {
		return a, nil
	}
	return nil, lacks(name)
}

func (f *device) AllocAsync(s cuda.Stream, size uint64, p cuda.Pool, o cuda.AllocOptions) (cuda.DevicePtr, error) {
	a, err := f.allocator("AllocAsync")
	if err != nil {
		return 0, err
	}
	return a.AllocAsync(s, size, p, o)
}

func (f *device) FreeAsync(s cuda.Stream, ptr cuda.DevicePtr) error {
	a, err := f.allocator("FreeAsync")
	if err != nil {
		return err
	}
	return a.FreeAsync(s, ptr)
}

func (f *device) NewPool(name string) (cuda.Pool, error) {
	a, err := f.allocator("NewPool")
	if err != nil {
		return 0, err
	}
	return a.NewPool(name)
}

func (f *device) DestroyPool(p cuda.Pool) error {
	a, err := f.allocator("DestroyPool")
	if err != nil {
		return err
	}
	return a.DestroyPool(p)
}

func (f *device) PoolAttribute(p cuda.Pool, at cuda.PoolAttribute) (uint64, error) {
	a, err := f.allocator("PoolAttribute")
	if err != nil {
		return 0, err
	}
	return a.PoolAttribute(p, at)
}

func (f *device) SetPoolAttribute(p cuda.Pool, at cuda.PoolAttribute, v uint64) error {
	a, err := f.allocator("SetPoolAttribute")
	if err != nil {
		return err
	}
	return a.SetPoolAttribute(p, at, v)
}

func (f *device) TrimPool(p cuda.Pool, keep uint64) error {
	a, err := f.allocator("TrimPool")
	if err != nil {
		return err
	}
	return a.TrimPool(p, keep)
}
