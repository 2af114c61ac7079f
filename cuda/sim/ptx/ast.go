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
)

type arg struct {
	kind argKind
	name string
	not  bool // !predicate
	num  uint64
	bits uint8 // of argFloat
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
	lists  map[string][]string // .branchtargets
}

func newScope(up *scope) *scope {
	return &scope{up: up, regs: map[string]dtype{}, ranges: map[string]regRange{},
		vars: map[string]*variable{}, labels: map[string]bool{}, lists: map[string][]string{}}
}

// variable is a name in a state space: a parameter, or shared or local memory.
type variable struct {
	name   string
	space  space
	typ    dtype
	align  uint64
	size   uint64
	extern bool // extern .shared: the launch gives its size
	param  int  // index of a parameter
}

type entry struct {
	name       string
	line       int
	params     []*variable
	vars       []*variable // shared and local, as declared
	top        *scope
	body       []instr
	maxThreads int       // .maxntid, .reqntid; 0 without
	reqThreads [3]uint32 // .reqntid; zero without
}

type tree struct {
	version, target string
	addressSize     int
	entries         []*entry
}
