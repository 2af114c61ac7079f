package libnixl

import (
	"maps"
	"slices"

	"github.com/kvgate/kvgate/nixl"
)

// Backend is a transport of an agent. It ends with its agent: the C ABI can
// end it in no other way.
type Backend struct {
	a      *Agent
	config BackendConfig
	h      handle
	info   PluginInfo
}

// Plugin returns the name of the plugin that the backend is of.
func (b *Backend) Plugin() string { return b.config.Plugin }

// Info returns what the backend can transfer, and its parameters as they are.
func (b *Backend) Info() PluginInfo {
	return PluginInfo{slices.Clone(b.info.Memories), maps.Clone(b.info.Params)}
}

// Plugins returns the names of the plugins that are installed. A plugin may
// still fail to start, for want of hardware or of a service.
func (a *Agent) Plugins() ([]string, error) {
	const op = "plugins"
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	var names []string
	var s status
	var err error
	a.guard(func() { names, s, err = a.d.plugins(a.h) })
	slices.Sort(names)
	return names, failed(op, "", s, err)
}

// Plugin returns the parameters of a plugin with their defaults, and what it
// can transfer.
func (a *Agent) Plugin(name string) (PluginInfo, error) {
	const op = "plugin"
	if err := cleanName(op, name); err != nil {
		return PluginInfo{}, err
	}
	if err := a.enter(op); err != nil {
		return PluginInfo{}, err
	}
	defer a.leave()
	var p PluginInfo
	var s status
	var err error
	a.guard(func() { p, s, err = a.d.pluginParams(a.h, name) })
	if err == nil && s < 0 {
		return PluginInfo{}, nixl.Refuse(op, "", nixl.ErrUnavailable, "plugin %s: %s", name, s)
	}
	return p, failed(op, "", s, err)
}

// AddBackend makes another backend of the agent. A plugin makes at most one
// for each agent. Memory that is registered already is not known to it, nor is
// what is registered again or inside of that.
func (a *Agent) AddBackend(b BackendConfig) (*Backend, error) {
	const op = "add backend"
	if err := b.check(op); err != nil {
		return nil, err
	}
	a.memMu.Lock()
	defer a.memMu.Unlock()
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	return a.addBackend(b)
}

func (a *Agent) addBackend(c BackendConfig) (*Backend, error) {
	const op = "add backend"
	for _, old := range a.Backends() {
		if old.config.Plugin == c.Plugin {
			return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "agent %s has a backend %s already", a.name, c.Plugin)
		}
	}
	b := &Backend{a: a, config: BackendConfig{c.Plugin, maps.Clone(c.Params)}}
	var err error
	a.guard(func() {
		// The plugin's own parameters first: a backend gets what it is given,
		// not what is missing.
		var defaults PluginInfo
		var s status
		if defaults, s, err = a.d.pluginParams(a.h, c.Plugin); err != nil || s < 0 {
			if err == nil {
				err = nixl.Refuse(op, "", nixl.ErrUnavailable, "no plugin %s in %s: %s", c.Plugin, a.lib.plugins, s)
			}
			return
		}
		params := maps.Clone(defaults.Params)
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
		return nil, failed(op, "", 0, err)
	}
	a.mu.Lock()
	a.backends = append(a.backends, b)
	a.mu.Unlock()
	return b, nil
}

// Backends returns the agent's backends in the order in which they were made.
func (a *Agent) Backends() []*Backend {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.backends)
}
