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
	return nixl.Refuse(op, peer, sentinel(s), "%s", s)
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

// classify makes a typed error of a status that the library gave about a peer.
//
// The C ABI has one code, -2, for a cancelled request, a disconnect, a request
// that was posted already, one that was not, a mismatch, what is not allowed or
// not supported, and a failure of the transport; before 1.5 also for what was
// not found. What the binding knows tells most of them apart:
//
//	refused here, before the library is asked: posted already, not posted,
//	closed, unknown or earlier peer, memory that nobody registered, bad lists
//	-2 or -6, and the library has dropped the peer since    ErrDisconnected
//	-2 of a posted request that UCX carries                 ErrDisconnected
//	-6, and the peer is still there                         ErrNoPeer
//	-1                                                      ErrInvalid
//	everything else                                         ErrBackend
//
// Over shared memory there is no connection that could fail: the end of the peer
// shows as an ErrBackend of each post, until the peer is removed.
//
// The library drops a peer when it has seen its connection fail. With
// ErrDisconnected the peer is lost here too, and its generation over. None of
// these errors is quiet.
func (a *Agent) classify(op string, p nixl.Peer, s status) error {
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
	backends := a.Backends()
	handles := make([]handle, len(backends))
	for i, b := range backends {
		handles[i] = b.h
	}
	i, s, callErr := a.d.backendOf(a.h, t.req, handles)
	if callErr != nil || s != statusOK || i < 0 || backends[i].Plugin() != "UCX" {
		return err
	}
	a.mu.Lock()
	a.peers.Lost(t.spec.Peer)
	a.mu.Unlock()
	return &nixl.Error{Op: op, Peer: t.spec.Peer.Name, Err: nixl.ErrDisconnected, Detail: "the connection failed"}
}
