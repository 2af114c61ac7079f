package libnixl

import (
	"encoding/binary"
	"fmt"
	"strings"
	"sync"

	"github.com/kvgate/kvgate/nixl"
)

// A load that fails at a region makes the library drop the peer, whatever is in
// flight with it, and forget its connections without closing them: UCX then
// refuses every other blob of the name (nixlAgentData::loadRemoteSections and
// nixlUcxEngine::loadRemoteConnInfo of NIXL 1.5). So what makes a load fail is
// found here first, and after one that failed all the same the peer gets another
// name with the library.

// filled returns a blob without its sections that have no regions. The library
// fails at those, but writes them for memory that it could not register.
func (at offsets) filled(blob []byte) []byte {
	if len(at.empty) == 0 {
		return blob
	}
	out := append(make([]byte, 0, len(blob)), blob[:at.sections]...)
	n := binary.NativeEndian.Uint64(blob[at.sections:])
	out = binary.NativeEndian.AppendUint64(out, n-uint64(len(at.empty)))
	from := at.sections + 8
	for _, e := range at.empty {
		out = append(out, blob[from:e[0]]...)
		from = e[1]
	}
	return append(out, blob[from:]...)
}

// loadable refuses a blob at whose regions the library would fail: of a backend
// that is here, but not connected with the peer's, or twice with two keys.
func (a *Agent) loadable(op string, m *Metadata, reached map[string]bool) error {
	here := map[string]bool{}
	for _, b := range a.allBackends() {
		here[b.config.Plugin] = true
	}
	keys := make(map[keyOf]string, len(m.Regions))
	for _, r := range m.Regions {
		if here[r.Backend] && !reached[r.Backend] {
			return nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "%s of backend %s, which has no connection", r.Region, r.Backend)
		}
		k := keyOf{r.Backend, r.Region}
		if old, twice := keys[k]; twice && old != string(r.Key) {
			return nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "%s has two keys of backend %s", r.Region, r.Backend)
		}
		keys[k] = string(r.Key)
	}
	return nil
}

// risks reports whether the library has keys to load of which nobody knows
// whether they are as they were made.
func (r *remote) risks(m *Metadata, keys map[keyOf]string) bool {
	if m.sealed {
		return false
	}
	for k := range keys {
		if _, known := r.keys[k]; !known {
			return true
		}
	}
	return false
}

func refuseRisk(op, peer string, busy int) error {
	return nixl.Refuse(op, peer, nixl.ErrBusy, "more memory, without a checksum, and %d transfers in flight", busy)
}

// load makes the library load a blob of p. Where that fails the peer is known no
// more, unless the library still knows it and it was known before. The caller
// holds peersMu.
func (a *Agent) load(op string, p nixl.Peer, m *Metadata, anew bool) error {
	as := a.aliases.of(p.Name)
	name, s, err := a.d.load(a.h, renamed(m.blob, as))
	if err == nil && s == statusOK && name != as {
		err = nixl.Refuse(op, p.Name, nixl.ErrInvalid, "the library reads the name %q", name)
	}
	if err = failed(op, p.Name, s, err); err == nil {
		return nil
	}
	if left, e := a.d.check(a.h, as, nixl.DRAM, nil); !anew && e == nil && left == statusOK {
		a.mu.Lock()
		a.peers.Found(p)
		a.mu.Unlock()
		return err
	}
	a.mu.Lock()
	a.peers.Lost(p)
	_, _, busy := a.peers.Current(p.Name)
	a.mu.Unlock()
	if busy == 0 {
		a.forget(p.Name) // the library may have read a part
	}
	a.aliases.next(p.Name)
	return err
}

// renamed returns a blob, which is well formed, with that name of the agent.
func renamed(blob []byte, name string) []byte {
	const at = len("nixlSerDes|Agent")
	n := int(binary.NativeEndian.Uint64(blob[at:]))
	if string(blob[at+8:at+8+n]) == name {
		return blob
	}
	out := append(make([]byte, 0, len(blob)+len(name)), blob[:at]...)
	out = binary.NativeEndian.AppendUint64(out, uint64(len(name)))
	return append(append(out, name...), blob[at+8+n:]...)
}

// aliases are the names under which the library knows peers, where those differ
// from their own. The other side does not see them.
type aliases struct {
	mu     sync.RWMutex
	failed map[string]int // loads
}

// aliasMark is in no name of an agent that is taken.
const aliasMark = "\x1e"

// of returns the name under which the library knows a peer.
func (x *aliases) of(name string) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if n := x.failed[name]; n > 0 {
		return fmt.Sprint(name, aliasMark, n)
	}
	return name
}

// next gives a peer a name that the library has not met.
func (x *aliases) next(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.failed == nil {
		x.failed = map[string]int{}
	}
	x.failed[strings.Clone(name)]++
}

// clear takes the names back: the library knows nobody.
func (x *aliases) clear() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.failed = nil
}
