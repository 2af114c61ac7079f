package lint

import (
	"fmt"
	"go/ast"
	"go/types"
	"maps"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

// kits are the packages that try others out: that they use a method of an
// interface shows that it works, not that somebody needs it.
var kits = []string{"cuda/cudatest", "nixl/nixltest", "cuda/faultdev"}

// served are the folders whose interfaces the packages below them implement: an
// implementation is no consumer either.
var served = []string{"cuda", "nixl"}

// A surface says for each exported function, method and type of the module
// whether somebody outside its package uses it: a program, another package, an
// example, a test of another package.
type surface struct {
	m          *module
	declared   map[string]types.Object
	used       map[string]bool
	interfaces []*types.Interface
	failure    *types.Interface // error
	asked      map[string]bool  // methods of interfaces that have no name, or are of another module
}

func newSurface(m *module) *surface {
	s := &surface{m: m, declared: map[string]types.Object{}, used: map[string]bool{}, asked: map[string]bool{}}
	s.gatherInterfaces()
	for _, p := range m.order {
		if dir, _ := local(p.ImportPath); p.checked.Name() == "main" || internal(dir) {
			continue
		}
		scope := p.checked.Scope()
		for _, name := range scope.Names() {
			s.declare(scope.Lookup(name))
		}
	}
	for _, u := range m.units {
		s.use(u)
	}
	return s
}

// key names an object of this module: folder.Name, or folder.Type.Method.
func key(o types.Object) string {
	if o == nil || o.Pkg() == nil {
		return ""
	}
	dir, ok := local(o.Pkg().Path())
	if !ok {
		return ""
	}
	if f, ok := o.(*types.Func); ok {
		o = f.Origin()
		if r := f.Signature().Recv(); r != nil {
			n := named(r.Type())
			if n == nil {
				return "" // of an interface without a name
			}
			return dir + "." + n.Obj().Name() + "." + o.Name()
		}
	}
	if o.Parent() != o.Pkg().Scope() {
		return ""
	}
	return dir + "." + o.Name()
}

func named(t types.Type) *types.Named {
	if p, ok := types.Unalias(t).(*types.Pointer); ok {
		t = p.Elem()
	}
	n, _ := types.Unalias(t).(*types.Named)
	return n
}

func (s *surface) declare(o types.Object) {
	if !o.Exported() {
		return
	}
	switch o := o.(type) {
	case *types.Func:
		s.declared[key(o)] = o
	case *types.TypeName:
		s.declared[key(o)] = o
		n, ok := o.Type().(*types.Named)
		if !ok {
			return
		}
		for m := range n.Methods() {
			if m.Exported() {
				s.declared[key(m)] = m
			}
		}
		if i, ok := n.Underlying().(*types.Interface); ok {
			for m := range i.ExplicitMethods() {
				if m.Exported() {
					s.declared[key(m)] = m
				}
			}
		}
	}
}

// gatherInterfaces takes in the named interfaces of the module and of what it
// imports: methods that implement one are called through it.
func (s *surface) gatherInterfaces() {
	seen := map[*types.Package]bool{}
	take := func(p *types.Package) {
		if p == nil || seen[p] {
			return
		}
		seen[p] = true
		for _, name := range p.Scope().Names() {
			t, ok := p.Scope().Lookup(name).(*types.TypeName)
			if !ok || t.IsAlias() {
				continue
			}
			if n, ok := t.Type().(*types.Named); ok && n.TypeParams().Len() > 0 {
				continue
			}
			if i, ok := t.Type().Underlying().(*types.Interface); ok && i.NumMethods() > 0 {
				s.interfaces = append(s.interfaces, i)
			}
		}
	}
	for _, name := range []string{"fmt", "encoding", "encoding/json", "errors", "sort", "io", "flag"} {
		if p := s.m.pkgs[name]; p != nil {
			q, _ := s.m.check(p) // it is the standard library's
			take(q)
		}
	}
	s.failure = types.Universe.Lookup("error").Type().Underlying().(*types.Interface)
	s.interfaces = append(s.interfaces, s.failure)
	for _, p := range s.m.order {
		take(p.checked)
		for _, q := range p.checked.Imports() {
			take(q)
		}
	}
}

// implements reports whether the method is one that errors, fmt or an interface
// may call.
func (s *surface) implements(m *types.Func) bool {
	n := named(m.Signature().Recv().Type())
	if n == nil || types.IsInterface(n) || n.TypeParams().Len() > 0 {
		return false
	}
	switch m.Name() {
	case "Is", "As", "Unwrap":
		return types.Implements(types.NewPointer(n), s.failure)
	}
	if s.asked[m.Name()] {
		return true
	}
	for _, i := range s.interfaces {
		for im := range i.Methods() {
			if im.Name() == m.Name() && types.Implements(types.NewPointer(n), i) {
				return true
			}
		}
	}
	return false
}

func (s *surface) use(u *unit) {
	kit := slices.Contains(kits, u.dir)
	for _, f := range u.files {
		test := u.test(f)
		for _, d := range f.Decls {
			fn, _ := d.(*ast.FuncDecl)
			example := test && fn != nil && strings.HasPrefix(fn.Name.Name, "Example")
			ast.Inspect(d, func(n ast.Node) bool {
				id, ok := n.(*ast.Ident)
				if !ok {
					return true
				}
				o := u.info.Uses[id]
				k := key(o)
				if k == "" || s.used[k] {
					return true
				}
				dir, _ := local(o.Pkg().Path())
				isInterface := s.ofInterface(o)
				switch {
				case example:
				case dir == u.dir:
					// A method of an interface is there to be called here.
					if _, method := o.(*types.Func); !method || !isInterface || test {
						return true
					}
				case isInterface && (kit || slices.ContainsFunc(served, func(root string) bool {
					return under(dir, root) && under(u.dir, root) && !u.command
				})):
					return true
				}
				s.used[k] = true
				return true
			})
		}
	}
}

// ask notes the methods of interfaces without a name, or of any.
func (s *surface) ask(f *File, any bool) {
	ast.Inspect(f.Ast, func(n ast.Node) bool {
		if t, ok := n.(*ast.TypeSpec); ok && !any {
			_, ok := t.Type.(*ast.InterfaceType)
			return !ok
		}
		if i, ok := n.(*ast.InterfaceType); ok {
			for _, m := range i.Methods.List {
				for _, name := range m.Names {
					s.asked[name.Name] = true
				}
			}
		}
		return true
	})
}

// useNested notes what a module of its own in this repository uses, by the names
// alone: it is not typed here, since what it imports may not be on the machine.
func (s *surface) useNested(f *File) {
	dirs := map[string]string{}
	for i, p := range f.Imports() {
		if dir, ok := local(p); ok {
			name := path.Base(dir)
			if n := f.Ast.Imports[i].Name; n != nil {
				name = n.Name
			}
			dirs[name] = dir
		}
	}
	ast.Inspect(f.Ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if id, ok := sel.X.(*ast.Ident); ok && dirs[id.Name] != "" {
			s.used[dirs[id.Name]+"."+sel.Sel.Name] = true
			return true
		}
		for k, o := range s.declared {
			if o.Name() == sel.Sel.Name && !s.ofInterface(o) && slices.Contains(slices.Collect(maps.Values(dirs)), k[:strings.Index(k, ".")]) {
				s.used[k] = true
			}
		}
		return true
	})
}

