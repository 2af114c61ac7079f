package ptx

// Module is PTX that has been parsed, checked and lowered. It is immutable.
type Module struct {
	Version     string // of the PTX ISA, "7.8"
	Target      string // "sm_70"
	AddressSize int    // 64

	kernels []*Kernel
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

	code     []inst
	text     []string // of each source instruction
	slots    int
	preds    int
	consts   []constSlot
	paramIn  []paramSlot
	specials []specialSlot
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
	t, err := parseTree(src)
	if err == nil {
		m := &Module{Version: t.version, Target: t.target, AddressSize: t.addressSize}
		for _, e := range t.entries {
			var k *Kernel
			if k, err = lower(e); err != nil {
				break
			}
			m.kernels = append(m.kernels, k)
		}
		if err == nil {
			return m, nil
		}
	}
	if s, ok := err.(*SyntaxError); ok {
		s.Module = name
	}
	return nil, err
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
