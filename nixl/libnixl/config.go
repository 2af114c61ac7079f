package libnixl

import (
	"fmt"
	"strings"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// ThreadSync is how the library guards an agent against use by several
// threads.
type ThreadSync uint8

const (
	// SyncReadWrite lets calls that only read its tables run side by side. It
	// is the default here, since goroutines move between threads.
	SyncReadWrite ThreadSync = iota
	// SyncStrict lets one call run at a time.
	SyncStrict
	// SyncNone leaves the agent unguarded: for a program that calls it from
	// one goroutine only.
	SyncNone
)

// code is the library's number.
func (s ThreadSync) code() int { return [...]int{2, 1, 0}[s] }

// Config describes an agent. The zero value is an agent with a progress thread
// and the UCX backend.
type Config struct {
	// NoProgressThread leaves progress to the calls of the program. A peer
	// that reads memory of this agent over shared memory or TCP then waits
	// until this agent is called.
	NoProgressThread bool
	// ProgressWait is how long the progress thread waits at most for an event
	// of the transport before it looks by itself; 0: 1 ms, which is also the
	// least that UCX can do. Over TCP some events are missed, and a peer's
	// transfer then takes that much longer (one in ten of 4 KiB on a loopback).
	ProgressWait time.Duration
	// Spin lets the progress thread look without ever waiting. It answers
	// soonest and takes a processor for itself, as the library does by default.
	Spin bool

	Sync ThreadSync

	// Backends are made with the agent; nil means UCX with its defaults.
	Backends []BackendConfig

	// RequireSeal refuses metadata without the checksum that this binding puts
	// into its own. Peers of other bindings are then not met.
	RequireSeal bool

	// ConnectTimeout is how long the addresses of a peer that UCX may connect to
	// over TCP may all be silent before AddPeer refuses it, between one second
	// and seven; 0: 2 s.
	ConnectTimeout time.Duration

	// Overlap, if not nil, is told of regions registered inside another. It is
	// called by the goroutine that registers, without locks held.
	Overlap func(nixl.Overlap)

	// Clock is what waits and deadlines are measured by; nil: the wall clock.
	Clock clock.Clock
}

// BackendConfig names a backend and its parameters; parameters that are not
// named keep the plugin's defaults.
type BackendConfig struct {
	Plugin string
	Params map[string]string
}

func (c *Config) check(name string) error {
	const op = "new agent"
	switch {
	case name == "" || strings.IndexByte(name, 0) >= 0:
		return nixl.Refuse(op, "", nixl.ErrInvalid, "name %q", name)
	case c.Sync > SyncNone:
		return nixl.Refuse(op, "", nixl.ErrInvalid, "thread sync %d", c.Sync)
	case c.ProgressWait < 0 || c.ConnectTimeout < 0:
		return nixl.Refuse(op, "", nixl.ErrInvalid, "negative wait")
	case c.Spin && (c.ProgressWait > 0 || c.NoProgressThread):
		return nixl.Refuse(op, "", nixl.ErrInvalid, "a progress thread that spins does not wait, and there has to be one")
	}
	for _, b := range c.Backends {
		if err := b.check(op); err != nil {
			return err
		}
	}
	return nil
}

func (b *BackendConfig) check(op string) error {
	if b.Plugin == "" || strings.IndexByte(b.Plugin, 0) >= 0 {
		return nixl.Refuse(op, "", nixl.ErrInvalid, "plugin %q", b.Plugin)
	}
	for k, v := range b.Params {
		if k == "" || strings.IndexByte(k+v, 0) >= 0 {
			return nixl.Refuse(op, "", nixl.ErrInvalid, "plugin %s: parameter %q=%q", b.Plugin, k, v)
		}
	}
	return nil
}

func (c *Config) native() *agentConfig {
	n := &agentConfig{
		progress: !c.NoProgressThread,
		sync:     c.Sync, progressDelay: c.ProgressWait,
	}
	if n.progressDelay == 0 && !c.Spin {
		n.progressDelay = time.Millisecond
	}
	return n
}

func (b BackendConfig) String() string { return fmt.Sprintf("%s %v", b.Plugin, b.Params) }
