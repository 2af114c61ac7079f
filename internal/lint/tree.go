package lint

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// Module is the path of the module that is checked.
const Module = "github.com/kvgate/kvgate"

// File is a file of the module. Ast is nil for what is not Go.
type File struct {
	Path string // slash-separated, relative to the root
	Src  []byte
	Fset *token.FileSet
	Ast  *ast.File
}

// Parse makes a File of a source. Only Go sources are parsed.
func Parse(name string, src []byte) (*File, error) {
	f := &File{Path: name, Src: src}
	if !strings.HasSuffix(name, ".go") {
		return f, nil
	}
	f.Fset = token.NewFileSet()
	var err error
	f.Ast, err = parser.ParseFile(f.Fset, name, src, parser.ParseComments|parser.SkipObjectResolution)
	return f, err
}

// Dir returns the folder of the file; "." is the root.
func (f *File) Dir() string { return path.Dir(f.Path) }

// Test reports whether the file is part of a test.
func (f *File) Test() bool { return strings.HasSuffix(f.Path, "_test.go") }

// Command reports whether the file is part of a program.
func (f *File) Command() bool { return f.Ast != nil && f.Ast.Name.Name == "main" }

// In reports whether the file lies in one of the folders or below it.
func (f *File) In(dirs ...string) bool {
	for _, d := range dirs {
		if under(f.Dir(), d) {
			return true
		}
	}
	return false
}

func under(dir, parent string) bool {
	return dir == parent || strings.HasPrefix(dir, parent+"/")
}

// Imports returns the paths that the file imports.
func (f *File) Imports() []string {
	var paths []string
	if f.Ast != nil {
		for _, s := range f.Ast.Imports {
			p, _ := strconv.Unquote(s.Path.Value) // the parser has checked it
			paths = append(paths, p)
		}
	}
	return paths
}

// local returns the folder of an imported package of this module.
func local(importPath string) (dir string, ok bool) {
	return strings.CutPrefix(importPath, Module+"/")
}

func (f *File) at(n ast.Node, format string, args ...any) string {
	return fmt.Sprintf("%s:%d: %s", f.Path, f.Fset.Position(n.Pos()).Line, fmt.Sprintf(format, args...))
}

// Root returns the root of the module that the working folder lies in.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", fmt.Errorf("lint: no go.mod above the working folder")
		}
		dir = up
	}
}

// Load reads the files below root: those that git knows, or all of them, but
// for hidden folders, where root is no work tree.
func Load(root string) ([]*File, error) {
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	var files []*File
	for _, name := range names {
		src, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		if os.IsNotExist(err) {
			continue // known to git, deleted here
		}
		if err != nil {
			return nil, err
		}
		f, err := Parse(name, src)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	return files, nil
}

func list(root string) ([]string, error) {
	out, err := exec.Command("git", "-C", root, "ls-files", "-z").Output()
	if err == nil {
		return strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"), nil
	}
	var names []string
	err = filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		if d.IsDir() && rel != "." && strings.HasPrefix(d.Name(), ".") && d.Name() != ".ci" {
			return filepath.SkipDir
		}
		if d.Type().IsRegular() {
			names = append(names, filepath.ToSlash(rel))
		}
		return nil
	})
	return names, err
}
