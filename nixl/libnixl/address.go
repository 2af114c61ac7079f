package libnixl

import "github.com/kvgate/kvgate/nixl"

// The first byte of a UCX worker address holds the version of its format in
// these bits. UCX (src/ucp/wireup/address.c, as in the wheel of NIXL 1.5.1) ends
// the process where it does not know the version.
const addressVersion = 0x0f

const ucxPlugin = "UCX"

// ownAddress is how an agent is reached over UCX.
type ownAddress struct {
	version byte        // of the format
	ucx     *ucxAddress // nil: unknown
	// unknown says why UCX's addresses can not be read here: it is of another
	// version than this binding knows, or in unified mode.
	unknown error
}

// checkUCX refuses what UCX can not be trusted with: an address in another format
// than the agent's own, and, where no checksum covers them, an address or keys
// that are not in the form that UCX writes. It returns the address, nil where
// there is none or none that can be read. Two sides that set UCX_ADDRESS_VERSION
// have to set it alike. The caller holds peersMu and has entered.
func (a *Agent) checkUCX(op string, m *Metadata) (*ucxAddress, error) {
	own, err := a.ownAddress(op)
	if own == nil || err != nil {
		return nil, err // without UCX the library passes over its part
	}
	refuse := func(format string, args ...any) (*ucxAddress, error) {
		return nil, nixl.Refuse(op, m.Agent, nixl.ErrInvalid, format, args...)
	}
	var peer *ucxAddress
	if len(m.Connections) == 0 {
		a.mu.Lock()
		if r := a.remotes[m.Agent]; r != nil {
			peer = r.ucx
		}
		a.mu.Unlock()
	}
	for _, c := range m.Connections {
		if c.Backend != ucxPlugin {
			continue
		}
		if v := c.Info[0] & addressVersion; v != own.version {
			return refuse("UCX address of version %d, where this agent's is of version %d", v, own.version)
		}
		if peer, err = parseUCXAddress(c.Info); err != nil && !m.sealed {
			if own.unknown != nil {
				return refuse("no checksum, and UCX here writes what can not be checked without one (%v)", own.unknown)
			}
			return refuse("%v", err)
		}
	}
	if m.sealed {
		return peer, nil
	}
	for _, r := range m.Regions {
		if r.Backend != ucxPlugin {
			continue
		}
		if peer == nil {
			return refuse("%s: a UCX key without a checksum, and no UCX address that says how to read it", r.Region)
		}
		if err := peer.checkKey(r.Key); err != nil {
			return refuse("%s: %v", r.Region, err)
		}
	}
	return peer, nil
}

// ownAddress returns what the agent's own UCX address is like, which does not
// change while the native agent lives; nil without UCX.
func (a *Agent) ownAddress(op string) (*ownAddress, error) {
	if a.address != nil {
		return a.address, nil
	}
	blob, s, err := a.d.metadata(a.h)
	if err = failed(op, "", s, err); err != nil {
		return nil, err
	}
	m, err := ParseMetadata(blob)
	if err != nil {
		return nil, err
	}
	for _, c := range m.Connections {
		if c.Backend == ucxPlugin {
			a.address = &ownAddress{version: c.Info[0] & addressVersion}
			a.address.ucx, a.address.unknown = parseUCXAddress(c.Info)
			return a.address, nil
		}
	}
	return nil, nil
}
