package libnixl

import "github.com/kvgate/kvgate/nixl"

// The first byte of a UCX worker address holds the version of its format in
// these bits. UCX (src/ucp/wireup/address.c, as in the wheel of NIXL 1.5.1) ends
// the process where it does not know the version.
const addressVersion = 0x0f

// checkAddresses refuses addresses of workers of UCX in another format than the
// agent's own, which UCX is known to read. Two sides that set
// UCX_ADDRESS_VERSION have to set it alike. The caller holds peersMu and has
// entered.
func (a *Agent) checkAddresses(op string, m *Metadata) error {
	for _, c := range m.Connections {
		if c.Backend != ucxPlugin {
			continue
		}
		own, has, err := a.ownAddress(op)
		if err != nil || !has {
			return err // without UCX the library passes over such a connection
		}
		if v := c.Info[0] & addressVersion; v != own {
			return nixl.Refuse(op, m.Agent, nixl.ErrInvalid, "UCX address of version %d, where this agent's is of version %d", v, own)
		}
	}
	return nil
}

const ucxPlugin = "UCX"

// ownAddress returns the version of the agent's own UCX address, which does not
// change while the native agent lives.
func (a *Agent) ownAddress(op string) (version byte, has bool, err error) {
	if a.address != nil {
		return *a.address, true, nil
	}
	blob, s, err := a.d.metadata(a.h)
	if err = failed(op, "", s, err); err != nil {
		return 0, false, err
	}
	own, err := ParseMetadata(blob)
	if err != nil {
		return 0, false, err
	}
	for _, c := range own.Connections {
		if c.Backend == ucxPlugin {
			v := c.Info[0] & addressVersion
			a.address = &v
			return v, true, nil
		}
	}
	return 0, false, nil
}
