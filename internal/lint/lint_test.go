package lint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestModule(t *testing.T) {
	root, err := Root()
	require.NoError(t, err)
	files, err := Load(root)
	require.NoError(t, err)
	require.Greater(t, len(files), 20, "the module was not found")
	for name, rule := range FileRules {
		t.Run(name, func(t *testing.T) {
			for _, f := range files {
				for _, found := range rule(f) {
					t.Error(found)
				}
			}
		})
	}
	t.Run("docs", func(t *testing.T) {
		for _, found := range Docs(files) {
			t.Error(found)
		}
	})
}

// Each rule refuses what it is there for, and lets its neighbour pass.
func TestRules(t *testing.T) {
	imports := func(p string) string { return "package p\nimport _ \"" + p + "\"\n" }
	own := func(dir string) string { return imports(Module + "/" + dir) }
	body := func(pkg, stmt string) string {
		return "package p\nimport \"" + pkg + "\"\nfunc f() { " + stmt + " }\n"
	}
	for _, c := range []struct {
		rule, path, src string
		says            string // "" : passes
	}{
		{"imports", "event/x.go", own("stream"), "event may import of this module only"},
		{"imports", "event/x.go", own("cuda"), ""},
		{"imports", "event/x.go", own("cuda/sim"), "a library takes a cuda.Device"},
		{"imports", "event/x_test.go", own("cuda/sim"), ""},
		{"imports", "stream/x.go", own("event"), ""},
		{"imports", "stream/x.go", own("memory"), "stream may import"},
		{"imports", "memory/x.go", own("kernels"), "memory may import"},
		{"imports", "memory/layout/x.go", own("memory"), "memory/layout may import"},
		{"imports", "memory/kv/kv.go", imports("time"), "memory/kv may import only [fmt math]"},
		{"imports", "kernels/x.go", own("loadgate"), "kernels may import"},
		{"imports", "kernels/x.go", own("cuda/auto"), "a library takes a cuda.Device"},
		{"imports", "kernels/internal/mk/x.go", own("cuda/auto"), ""},
		{"imports", "cuda/x.go", own("clock"), ""},
		{"imports", "cuda/x.go", own("memory/kv"), "cuda may import of this module only [clock]"},
		{"imports", "cuda/sim/x.go", own("clock/vtime"), ""},
		{"imports", "cuda/sim/x.go", own("event"), "cuda is below"},
		{"imports", "nixl/x.go", own("cuda"), "nixl may import"},
		{"imports", "nixl/x.go", own("memory/kv"), "nixl may import"},
		{"imports", "nixl/x.go", own("clock"), ""},
		{"imports", "nixl/softnic/x.go", own("nixl"), ""},
		{"imports", "nixl/softnic/x.go", own("cuda/sim"), "nixl/softnic may import"},
		{"imports", "loadgate/core/x.go", own("memory/kv"), ""},
		{"imports", "loadgate/core/x.go", own("memory"), "loadgate/core may import"},
		{"imports", "loadgate/core/x.go", imports("time"), "loadgate/core may import only"},
		{"imports", "loadgate/core/x.go", imports("sync"), "loadgate/core may import only"},
		{"imports", "loadgate/core/x.go", imports("slices"), ""},
		{"imports", "loadgate/x.go", own("cuda/sim"), "a library takes a cuda.Device"},
		{"imports", "loadgate/x.go", own("bench/pipeline"), "loadgate may import"},
		{"imports", "loadgate/x_test.go", own("cuda/sim"), ""},
		{"imports", "loadgate/x.go", own("clock"), ""},
		{"imports", "loadgate/x.go", own("clock/vtime"), "a library takes a clock.Clock"},
		{"imports", "loadgate/x.go", own("loadgate/gatetest"), "the rig is for tests"},
		{"imports", "loadgate/core/x.go", own("clock"), "loadgate/core may import"},
		{"imports", "loadgate/gatetest/x.go", own("cuda/sim"), ""},
		{"imports", "loadgate/gatetest/scenario/x.go", own("clock/vtime"), ""},
		{"imports", "loadgate/gatetest/scenario/x.go", own("loadgate/gatetest"), ""},
		{"imports", "loadgate/gatetest/x.go", own("bench/race"), "loadgate/gatetest may import"},
		{"imports", "bench/pipeline/engine/x.go", own("loadgate/gatetest"), ""},
		{"imports", "internal/x/x.go", own("bench"), "bench is on top"},
		{"imports", "clock/x.go", own("cuda"), "clock may import"},
		{"imports", "clock/x_test.go", own("cuda"), ""},
		{"imports", "bench/race/main.go", "package main\nimport _ \"" + Module + "/cuda/auto\"\n", ""},

		{"calls", "event/x.go", body("time", "time.Now()"), "time.Now: use the device's clock"},
		{"calls", "event/x_test.go", body("time", "time.Sleep(1)"), "time.Sleep: use the device's clock"},
		{"calls", "event/x_test.go", body("time", "time.Now()"), ""},
		{"calls", "event/x.go", body("time", "_ = time.After"), "time.After: use"},
		{"calls", "event/x.go", body("time", "time.NewTimer(1)"), "time.NewTimer: use"},
		{"calls", "event/x.go", body("time", "time.Tick(1)"), "time.Tick: use"},
		{"calls", "event/x.go", body("time", "_ = time.Second"), ""},
		{"calls", "event/x.go", "package p\nimport t \"time\"\nvar _ = t.Now\n", "time.Now: use"},
		{"calls", "clock/wall.go", body("time", "time.Now()"), ""},
		{"calls", "clocks/wall.go", body("time", "time.Now()"), "time.Now: use"},
		{"calls", "event/x.go", body("context", "context.WithTimeout(nil, 1)"), "a context cancels"},
		{"calls", "event/x.go", body("fmt", "fmt.Println()"), "fmt.Println: use a returned value"},
		{"calls", "event/x_test.go", body("fmt", "fmt.Println()"), ""},
		{"calls", "event/x.go", body("log", "log.Fatal()"), "log.Fatal: use"},
		{"calls", "event/x.go", body("os", "os.Exit(1)"), "os.Exit: use a returned error"},
		{"calls", "bench/race/main.go", "package main\nimport \"os\"\nfunc main() { os.Exit(1) }\n", ""},
		{"calls", "event/x.go", imports("math/rand"), "use math/rand/v2"},

		{"goroutines", "event/x.go", "package p\nfunc f() { go f() }\n", "x.go:2: go statement: use clock.Clock Go"},
		{"goroutines", "event/x_test.go", "package p\nfunc f() { go f() }\n", ""},
		{"goroutines", "clock/vtime/x.go", "package p\nfunc f() { go f() }\n", ""},

		{"core", "loadgate/core/x.go", "package p\nfunc f() { go f() }\n", "go statement"},
		{"core", "loadgate/core/x.go", "package p\nvar c chan int\n", "channel"},
		{"core", "loadgate/core/x.go", "package p\nfunc f(c any) { <-c }\n", "receive"},
		{"core", "loadgate/core/x.go", "package p\nfunc f(c any) { c <- 1 }\n", "send"},
		{"core", "loadgate/core/x.go", "package p\nfunc f() { select {} }\n", "select"},
		{"core", "loadgate/core/x.go", "package p\nimport \"C\"\n", "cgo"},
		{"core", "loadgate/x.go", "package p\nvar c chan int\n", ""},

		{"pointers", "cuda/x.go", body("unsafe", "_ = unsafe.Pointer(uintptr(1))"), "keep the address an integer"},
		{"pointers", "cuda/x.go", "package p\nimport u \"unsafe\"\nvar p = u.Pointer(uintptr(1))\n", "keep the address an integer"},
		{"pointers", "cuda/x.go", body("unsafe", "var x int; _ = unsafe.Pointer(&x)"), ""},

		{"words", "README.md", "see /wo" + "rk/main", "use a path relative"},
		{"words", "a.sh", "cd ~\ncd /ro" + "ot/go", "a.sh:2"},
		{"words", "README.md", "work in progress", ""},
	} {
		t.Run(c.rule+" "+c.path, func(t *testing.T) {
			f, err := Parse(c.path, []byte(c.src))
			require.NoError(t, err)
			found := FileRules[c.rule](f)
			if c.says == "" {
				require.Empty(t, found)
				return
			}
			require.NotEmpty(t, found, "not refused:\n%s", c.src)
			require.Contains(t, found[0], c.says)
		})
	}
}

func TestDocsRule(t *testing.T) {
	parse := func(path, src string) *File {
		f, err := Parse(path, []byte(src))
		require.NoError(t, err)
		return f
	}
	good := parse("a/doc.go", "// Package a is for b.\npackage a\n")
	more := parse("a/more.go", "package a\n")
	bad := parse("b/b.go", "package b\n")
	detached := parse("c/c.go", "// Package c.\n\npackage c\n")
	test := parse("d/d_test.go", "package d\n")
	require.Equal(t, []string{
		"b: no package comment: say what the package is for",
		"c: no package comment: say what the package is for",
	}, Docs([]*File{bad, detached, good, more, test}))
}

// Without git the tree is walked, and hidden folders are left out.
func TestLoadWithoutGit(t *testing.T) {
	dir := t.TempDir()
	for name, src := range map[string]string{"a.go": "package a", ".ci/run": "x", ".cache/b.go": "no Go", "c/d.md": "d"} {
		require.NoError(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o777))
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(src), 0o666))
	}
	files, err := Load(dir)
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	require.Equal(t, []string{".ci/run", "a.go", "c/d.md"}, names)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "broken.go"), []byte("no Go"), 0o666))
	_, err = Load(dir)
	require.ErrorContains(t, err, "broken.go")
}
