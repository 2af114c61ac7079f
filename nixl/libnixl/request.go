package libnixl

import (
	"github.com/kvgate/kvgate/nixl"
)

// RequestOptions are what a request takes beside its Spec. The zero value
// means none.
type RequestOptions struct {
	// Backend, if not nil, carries the transfer; else the library chooses.
	Backend *Backend
	// Custom is for the backend; GPUNETIO takes the CUDA stream here.
	Custom []byte
	// KeepEntries stops the library from joining entries of prepared lists
	// that lie beside each other.
	KeepEntries bool
}

// native makes the library's options, or nil where there are none.
func (r *RequestOptions) native(a *Agent, op string) (handle, error) {
	if r.Backend == nil && len(r.Custom) == 0 && !r.KeepEntries {
		return nil, nil
	}
	o := callOptions{custom: r.Custom, skipMerge: r.KeepEntries}
	if r.Backend != nil {
		o.backends = []handle{r.Backend.h}
	}
	opt, s, err := a.d.options(&o)
	return opt, failed(op, "", s, err)
}

// Cost asks the backend how long the transfer takes. Not all can tell.
func (t *Transfer) Cost() (Cost, error) {
	var c Cost
	err := t.ask("cost", func(h, req handle) (s status, err error) {
		c, s, err = t.a.d.cost(h, req)
		return s, err
	})
	return c, err
}

// Telemetry returns what the library measured of the transfer, which must be
// done. It needs Config.Telemetry.
func (t *Transfer) Telemetry() (Telemetry, error) {
	var m Telemetry
	err := t.ask("telemetry", func(h, req handle) (s status, err error) {
		m, s, err = t.a.d.telemetry(h, req)
		if t.posts == 0 && err == nil && s != statusNoTelemetry {
			err = nixl.Refuse("telemetry", t.spec.Peer.Name, nixl.ErrNotPosted, "")
		}
		return s, err
	})
	return m, err
}

// Backend returns the backend that carries the transfer.
func (t *Transfer) Backend() (*Backend, error) {
	all := t.a.Backends()
	handles := make([]handle, len(all))
	for i, b := range all {
		handles[i] = b.h
	}
	var i int
	err := t.ask("backend", func(h, req handle) (s status, err error) {
		i, s, err = t.a.d.backendOf(h, req, handles)
		return s, err
	})
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, nixl.Refuse("backend", t.spec.Peer.Name, nixl.ErrBackend, "one that the agent did not make")
	}
	return all[i], nil
}

// ask calls the library about the native request, which no other goroutine may
// release meanwhile.
func (t *Transfer) ask(op string, fn func(agent, req handle) (status, error)) error {
	if err := t.a.enter(op); err != nil {
		return err
	}
	defer t.a.leave()
	t.a.mu.Lock()
	defer t.a.mu.Unlock()
	peer := t.spec.Peer.Name
	switch {
	case t.closed:
		return nixl.Refuse(op, peer, nixl.ErrClosed, "transfer")
	case t.req == nil:
		return nixl.Refuse(op, peer, nixl.ErrStalePeer, "peer or memory has changed since the transfer was made")
	}
	s, err := fn(t.a.h, t.req)
	if err == nil && s == statusNoTelemetry {
		return nixl.Refuse(op, peer, nixl.ErrUnavailable, "telemetry is off")
	}
	if err == nil && s == statusInProgress {
		return nixl.Refuse(op, peer, nixl.ErrBusy, "not done")
	}
	return failed(op, peer, s, err)
}
