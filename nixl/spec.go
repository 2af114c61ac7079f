package nixl

import (
	"math"
	"slices"
)

// Check returns what is wrong with the spec in itself: no entries, lists or
// entries of different lengths, an entry without bytes or beyond the address
// space, an unknown operation or memory type. The error is an [ErrInvalid]
// that names the entry. Whether memory is registered and the peer known is for
// the agent to say.
func (s *Spec) Check() error {
	refuse := func(format string, args ...any) error {
		return Refuse("transfer", s.Peer.Name, ErrInvalid, format, args...)
	}
	switch {
	case s.Op > Write:
		return refuse("operation %d", uint8(s.Op))
	case s.LocalMemory > File:
		return refuse("local %s", s.LocalMemory)
	case s.RemoteMemory > File:
		return refuse("remote %s", s.RemoteMemory)
	case len(s.Local) != len(s.Remote):
		return refuse("%d local entries and %d remote ones", len(s.Local), len(s.Remote))
	case len(s.Local) == 0:
		return refuse("no entries")
	}
	var total uint64
	for i := range s.Local {
		l, r := s.Local[i], s.Remote[i]
		if l.Len != r.Len {
			return refuse("entry %d: %d bytes local and %d remote", i, l.Len, r.Len)
		}
		if detail := l.check(); detail != "" {
			return refuse("local entry %d (%s): %s", i, l, detail)
		}
		if detail := r.check(); detail != "" {
			return refuse("remote entry %d (%s): %s", i, r, detail)
		}
		if l.Len > math.MaxUint64-total {
			return refuse("entry %d: more bytes in all than can be counted", i)
		}
		total += l.Len
	}
	return nil
}

// Bytes returns how many bytes the transfer moves.
func (s *Spec) Bytes() uint64 {
	var n uint64
	for _, d := range s.Local {
		n += d.Len
	}
	return n
}

// Clone returns a copy that shares nothing with s.
func (s *Spec) Clone() Spec {
	c := *s
	c.Local, c.Remote = slices.Clone(s.Local), slices.Clone(s.Remote)
	c.Notification = slices.Clone(s.Notification)
	return c
}