func (s *surface) ofInterface(o types.Object) bool {
	switch o := o.(type) {
	case *types.TypeName:
		return types.IsInterface(o.Type())
	case *types.Func:
		r := o.Signature().Recv()
		return r != nil && types.IsInterface(r.Type())
	}
	return false
}

// spread marks the types that users get from what they use.
func (s *surface) spread() {
	seen := map[types.Type]bool{}
	var walk func(t types.Type)
	walk = func(t types.Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		switch t := types.Unalias(t).(type) {
		case *types.Named:
			k := key(t.Obj())
			for a := range t.TypeArgs().Types() {
				walk(a)
			}
			if k == "" {
				return
			}
			s.used[k] = true
			walk(t.Underlying())
		case *types.Pointer:
			walk(t.Elem())
		case *types.Slice:
			walk(t.Elem())
		case *types.Array:
			walk(t.Elem())
		case *types.Chan:
			walk(t.Elem())
		case *types.Map:
			walk(t.Key())
			walk(t.Elem())
		case *types.Signature:
			for v := range t.Params().Variables() {
				walk(v.Type())
			}
			for v := range t.Results().Variables() {
				walk(v.Type())
			}
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(f.Type())
				}
			}
		case *types.Interface:
			for m := range t.ExplicitMethods() {
				walk(m.Signature())
			}
		}
	}
	for k := range maps.Clone(s.used) {
		if o := s.declared[k]; o != nil {
			if f, ok := o.(*types.Func); ok {
				walk(f.Signature())
				if r := f.Signature().Recv(); r != nil {
					walk(r.Type())
				}
			} else {
				walk(o.Type())
			}
		}
	}
}

