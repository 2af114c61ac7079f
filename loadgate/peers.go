package loadgate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl"
)

// metadataVersion is the version of what [Gate.Metadata] writes and
// [Gate.AddPeer] reads.
const metadataVersion = 1

// maxMetadata bounds what AddPeer parses, in bytes: the largest description, ten
// times over, and an agent's metadata, which has some 100 bytes for each region.
const maxMetadata = 64 << 20

// metadata is what a gate tells its peers.
type metadata struct {
	Version int             `json:"version"`
	Agent   []byte          `json:"agent"`  // of nixl.Agent.Metadata
	Memory  nixl.MemoryType `json:"memory"` // what the agent takes the blocks' memory for
	Layout  json.RawMessage `json:"layout"` // a layout.Description
}

// Peer is a gate on the other side, in this process or another. It is a value.
type Peer struct {
	g    *Gate
	slot int32
	gen  uint32
}

// peer is what is known of a peer: one slot for each name.
type peer struct {
	gen     uint32
	agent   nixl.Peer
	kind    nixl.MemoryType
	pairing *layout.Pairing
}

func (p Peer) String() string {
	if p.g == nil {
		return "no peer"
	}
	p.g.mu.Lock()
	defer p.g.mu.Unlock()
	return p.g.owned.peers[p.slot].agent.String()
}

// peerOf returns the slot of a peer, with the gate locked.
func (g *Gate) peerOf(op string, p Peer) (*peer, error) {
	if p.g == nil || p.g != g {
		return nil, fmt.Errorf("loadgate: %s: not a peer of this gate: %w", op, core.ErrInvalid)
	}
	s := &g.owned.peers[p.slot]
	if s.gen != p.gen {
		return nil, fmt.Errorf("loadgate: %s: peer %s was added anew since: %w", op, s.agent.Name, core.ErrStale)
	}
	return s, nil
}

// upper returns an error for a gate that [New] made.
func (g *Gate) upper(op string) error {
	if g.owned == nil {
		return fmt.Errorf("loadgate: %s: the gate was not made by Open: %w", op, core.ErrInvalid)
	}
	return nil
}

// Metadata returns what a peer passes to [Gate.AddPeer]: how to reach the agent,
// and the layout of the gate's memory.
func (g *Gate) Metadata() ([]byte, error) {
	if err := g.upper("metadata"); err != nil {
		return nil, err
	}
	if g.agent == nil {
		return nil, fmt.Errorf("loadgate: metadata: the gate has no agent: %w", core.ErrInvalid)
	}
	blob, err := g.agent.Metadata()
	if err != nil {
		return nil, fmt.Errorf("loadgate: metadata: %w", err)
	}
	d, err := json.Marshal(g.owned.arena.Description())
	if err != nil {
		return nil, fmt.Errorf("loadgate: metadata: %w", err)
	}
	return json.Marshal(metadata{metadataVersion, blob, g.owned.kind, d})
}

// AddPeer makes the gate known that wrote the metadata, or known anew when it has
// restarted: [Peer] values of its earlier life are stale then. Layouts that
// can't be paired are refused with a *[layout.MismatchError] for each field.
//
// While transfers with an earlier life of the peer are under way, AddPeer waits
// for their end, and lets the gate move meanwhile. It returns ctx's cause when ctx
// is done. After an error the gate knows what it knew before.
func (g *Gate) AddPeer(ctx context.Context, metadata []byte) (Peer, error) {
	fail := func(err error) (Peer, error) { return Peer{}, fmt.Errorf("loadgate: add peer: %w", err) }
	if err := g.upper("add peer"); err != nil {
		return Peer{}, err
	}
	if g.agent == nil {
		return fail(fmt.Errorf("the gate has no agent: %w", core.ErrInvalid))
	}
	m, d, err := readMetadata(metadata)
	if err != nil {
		return fail(err)
	}
	pairing, err := layout.NewPairing(g.owned.arena, d)
	if err != nil {
		return fail(err)
	}
	for {
		seen := g.agent.Activity()
		p, err := g.agent.AddPeer(m.Agent)
		if err == nil {
			return g.notePeer(peer{agent: p, kind: m.Memory, pairing: pairing}), nil
		}
		if !errors.Is(err, nixl.ErrBusy) {
			return fail(err)
		}
		if _, err := g.Progress(0); err != nil {
			return fail(err)
		}
		if ctx.Err() != nil {
			return fail(context.Cause(ctx))
		}
		if err := g.clk.WaitUntil(ctx, &agentWait{g, seen}, clock.Never); err != nil {
			return fail(context.Cause(ctx))
		}
	}
}

// agentWait ends when the gate's agent, or the gate, has something new.
type agentWait struct {
	g    *Gate
	seen uint64
}

func (w *agentWait) Done() bool {
	return w.g.agent.Activity() != w.seen || w.g.posters.news.Load()
}

func (w *agentWait) String() string { return "transfers with an earlier life of a peer" }

func readMetadata(data []byte) (*metadata, *layout.Description, error) {
	if len(data) > maxMetadata {
		return nil, nil, fmt.Errorf("metadata of %d bytes, want at most %d: %w", len(data), maxMetadata, core.ErrInvalid)
	}
	m := &metadata{}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, nil, fmt.Errorf("metadata: %w: %w", err, core.ErrInvalid)
	}
	if m.Version != metadataVersion {
		return nil, nil, fmt.Errorf("metadata of version %d, want %d: %w", m.Version, metadataVersion, core.ErrInvalid)
	}
	if m.Memory > nixl.VRAM {
		return nil, nil, fmt.Errorf("metadata: blocks in %v: %w", m.Memory, core.ErrInvalid)
	}
	d, err := layout.ParseDescription(m.Layout)
	if err != nil {
		return nil, nil, err
	}
	return m, d, nil
}

// notePeer keeps what is known of a peer, in the slot of its name.
func (g *Gate) notePeer(p peer) Peer {
	g.mu.Lock()
	defer g.mu.Unlock()
	ps := &g.owned.peers
	for i := range *ps {
		s := &(*ps)[i]
		if s.agent.Name != p.agent.Name {
			continue
		}
		if p.gen = s.gen; s.agent != p.agent {
			p.gen++
		}
		*s = p
		return Peer{g, int32(i), s.gen}
	}
	*ps = append(*ps, p)
	return Peer{g, int32(len(*ps) - 1), 0}
}
