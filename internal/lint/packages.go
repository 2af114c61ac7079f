package lint

import (
	"fmt"
	"slices"
	"strings"
)

// Docs checks that each package says what it is for, in one file.
func Docs(files []*File) []string {
	docs := map[string]int{}
	var dirs []string
	for _, f := range files {
		if f.Ast == nil || f.Test() || strings.Contains(f.Path, "testdata/") {
			continue
		}
		if _, ok := docs[f.Dir()]; !ok {
			docs[f.Dir()] = 0
			dirs = append(dirs, f.Dir())
		}
		if f.Ast.Doc != nil && strings.TrimSpace(f.Ast.Doc.Text()) != "" {
			docs[f.Dir()]++
		}
	}
	slices.Sort(dirs)
	var found []string
	for _, d := range dirs {
		if docs[d] == 0 {
			found = append(found, fmt.Sprintf("%s: no package comment: say what the package is for", d))
		}
	}
	return found
}

// FileRules are the rules for one file, by name.
var FileRules = map[string]func(*File) []string{
	"imports":    Imports,
	"calls":      Calls,
	"goroutines": Goroutines,
	"core":       Core,
	"pointers":   Pointers,
	"words":      Words,
}
