package libnixl

import (
	"slices"

	"github.com/kvgate/kvgate/nixl"
)

// registration implements nixl.Registration.
type registration struct {
	a       *Agent
	m       nixl.MemoryType
	regions []nixl.Descriptor
	closed  bool // guarded by a.memMu
}

// Register makes memory reachable. The bytes must stay where they are until
// the registration is closed; memory of the Go heap must be kept alive, too.
//
// A region inside a registered one is counted on that one: the library keeps all
// of the outer one, and peers reach it, until both are closed; [Config.Overlap]
// is told. Any other overlap is refused with [nixl.ErrOverlap], since the library
// would use either region, or find none.
func (a *Agent) Register(m nixl.MemoryType, regions []nixl.Descriptor) (nixl.Registration, error) {
	r, overlaps, err := a.register("register", m, slices.Clone(regions))
	if err != nil {
		return nil, err
	}
	if a.cfg.Overlap != nil {
		for _, o := range overlaps {
			a.cfg.Overlap(o)
		}
	}
	return r, nil
}

func (a *Agent) register(op string, m nixl.MemoryType, regions []nixl.Descriptor) (*registration, []nixl.Overlap, error) {
	a.memMu.Lock()
	defer a.memMu.Unlock()
	if err := a.enter(op); err != nil {
		return nil, nil, err
	}
	defer a.leave()
	if m <= nixl.File && !a.takes(m) {
		return nil, nil, nixl.Refuse(op, "", nixl.ErrInvalid, "no backend of agent %s takes %s memory", a.name, m)
	}
	a.mu.Lock()
	added, err := a.registry.Add(m, regions)
	a.mu.Unlock()
	if err != nil {
		return nil, nil, err
	}
	if len(added.New) > 0 {
		s, err := a.d.register(a.h, m, added.New)
		if err = failed(op, "", s, err); err != nil {
			a.mu.Lock()
			_, undo := a.registry.Remove(m, regions)
			a.mu.Unlock()
			return nil, nil, both(err, undo)
		}
		a.mu.Lock()
		for _, d := range added.New {
			a.registry.Entry(nixl.Region{Type: m, Descriptor: d}).Cookie = reachable
		}
		a.mu.Unlock()
	}
	return &registration{a: a, m: m, regions: regions}, added.Overlaps, nil
}

func both(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

func (r *registration) Regions() []nixl.Descriptor { return slices.Clone(r.regions) }

func (r *registration) Close() error {
	const op = "deregister"
	a := r.a
	a.memMu.Lock()
	defer a.memMu.Unlock()
	if r.closed {
		return nil
	}
	if a.enter(op) != nil { // the agent took it along
		r.closed = true
		return nil
	}
	defer a.leave()
	a.mu.Lock()
	removed, err := a.registry.Remove(r.m, r.regions)
	a.mu.Unlock()
	if err != nil {
		return err
	}
	r.closed = true // whatever follows: the library is asked once
	if !removed.Closed {
		return nil
	}
	a.dropRequests(func(t *Transfer) bool {
		return slices.ContainsFunc(t.entries, func(e *nixl.Entry) bool { return !e.Registered() })
	})
	a.dropLists(func(l *List) bool {
		return slices.ContainsFunc(l.entries, func(e *nixl.Entry) bool { return !e.Registered() })
	})
	gone := removed.Gone
	if len(gone) == 0 {
		return nil
	}
	regions := make([]nixl.Descriptor, len(gone))
	for i, e := range gone {
		regions[i] = e.Region.Descriptor
	}
	s, err := a.d.deregister(a.h, r.m, regions)
	return failed(op, "", s, err)
}
