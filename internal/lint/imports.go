package lint

import (
	"fmt"
	"slices"
)

// backends are the packages that implement cuda.Device, or choose one that
// does. Libraries take the interface.
var backends = []string{"cuda/sim", "cuda/driver", "cuda/softcuda", "cuda/gorgonia", "cuda/nvml", "cuda/auto"}

// rig is where tests, scenarios, examples and programs get a simulated gate
// from. It is for them alone, and the only package below the gate that may know
// a back end.
const rig = "loadgate/gatetest"

// only says that the packages in from may import of this module nothing but the
// listed packages (with what is below them) and each other. Standard, where
// not nil, lists the other packages that they may import.
type only struct {
	from     string
	exact    bool // from alone, without what is below it
	allow    []string
	standard []string
}

var layers = []only{
	{from: "cuda", exact: true, allow: []string{"clock"}},
	{from: "clock"},
	{from: "internal/fifo"},
	{from: "internal/dl"},
	{from: "memory/kv", standard: []string{"fmt", "math"}},
	{from: "memory/layout", allow: []string{"memory/kv"}},
	{from: "event", allow: []string{"cuda", "clock", "internal", "memory/kv"}},
	{from: "stream", allow: []string{"cuda", "clock", "internal", "memory/kv", "event"}},
	{from: "memory", exact: true, allow: []string{"cuda", "clock", "internal", "memory/kv", "memory/layout", "event", "stream"}},
	{from: "kernels", allow: []string{"cuda", "clock", "internal", "memory", "event", "stream"}},
	{from: "nixl/softnic", allow: []string{"nixl", "clock"}},
	{from: "nixl", allow: []string{"clock", "internal/dl", "internal/abi", "internal/leak"}},
	{from: "loadgate/core", allow: []string{"memory/kv"}, standard: []string{"cmp", "errors", "fmt", "math", "slices"}},
	{from: rig, allow: []string{"cuda", "clock", "event", "stream", "memory", "kernels", "nixl", "loadgate", "internal"}},
	{from: "loadgate", allow: []string{"cuda", "clock", "event", "stream", "memory", "kernels", "nixl", "internal"}},
}

// Imports checks that imports go one way: event, stream, memory, kernels, each
// on those before it, on cuda and on clock; nixl knows nothing of cuda; the
// gate's core is plain; and no library but those for it knows a back end or
// which clock it runs on.
func Imports(f *File) []string {
	var found []string
	for _, p := range f.Imports() {
		if why := refuse(f, p); why != "" {
			found = append(found, fmt.Sprintf("%s: imports %s: %s", f.Path, p, why))
		}
	}
	return found
}

func refuse(f *File, importPath string) string {
	dir, isLocal := local(importPath)
	for _, l := range layers {
		if f.Dir() != l.from && (l.exact || !under(f.Dir(), l.from)) {
			continue
		}
		if f.Test() || f.Command() {
			break
		}
		if !isLocal {
			if l.standard != nil && !slices.Contains(l.standard, importPath) {
				return fmt.Sprintf("%s may import only %v", l.from, l.standard)
			}
			break
		}
		if !slices.ContainsFunc(append(l.allow, l.from), func(a string) bool { return under(dir, a) }) {
			return fmt.Sprintf("%s may import of this module only %v", l.from, l.allow)
		}
		break // the first, most particular, entry decides
	}
	if !isLocal || f.Test() || f.Command() {
		return ""
	}
	if under(dir, "bench") && !f.In("bench") {
		return "bench is on top of everything"
	}
	if under(dir, rig) && !f.In("bench", "examples", rig) {
		return "the rig is for tests, examples and programs"
	}
	if f.In("cuda") && !under(dir, "cuda") && !under(dir, "clock") && !under(dir, "internal") && !under(dir, "memory/kv") {
		return "cuda is below the packages that use it"
	}
	if under(dir, "clock/vtime") && !f.In("clock", "cuda", "nixl/softnic", "bench", rig) {
		return "a library takes a clock.Clock; simulated parts, tests, commands and bench choose the world"
	}
	for _, b := range backends {
		if under(dir, b) && !f.In("cuda", "bench", "kernels/internal", rig) {
			return "a library takes a cuda.Device; tests, commands and bench choose the back end"
		}
	}
	return ""
}