func (s *surface) unused() []string {
	s.spread()
	var found []string
	for k, o := range s.declared {
		if s.used[k] {
			continue
		}
		if f, ok := o.(*types.Func); ok && f.Signature().Recv() != nil && s.implements(f) {
			continue
		}
		if _, ok := o.(*types.TypeName); ok && types.Implements(types.NewPointer(o.Type()), s.failure) && !types.IsInterface(o.Type()) {
			continue // for errors.As
		}
		found = append(found, k)
	}
	slices.Sort(found)
	return found
}

// exceptions are the reasons of unused.txt: for a name, or for all that begin as
// one that ends in a star.
func exceptions(t *testing.T) map[string]string {
	text, err := os.ReadFile("unused.txt")
	require.NoError(t, err)
	reasons := map[string]string{}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		require.NotEmpty(t, strings.TrimSpace(reason), "unused.txt: %s has no reason", name)
		require.Empty(t, reasons[name], "unused.txt: %s stands there twice", name)
		reasons[name] = reason
	}
	return reasons
}

// What is exported has a consumer, or a reason to be there without one.
func TestSurface(t *testing.T) {
	m, files := typed(t)
	s := newSurface(m)
	for _, f := range files {
		if f.Ast == nil || f.Test() {
			continue
		}
		nested := f.In(modules(files)...)
		s.ask(f, nested)
		if nested {
			s.useNested(f)
		}
	}
	reasons, needed := exceptions(t), map[string]bool{}
	for _, k := range s.unused() {
		excused := ""
		for name := range reasons {
			if begin, wild := strings.CutSuffix(name, "*"); k == name || wild && strings.HasPrefix(k, begin) {
				excused = name
			}
		}
		if needed[excused] = true; excused == "" {
			t.Errorf("%s is exported, and no program, example, other package or test of another package uses it: "+
				"unexport or remove it, or give the reason in internal/lint/unused.txt", k)
		}
	}
	for name := range reasons {
		if !needed[name] {
			t.Logf("unused.txt: %s has a consumer by now, or is gone: its line can go", name)
		}
	}
}

// modules are the folders of modules within this one.
func modules(files []*File) []string {
	var dirs []string
	for _, f := range files {
		if path.Base(f.Path) == "go.mod" && f.Dir() != "." {
			dirs = append(dirs, f.Dir())
		}
	}
	return dirs
}

var typedOnce = sync.OnceValues(func() (*module, error) {
	root, err := Root()
	if err != nil {
		return nil, err
	}
	return checkModule(root)
})

func typed(t *testing.T) (*module, []*File) {
	m, err := typedOnce()
	require.NoError(t, err)
	files, err := Load(m.root)
	require.NoError(t, err)
	return m, files
}

// internal reports whether users can not import the packages of a folder.
func internal(dir string) bool { return slices.Contains(strings.Split(dir, "/"), "internal") }

