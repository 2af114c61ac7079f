package faultdev

import "github.com/kvgate/kvgate/cuda"

var _ cuda.Peers = (*device)(nil)

func (f *device) wrapped() cuda.Device { return f.d }

// peers returns what the wrapped device does with others, and the other as it
// knows it.
func (f *device) peers(method string, other cuda.Device) (cuda.Peers, cuda.Device, error) {
	if err := f.method(method); err != nil {
		return nil, nil, err
	}
	d, ok := f.d.(cuda.Peers)
	if !ok {
		return nil, nil, lacks(method)
	}
	for {
		w, ok := other.(interface{ wrapped() cuda.Device })
		if !ok {
			return d, other, nil
		}
		other = w.wrapped()
	}
}

func (f *device) CanAccess(other cuda.Device) (bool, error) {
	d, other, err := f.peers("CanAccess", other)
	if err != nil {
		return false, err
	}
	return d.CanAccess(other)
}

func (f *device) EnableAccess(other cuda.Device) error {
	d, other, err := f.peers("EnableAccess", other)
	if err != nil {
		return err
	}
	return d.EnableAccess(other)
}

func (f *device) DisableAccess(other cuda.Device) error {
	d, other, err := f.peers("DisableAccess", other)
	if err != nil {
		return err
	}
	return d.DisableAccess(other)
}

func (f *device) ImportEvent(other cuda.Device, e cuda.Event) (cuda.Event, error) {
	d, other, err := f.peers("ImportEvent", other)
	if err != nil {
		return 0, err
	}
	return d.ImportEvent(other, e)
}
