package ptx

// The syntax tree: what the text says, before anything is known about it.

type argKind uint8

const (
	argName  argKind = iota // register, special register, variable or label
	argInt                  // num
	argFloat                // bits of a float constant in num; bits wide
	argAddr                 // [base+off]; base "" for an absolute address
	argVec                  // {a, b, ...}
	argSink                 // _
	argList                 // (a, b, ...), of a call
)

type arg struct {
	kind argKind
	name string
	not  bool // !predicate
	num  uint64
	bits uint8 // of argFloat; 0: a 64-bit one that stands for any
	off  int64
	vec  []arg
	pair *arg // the q of p|q
}

type instr struct {
	line  int
	guard string // predicate register, "" without
	not   bool
	name  string   // "ld"
	mods  []string // "global", "v4", "u32"
	args  []arg
	label string // a statement that is only a label
	scope *scope
	src   place
}

// place is a line of the source that was compiled, from .loc.
type place struct {
	file, line uint32 // file: its number in the text; 0: not known
}

// text is the instruction as it is written, without operands.
func (in *instr) text() string {
	s := in.name
	for _, m := range in.mods {
		s += "." + m
	}
	return s
}

type regRange struct {
	typ   dtype
	count uint64
}

// scope is a { } of a kernel body: its names hide those outside.
type scope struct {
	up     *scope
	regs   map[string]dtype
	ranges map[string]regRange // %r<10>: prefix %r
	vars   map[string]*variable
	labels map[string]bool
	lists  map[string][]string // .branchtargets and .calltargets
	protos map[string]*entry   // .callprototype
}

func newScope(up *scope) *scope {
	return &scope{up: up, regs: map[string]dtype{}, ranges: map[string]regRange{},
		vars: map[string]*variable{}, labels: map[string]bool{}, lists: map[string][]string{}, protos: map[string]*entry{}}
}

// variable is a name in a state space: a parameter, or memory.
type variable struct {
	name   string
	line   int
	space  space
	typ    dtype
	align  uint64
	size   uint64
	extern bool   // extern .shared: the launch gives its size; else defined elsewhere
	param  int    // index of a kernel's parameter
	frame  bool   // it lies in the frame of a function, whatever its space
	reg    bool   // a parameter of a function that is a register
	image  uint64 // of a module's variable: its place among all of them

	dims   []uint64
	data   []byte // initial content; nil: zeros
	relocs []reloc
}

// reloc is an address in a variable's initial content.
type reloc struct {
	off    uint64
	size   int
	name   string // of a variable or a function
	addend int64
	shift  uint // which of the address's bits are taken
	line   int
}

// entry is a kernel or a function.
type entry struct {
	name       string
	line       int
	function   bool
	declared   bool // without a body
	params     []*variable
	rets       []*variable // of a function
	vars       []*variable // shared and local, as declared
	top        *scope
	body       []instr
	maxThreads int       // .maxntid, .reqntid; 0 without
	reqThreads [3]uint32 // .reqntid; zero without
	index      int       // of a function: its place in the text
}

type tree struct {
	version, target string
	addressSize     int
	files           map[uint32]string
	globals         []*variable // .global and .const
	entries         []*entry
	functions       []*entry
	function        map[string]*entry
	global          *scope
}
