package lint

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
)

// timeKeepers is the folder of the packages that hold the clocks.
const timeKeepers = "clock"

// ban is a function that is not called here, and what is used instead.
type ban struct {
	pkg, name string
	instead   string
}

const (
	useClock    = "the device's clock (clock.Clock)"
	useDeadline = "a deadline of clock.Clock WaitUntil, or context.WithCancelCause: a context cancels, it is not a clock"
	useReturn   = "a returned value or an io.Writer of the caller's"
)

// Tests may measure by the wall clock, but not wait by it.
var readBans = []ban{
	{"time", "Now", useClock + " Now"},
	{"time", "Since", useClock + " Now"},
	{"time", "Until", useClock + " Now"},
}

var bans = []ban{
	{"time", "Sleep", useClock + " Sleep"},
	{"time", "After", useClock + " WaitUntil with a deadline"},
	{"time", "AfterFunc", useClock + " Go and Sleep"},
	{"time", "Tick", useClock + " Sleep in a loop"},
	{"time", "NewTimer", useClock + " WaitUntil with a deadline"},
	{"time", "NewTicker", useClock + " Sleep in a loop"},
	{"context", "WithTimeout", useDeadline},
	{"context", "WithTimeoutCause", useDeadline},
	{"context", "WithDeadline", useDeadline},
	{"context", "WithDeadlineCause", useDeadline},
}

var libraryBans = []ban{
	{"fmt", "Print", useReturn},
	{"fmt", "Printf", useReturn},
	{"fmt", "Println", useReturn},
	{"os", "Exit", "a returned error"},
	{"log", "*", useReturn},
}

// importName returns the name that the file calls the package by, or "".
func importName(f *File, pkg string) string {
	for i, p := range f.Imports() {
		if p != pkg {
			continue
		}
		if n := f.Ast.Imports[i].Name; n != nil {
			return n.Name
		}
		return pkg[strings.LastIndex(pkg, "/")+1:]
	}
	return ""
}

// Calls checks that banned functions are not used: those of package time
// outside the clocks, and in libraries those that print or end the program.
func Calls(f *File) []string {
	if f.Ast == nil {
		return nil
	}
	var active []ban
	if !f.In(timeKeepers) {
		active = append(active, bans...)
		if !f.Test() {
			active = append(active, readBans...)
		}
	}
	if !f.Test() && !f.Command() {
		active = append(active, libraryBans...)
	}
	names := map[string][]ban{}
	for _, b := range active {
		if n := importName(f, b.pkg); n != "" {
			names[n] = append(names[n], b)
		}
	}
	var found []string
	ast.Inspect(f.Ast, func(n ast.Node) bool {
		sel, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		id, ok := sel.X.(*ast.Ident)
		if !ok {
			return true
		}
		for _, b := range names[id.Name] {
			if b.name == sel.Sel.Name || b.name == "*" {
				found = append(found, f.at(sel, "%s.%s: use %s", b.pkg, sel.Sel.Name, b.instead))
			}
		}
		return true
	})
	if importName(f, "math/rand") != "" {
		found = append(found, f.Path+": math/rand: use math/rand/v2")
	}
	return found
}

// Goroutines checks that goroutines start through clock.Clock Go, so that
// virtual time knows of them.
func Goroutines(f *File) []string {
	if f.Ast == nil || f.Test() || f.In(timeKeepers) {
		return nil
	}
	var found []string
	ast.Inspect(f.Ast, func(n ast.Node) bool {
		if g, ok := n.(*ast.GoStmt); ok {
			found = append(found, f.at(g, "go statement: use clock.Clock Go"))
		}
		return true
	})
	return found
}

// Core checks that the gate's core has no goroutine, channel or C.
func Core(f *File) []string {
	if f.Ast == nil || f.Test() || !f.In("loadgate/core") {
		return nil
	}
	var found []string
	refuse := func(n ast.Node, what string) {
		found = append(found, f.at(n, "%s: the core is pure: return an output and let the runtime act on it", what))
	}
	ast.Inspect(f.Ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			refuse(n, "go statement")
		case *ast.ChanType:
			refuse(n, "channel")
		case *ast.SendStmt:
			refuse(n, "send")
		case *ast.SelectStmt:
			refuse(n, "select")
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				refuse(n, "receive")
			}
		case *ast.ImportSpec:
			if n.Path.Value == `"C"` {
				refuse(n, "cgo")
			}
		}
		return true
	})
	return found
}

// Pointers checks that no number is turned into a pointer: a device address is
// an integer, and one that looks like a Go pointer upsets the collector.
func Pointers(f *File) []string {
	name := ""
	if f.Ast != nil {
		name = importName(f, "unsafe")
	}
	if name == "" {
		return nil
	}
	var found []string
	ast.Inspect(f.Ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 || !isSelector(call.Fun, name, "Pointer") {
			return true
		}
		if inner, ok := call.Args[0].(*ast.CallExpr); ok {
			if id, ok := inner.Fun.(*ast.Ident); ok && id.Name == "uintptr" {
				found = append(found, f.at(call, "unsafe.Pointer(uintptr): keep the address an integer (cuda.DevicePtr), or use unsafe.Add on a real pointer"))
			}
		}
		return true
	})
	return found
}

func isSelector(e ast.Expr, x, sel string) bool {
	s, ok := e.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != sel {
		return false
	}
	id, ok := s.X.(*ast.Ident)
	return ok && id.Name == x
}

// The words are put together here so that this file does not hold them.
var bannedWords = []struct{ word, instead string }{
	{"/wo" + "rk/", "a path relative to the repository's root"},
	{"/ro" + "ot/", "a path relative to the repository's root"},
	{"/ho" + "me/", "a path relative to the repository's root"},
	{"proxy.gol" + "ang.org", "the tools' own default registry"},
	{"py" + "pi.org", "the tools' own default registry"},
	{"files.pythonh" + "osted.org", "the tools' own default registry"},
}

// Words checks that a file tells nothing of the machine that it was written
// on.
func Words(f *File) []string {
	var found []string
	for i, line := range strings.Split(string(f.Src), "\n") {
		for _, w := range bannedWords {
			if strings.Contains(line, w.word) {
				found = append(found, fmt.Sprintf("%s:%d: %q: use %s", f.Path, i+1, w.word, w.instead))
			}
		}
	}
	return found
}
