package cuda

import "errors"

// Extent returns the memory that p lies in, as [Device.AllocRange] does, and as much
// of what adjoins it upwards as it takes to hold size bytes from p on. Memory that
// was mapped piece by piece, as PyTorch's expandable segments are, is one range
// of addresses, but the driver tells of a piece at a time. Where the pieces end
// before size bytes the extent is shorter: the caller compares.
func Extent(d Device, p DevicePtr, size uint64) (base DevicePtr, extent uint64, err error) {
	base, extent, err = d.AllocRange(p)
	if err != nil {
		return 0, 0, err
	}
	for extent-uint64(p-base) < size {
		next, n, err := d.AllocRange(base + DevicePtr(extent))
		switch {
		case errors.Is(err, ErrNotFound) || err == nil && next != base+DevicePtr(extent):
			return base, extent, nil
		case err != nil:
			return 0, 0, err
		}
		extent += n
	}
	return base, extent, nil
}
