package libnixl

import (
	"errors"

	"github.com/kvgate/kvgate/nixl"
)

// failed makes an error of what the library said to a call that belongs to no
// transfer in flight; it proves that nothing of a transfer was handed over.
func failed(op, peer string, s status, err error) error {
	if err != nil {
		if e := (*nixl.Error)(nil); errors.As(err, &e) {
			return err
		}
		return nixl.Refuse(op, peer, err, "")
	}
	if s >= 0 {
		return nil
	}
	cause := sentinel(s)
	if cause == nixl.ErrNoPeer && peer == "" {
		cause = nixl.ErrInvalid // no peer was asked for
	}
	return nixl.Refuse(op, peer, cause, "%s", s)
}

// sentinel is the error for a code where nothing else is known.
func sentinel(s status) error {
	switch s {
	case statusInvalid:
		return nixl.ErrInvalid
	case statusNotFound:
		return nixl.ErrNoPeer
	}
	return nixl.ErrBackend
}

// classify makes a typed error of a status that the library gave about a peer;
// the package's documentation has the table. The library drops a peer when it
// has seen its connection fail: the peer is then lost here, too.
func (a *Agent) classify(op string, p nixl.Peer, s status) *nixl.Error {
	e := &nixl.Error{Op: op, Peer: p.Name, Err: sentinel(s), Detail: s.String()}
	if (s == statusBackend || s == statusNotFound) && a.vanished(p) {
		e.Err, e.Detail = nixl.ErrDisconnected, "the library has dropped the peer"
	}
	return e
}

// classify is the same for a transfer that failed in flight. UCX fails a
// request that it has accepted for no other reason than its connection, and the
// library does not always notice: it asks the connection, which may learn of it
// after its requests.
func (t *Transfer) classify(op string, s status) error {
	a := t.a
	err := a.classify(op, t.spec.Peer, s)
	if s != statusBackend || errors.Is(err, nixl.ErrDisconnected) || t.spec.Peer == a.self {
		return err
	}
	backends := a.allBackends()
	handles := make([]handle, len(backends))
	for i, b := range backends {
		handles[i] = b.h
	}
	i, s, callErr := a.d.backendOf(a.h, t.req, handles)
	if callErr != nil || s != statusOK || i < 0 || backends[i].config.Plugin != ucxPlugin {
		return err
	}
	a.mu.Lock()
	a.peers.Lost(t.spec.Peer)
	a.mu.Unlock()
	return &nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrDisconnected, Detail: "the connection failed"}
}
