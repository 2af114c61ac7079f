package ptx

// Module is PTX that has been parsed, checked and lowered. It is immutable.
type Module struct {
	Version     string // of the PTX ISA, "7.8"
	Target      string // "sm_70"
	AddressSize int    // 64

	kernels []*Kernel
	tree    *tree
	image   uint64 // bytes of variables
}

// Param describes one kernel parameter.
type Param struct {
	Name   string
	Type   string // ".u64"; an array's element type
	Size   int    // bytes, of the whole array
	Align  int
	Offset int // within the parameter bytes
}

// Kernel is one entry of a module. It is immutable and may be started by
// several goroutines at once.
type Kernel struct {
	name         string
	params       []Param
	paramBytes   int
	staticShared int
	dynamicBase  int // where dynamic shared memory starts
	local        int // bytes of local memory a thread
	maxThreads   int
	reqThreads   [3]uint32
	barriers     bool

	code       []inst
	text       []string // of each source instruction
	sources    []string // and its place in what was compiled
	calls      []callSite
	pointers   []pointer
	constBytes uint64      // of the module's constants, which its image begins with
	images     []constSlot // of places in the image
	slots      int
	preds      int
	consts     []constSlot
	paramIn    []paramSlot
	specials   []specialSlot
}

type constSlot struct {
	slot  int32
	value uint64
}

type paramSlot struct {
	slot   int32
	off    int
	size   int
	signed bool
	mask   uint64
}

type specialSlot struct {
	slot int32
	kind special
}

// Parse reads PTX, checks it and lowers its kernels. name appears in errors. A
// failure is a *[SyntaxError]; nothing in src makes Parse panic. Trailing zero
// bytes are ignored.
func Parse(name string, src []byte) (*Module, error) {
	m, err := parseModule(src)
	if err == nil {
		return m, nil
	}
	if s, ok := err.(*SyntaxError); ok {
		s.Module = name
	}
	return nil, err
}

func parseModule(src []byte) (*Module, error) {
	t, err := parseTree(src)
	if err != nil {
		return nil, err
	}
	m := &Module{Version: t.version, Target: t.target, AddressSize: t.addressSize, tree: t}
	var consts uint64
	if consts, m.image, err = t.layout(); err != nil {
		return nil, err
	}
	for _, v := range t.globals {
		for _, r := range v.relocs {
			if _, err := t.value(r, 0); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range t.entries {
		k, err := lower(t, e)
		if err != nil {
			return nil, err
		}
		k.constBytes = consts
		m.kernels = append(m.kernels, k)
	}
	for _, e := range t.entries {
		e.body = nil // lowered
	}
	return m, nil
}

// value is an address in a variable's initial content, with the module's variables at
// base.
func (t *tree) value(r reloc, base uint64) (uint64, error) {
	if v := t.global.vars[r.name]; v != nil && !v.extern && (v.space == spaceGlobal || v.space == spaceConst) {
		return base + v.image + uint64(r.addend), nil
	}
	if e := t.function[r.name]; e != nil {
		return functionAddress(e) + uint64(r.addend), nil
	}
	return 0, &SyntaxError{Line: r.line, Msg: "address of unknown " + r.name}
}

// ImageSize is how many bytes the module's variables take, those of .const and .global
// together; 0: there are none. They are aligned to 1024 bytes at most.
func (m *Module) ImageSize() uint64 { return m.image }

// Image returns the initial content of the module's variables for a place in memory.
// A launch is told of the place ([Launch.Image]); what one leaves in the variables the
// next one finds.
func (m *Module) Image(base uint64) []byte {
	p := make([]byte, m.image)
	for _, v := range m.tree.globals {
		at := p[v.image:]
		copy(at, v.data)
		for _, r := range v.relocs {
			x, _ := m.tree.value(r, base) // parsing has made sure
			x >>= r.shift
			for i := range r.size {
				at[r.off+uint64(i)] = byte(x >> (8 * i))
			}
		}
	}
	return p
}

// Kernel returns the kernel of that name.
func (m *Module) Kernel(name string) (*Kernel, bool) {
	for _, k := range m.kernels {
		if k.name == name {
			return k, true
		}
	}
	return nil, false
}

// Kernels returns the kernels in the order of the text.
func (m *Module) Kernels() []*Kernel { return append([]*Kernel(nil), m.kernels...) }

// Name returns the entry's name.
func (k *Kernel) Name() string { return k.name }

// Params returns the parameters in order.
func (k *Kernel) Params() []Param { return append([]Param(nil), k.params...) }

// ParamBytes returns the size of the parameter block: where the last ends.
func (k *Kernel) ParamBytes() int { return k.paramBytes }

// StaticShared returns the bytes of shared memory that the kernel declares.
func (k *Kernel) StaticShared() int { return k.staticShared }

// LocalBytes returns the bytes of local memory of each thread.
func (k *Kernel) LocalBytes() int { return k.local }

// MaxThreads returns the most threads a thread block of the kernel may have:
// .maxntid, or the architecture's limit.
func (k *Kernel) MaxThreads() int { return k.maxThreads }