// No exported signature names a type of a package that users can not import.
func TestNoInternalTypes(t *testing.T) {
	m, _ := typed(t)
	for _, p := range m.order {
		dir, _ := local(p.ImportPath)
		if p.checked.Name() == "main" || internal(dir) {
			continue
		}
		for _, found := range foreign(p.checked, func(o *types.TypeName) bool {
			dir, ok := local(o.Pkg().Path())
			return ok && internal(dir)
		}) {
			t.Error(found)
		}
	}
}

// foreign names what users can see of a package and is of a type that is refused.
func foreign(p *types.Package, refused func(*types.TypeName) bool) []string {
	var found []string
	var walk func(where string, t types.Type)
	tuple := func(where string, v *types.Tuple) {
		for x := range v.Variables() {
			walk(where, x.Type())
		}
	}
	walk = func(where string, t types.Type) {
		switch t := t.(type) {
		case *types.Alias:
			if o := t.Obj(); o.Pkg() != nil && refused(o) {
				found = append(found, fmt.Sprintf("%s names %s, which users can not import", where, t))
			}
			for a := range t.TypeArgs().Types() {
				walk(where, a)
			}
		case *types.Named:
			if o := t.Obj(); o.Pkg() != nil && refused(o) {
				found = append(found, fmt.Sprintf("%s names %s, which users can not import", where, t))
			}
			for a := range t.TypeArgs().Types() {
				walk(where, a)
			}
		case *types.Pointer:
			walk(where, t.Elem())
		case *types.Slice:
			walk(where, t.Elem())
		case *types.Array:
			walk(where, t.Elem())
		case *types.Chan:
			walk(where, t.Elem())
		case *types.Map:
			walk(where, t.Key())
			walk(where, t.Elem())
		case *types.Signature:
			tuple(where, t.Params())
			tuple(where, t.Results())
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					walk(where+"."+f.Name(), f.Type())
				}
			}
		case *types.Interface:
			for m := range t.ExplicitMethods() {
				if m.Exported() {
					walk(where+"."+m.Name(), m.Signature())
				}
			}
			for e := range t.EmbeddedTypes() {
				walk(where, e)
			}
		}
	}
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		where := p.Path() + "." + name
		n, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok {
			walk(where, o.Type())
			continue
		}
		walk(where, n.Underlying())
		for m := range n.Methods() {
			if m.Exported() {
				walk(where+"."+m.Name(), m.Signature())
			}
		}
	}
	return found
}

// Both rules find what they are there for.
func TestTypedRules(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{
		"go.mod": "module " + Module + "\n\ngo 1.26\n",
		"a/a.go": `// Package a.
package a

import "` + Module + `/internal/b"

type T struct{ hidden b.B }

func (T) Used()       {}
func (T) Unused()     {}
func (T) Error() string { return "" }
func (T) Told(m map[string]*b.B) {}
func New() T          { return T{} }
func Unused()         {}

type Asked interface{ Called(); Never() }

func Call(x Asked) { x.Called() }
`,
		"a/a_test.go":     "package a\nimport \"testing\"\nfunc TestUnused(t *testing.T) { Unused(); T{}.Unused(); ExampleOnly() }\nfunc ExampleOnly() { New().Told(nil) }\n",
		"internal/b/b.go": "// Package b.\npackage b\ntype B struct{}\nfunc Unused() {}\n",
		"cmd/main.go":     "package main\nimport \"" + Module + "/a\"\nfunc main() { a.New().Used(); a.Call(nil) }\n",
	} {
		require.NoError(t, os.MkdirAll(path.Dir(path.Join(dir, name)), 0o777))
		require.NoError(t, os.WriteFile(path.Join(dir, name), []byte(src), 0o666))
	}
	m, err := checkModule(dir)
	require.NoError(t, err)
	require.Equal(t, []string{"a.Asked.Never", "a.T.Unused", "a.Unused"}, newSurface(m).unused())
	require.Equal(t, []string{Module + "/a.T.Told names " + Module + "/internal/b.B, which users can not import"},
		foreign(m.pkgs[Module+"/a"].checked, func(o *types.TypeName) bool { return strings.Contains(o.Pkg().Path(), "/internal/") }))
}
