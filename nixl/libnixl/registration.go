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
	return a.RegisterNamed(m, regions, nil)
}

// RegisterNamed is Register for backends that want a name with each region: the
// path of a file, the key of an object. A region that is registered already, or
// lies in one that is, keeps the name that it has.
func (a *Agent) RegisterNamed(m nixl.MemoryType, regions []nixl.Descriptor, names []string) (nixl.Registration, error) {
	r, overlaps, err := a.register("register", m, slices.Clone(regions), names)
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

func (a *Agent) register(op string, m nixl.MemoryType, regions []nixl.Descriptor, names []string) (*registration, []nixl.Overlap, error) {
	if names != nil && len(names) != len(regions) {
		return nil, nil, nixl.Refuse(op, "", nixl.ErrInvalid, "%d regions and %d names", len(regions), len(names))
	}
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
	blobs := make([][]byte, len(added.New))
	for i, d := range added.New {
		if k := slices.Index(regions, d); names != nil {
			blobs[i] = []byte(names[k])
		}
	}
	if len(added.New) > 0 {
		s, err := a.d.register(a.h, m, added.New, blobs, nil)
		if err = failed(op, "", s, err); err != nil {
			a.mu.Lock()
			_, undo := a.registry.Remove(m, regions)
			a.mu.Unlock()
			return nil, nil, both(err, undo)
		}
		a.mu.Lock()
		for i, d := range added.New {
			a.registry.Entry(nixl.Region{Type: m, Descriptor: d}).Cookie = &entryData{blobs[i]}
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
	regions, blobs := make([]nixl.Descriptor, len(gone)), make([][]byte, len(gone))
	for i, e := range gone {
		regions[i], blobs[i] = e.Region.Descriptor, e.Cookie.(*entryData).blob
	}
	s, err := a.d.deregister(a.h, r.m, regions, blobs, nil)
	return failed(op, "", s, err)
}

// Query asks the backends about memory, registered or not: for each region
// the parameters that a backend gave, or nil where there is no such memory.
// Which backends answer, and what a name has to be, is theirs to say; for files
// the name is the path.
func (a *Agent) Query(m nixl.MemoryType, regions []nixl.Descriptor, names []string, backend *Backend) ([]map[string]string, error) {
	const op = "query memory"
	if names != nil && len(names) != len(regions) {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "%d regions and %d names", len(regions), len(names))
	}
	if m > nixl.File {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "%s", m)
	}
	if backend == nil || backend.a != a {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "no backend of agent %s", a.name)
	}
	if err := a.enter(op); err != nil {
		return nil, err
	}
	defer a.leave()
	opt, s, err := a.d.options(&callOptions{backends: []handle{backend.h}})
	if err = failed(op, "", s, err); err != nil {
		return nil, err
	}
	defer a.d.freeOptions(opt)
	var blobs [][]byte
	for _, n := range names {
		blobs = append(blobs, []byte(n))
	}
	answers, s, err := a.d.query(a.h, m, regions, blobs, opt)
	return answers, failed(op, "", s, err)
}
