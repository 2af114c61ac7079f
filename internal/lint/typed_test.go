package lint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
)

// listed is a package as go list describes it.
type listed struct {
	ImportPath, Dir, ForTest  string
	GoFiles, CgoFiles         []string
	TestGoFiles, XTestGoFiles []string
	ImportMap                 map[string]string
	Module                    *struct{ Main bool }
	Error                     *struct{ Err string }

	checked *types.Package // without its tests
}

// unit is a set of files that are checked together: a package, a package with
// its own tests, or the tests outside it.
type unit struct {
	path  string // of the package that the files belong to
	dir   string // relative to the root
	pkg   *types.Package
	info  *types.Info
	files []*ast.File
	test  func(*ast.File) bool // a file of the unit that counts as a test

	command bool
}

// module is the whole module with its types: each package of it, each again
// with its tests. What it imports from elsewhere is checked without bodies.
type module struct {
	root  string
	fset  *token.FileSet
	pkgs  map[string]*listed
	order []*listed // of this module, as go list has them
	units []*unit
}

// checkModule types the module that root is the root of. The sources are those
// for Linux on amd64 with cgo; calls into C have no types.
func checkModule(root string) (*module, error) {
	m := &module{root: root, fset: token.NewFileSet(), pkgs: map[string]*listed{}}
	list := exec.Command("go", "list", "-deps", "-test", "-e",
		"-json=ImportPath,Dir,ForTest,GoFiles,CgoFiles,TestGoFiles,XTestGoFiles,ImportMap,Module,Error", "./...")
	list.Dir = root
	list.Env = append(list.Environ(), "CGO_ENABLED=1", "GOOS=linux", "GOARCH=amd64")
	out, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("lint: %w: %s", err, stderr(err))
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.ForTest != "" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		if p.Error != nil {
			return nil, fmt.Errorf("lint: %s: %s", p.ImportPath, p.Error.Err)
		}
		m.pkgs[p.ImportPath] = p
		if p.Module != nil && p.Module.Main {
			m.order = append(m.order, p)
		}
	}
	for _, p := range m.order {
		if _, err := m.check(p); err != nil {
			return nil, err
		}
	}
	for _, p := range m.order {
		if err := m.checkTests(p); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func stderr(err error) string {
	if e := (*exec.ExitError)(nil); errors.As(err, &e) {
		return string(e.Stderr)
	}
	return ""
}

func (m *module) own(p *listed) bool { return p.Module != nil && p.Module.Main }

func (m *module) parse(p *listed, names ...[]string) ([]*ast.File, error) {
	var files []*ast.File
	for _, list := range names {
		for _, name := range list {
			f, err := parser.ParseFile(m.fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil {
				return nil, err
			}
			files = append(files, f)
		}
	}
	return files, nil
}

// importer finds the packages that p imports; self, where not nil, stands for
// p itself, as tests outside a package see it.
type importer struct {
	m    *module
	p    *listed
	self *types.Package
}

func (i importer) Import(path string) (*types.Package, error) {
	if path == "unsafe" {
		return types.Unsafe, nil
	}
	if i.self != nil && path == i.p.ImportPath {
		return i.self, nil
	}
	if to, ok := i.p.ImportMap[path]; ok {
		path = to
	}
	dep := i.m.pkgs[path]
	if dep == nil {
		return nil, fmt.Errorf("lint: go list does not know %s", path)
	}
	return i.m.check(dep)
}

func (m *module) types(p *listed, name string, self *types.Package, files []*ast.File) (*unit, error) {
	var failed error
	conf := types.Config{
		Importer: importer{m, p, self}, FakeImportC: true, Sizes: types.SizesFor("gc", "amd64"),
		IgnoreFuncBodies: !m.own(p),
		Error: func(err error) {
			// What comes from C has no type here; the compiler checks those files.
			if failed == nil && m.own(p) && len(p.CgoFiles) == 0 {
				failed = err
			}
		},
	}
	u := &unit{path: p.ImportPath, files: files, info: &types.Info{
		Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
		Selections: map[*ast.SelectorExpr]*types.Selection{},
	}}
	if m.own(p) {
		u.dir, _ = local(p.ImportPath)
	}
	u.command = len(files) > 0 && files[0].Name.Name == "main"
	u.pkg, _ = conf.Check(name, m.fset, files, u.info) // the first error is in failed
	return u, failed
}

func (m *module) check(p *listed) (*types.Package, error) {
	if p.checked != nil {
		return p.checked, nil
	}
	files, err := m.parse(p, p.GoFiles, p.CgoFiles)
	if err != nil {
		return nil, err
	}
	u, err := m.types(p, p.ImportPath, nil, files)
	if err != nil {
		return nil, err
	}
	p.checked = u.pkg
	if m.own(p) {
		u.test = func(*ast.File) bool { return false }
		m.units = append(m.units, u)
	}
	return p.checked, nil
}

func (m *module) checkTests(p *listed) error {
	self := p.checked
	isTest := func(f *ast.File) bool { return strings.HasSuffix(m.fset.Position(f.Package).Filename, "_test.go") }
	if len(p.TestGoFiles) > 0 {
		files, err := m.parse(p, p.GoFiles, p.CgoFiles, p.TestGoFiles)
		if err != nil {
			return err
		}
		u, err := m.types(p, p.ImportPath, nil, files)
		if err != nil {
			return err
		}
		u.test, self = isTest, u.pkg
		m.units = append(m.units, u)
	}
	if len(p.XTestGoFiles) > 0 {
		files, err := m.parse(p, p.XTestGoFiles)
		if err != nil {
			return err
		}
		// Packages that these tests import may import p: then it has to be the same
		// p, and not the one with its own tests, which only few of them need.
		u, err := m.types(p, p.ImportPath+"_test", p.checked, files)
		if err != nil && self != p.checked {
			u, err = m.types(p, p.ImportPath+"_test", self, files)
		}
		if err != nil {
			return err
		}
		u.test = isTest
		m.units = append(m.units, u)
	}
	return nil
}
