package sim

import (
	"sync"

	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

// parsed keeps modules that were parsed, for programs that make thousands of
// devices: a module is immutable, and parsing one takes longer than many a run.
var parsed moduleCache

// maxParsed bounds the cache. Programs load a handful of modules; when there are
// more, none is kept.
const maxParsed = 64

type moduleCache struct {
	mu      sync.Mutex
	modules map[string]*ptx.Module // by text
}

func (c *moduleCache) parse(image []byte) (*ptx.Module, error) {
	c.mu.Lock()
	m := c.modules[string(image)]
	c.mu.Unlock()
	if m != nil {
		return m, nil
	}
	m, err := ptx.Parse("module", image)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.modules == nil {
		c.modules = map[string]*ptx.Module{}
	}
	if len(c.modules) < maxParsed {
		c.modules[string(image)] = m
	}
	return m, nil
}
