package libnixl

import (
	"maps"
	"slices"

	"github.com/kvgate/kvgate/nixl"
)

// backend is a transport of an agent. It ends with its agent: the C ABI can end
// it in no other way.
type backend struct {
	config BackendConfig
	h      handle
	info   pluginInfo
}

// addBackend makes a backend. A plugin makes at most one for each agent.
func (a *Agent) addBackend(c BackendConfig) error {
	const op = "add backend"
	for _, old := range a.allBackends() {
		if old.config.Plugin == c.Plugin {
			return nixl.Refuse(op, "", nixl.ErrInvalid, "agent %s has a backend %s already", a.name, c.Plugin)
		}
	}
	b := &backend{config: BackendConfig{c.Plugin, maps.Clone(c.Params)}}
	var err error
	a.guard(func() {
		// The plugin's own parameters first: a backend gets what it is given,
		// not what is missing.
		var defaults pluginInfo
		var s status
		if defaults, s, err = a.d.pluginParams(a.h, c.Plugin); err != nil || s < 0 {
			if err == nil {
				err = nixl.Refuse(op, "", nixl.ErrUnavailable, "no plugin %s in %s: %s", c.Plugin, a.lib.plugins, s)
			}
			return
		}
		params := maps.Clone(defaults.params)
		if params == nil {
			params = map[string]string{}
		}
		maps.Copy(params, c.Params)
		if c.Plugin == ucxPlugin {
			params[ucxSettings] = boundConnects(params[ucxSettings])
		}
		if b.h, s, err = a.d.createBackend(a.h, c.Plugin, params); err != nil || s < 0 {
			if err == nil {
				err = nixl.Refuse(op, "", nixl.ErrUnavailable, "plugin %s with %v does not start: %s", c.Plugin, params, s)
			}
			return
		}
		b.info, s, err = a.d.backendParams(a.h, b.h)
		if err == nil && s < 0 {
			err = nixl.Refuse(op, "", nixl.ErrBackend, "parameters of %s: %s", c.Plugin, s)
		}
	})
	if err != nil {
		return failed(op, "", 0, err)
	}
	a.mu.Lock()
	a.backends = append(a.backends, b)
	a.mu.Unlock()
	return nil
}

// allBackends returns the backends in the order in which they were made.
func (a *Agent) allBackends() []*backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.backends)
}
