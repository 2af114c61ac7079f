package decode

import (
	"sync/atomic"

	"github.com/kvgate/kvgate/cuda"
)

// counted is a device whose crossings on the hot path are counted.
type counted struct {
	cuda.Device
	submits, polls atomic.Uint64
}

// count returns a device that counts, which is a cuda.Watcher and a
// cuda.RDMADevice if dev is.
func count(dev cuda.Device) (*counted, cuda.Device) {
	c := &counted{Device: dev}
	w, watches := dev.(cuda.Watcher)
	r, rdma := dev.(cuda.RDMADevice)
	switch {
	case watches && rdma:
		return c, struct {
			*counted
			cuda.Watcher
			cuda.RDMADevice
		}{c, w, r}
	case watches:
		return c, struct {
			*counted
			cuda.Watcher
		}{c, w}
	case rdma:
		return c, struct {
			*counted
			cuda.RDMADevice
		}{c, r}
	}
	return c, c
}

func (c *counted) Submit(b *cuda.Batch) error {
	c.submits.Add(1)
	return c.Device.Submit(b)
}

func (c *counted) Poll(marks []cuda.Mark) error {
	c.polls.Add(1)
	return c.Device.Poll(marks)
}
