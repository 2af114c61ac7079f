package libnixl

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/nixl"
)

const (
	// LibraryVariable names the environment variable with the path of
	// libnixl_capi.so. Where it is set, nothing else is tried.
	LibraryVariable = "KVGATE_NIXL_LIB"
	// PluginVariable is where the library itself looks for its plugins.
	PluginVariable = "NIXL_PLUGIN_DIR"

	libraryName = "libnixl_capi.so"
)

// Library is the loaded library. It is never unloaded, since it leaves threads
// and handlers of the process behind. Methods are safe for use by several
// goroutines.
type Library struct {
	d       driver
	path    string
	plugins string
	ours    bool // plugins was chosen here
	tried   []string

	started atomic.Bool // it has read where its plugins are

	mu      sync.Mutex
	signals []int
}

// Options say where Open looks. The zero value means: by the environment.
type Options struct {
	// Path, if set, is the only file tried; it goes before LibraryVariable. Both
	// may be relative to the working folder.
	Path string
	// Folders are searched for installed wheels instead of the Python folders
	// of this machine.
	Folders []string
}

var opened struct {
	sync.Mutex
	byPath map[string]*Library
}

// Open loads the library: the file that KVGATE_NIXL_LIB names, else the one on
// the loader's path, else that of an installed wheel (nixl-cu12, nixl-cu13),
// which hides it in a folder of its own. NIXL_PLUGIN_DIR is set to the folder
// of the library's plugins unless it is set already; of several libraries each
// gets its own.
//
// The error is an [nixl.ErrUnavailable] that says why each file could not be
// used: there is none, it lacks the symbol to probe, or it is a stub, which
// answers every call without doing anything.
func Open() (*Library, error) { return OpenWithOptions(Options{}) }

// OpenWithOptions is Open with the places to look given.
func OpenWithOptions(o Options) (*Library, error) {
	opened.Lock()
	defer opened.Unlock()
	var tried []string
	cause := nixl.ErrUnavailable
	files, err := candidates(o)
	if err != nil {
		return nil, nixl.Refuse("open", "", nixl.ErrUnavailable, "%v", err)
	}
	for _, file := range files {
		if l := opened.byPath[file]; l != nil {
			return l, nil
		}
		l, err := load(file)
		if err != nil {
			tried = append(tried, fmt.Sprintf("%s: %v", file, err))
			if errors.Is(err, dl.ErrNoCgo) {
				cause = fmt.Errorf("%w: %w", nixl.ErrUnavailable, dl.ErrNoCgo)
			}
			continue
		}
		if same := opened.byPath[l.path]; same != nil {
			return same, nil
		}
		l.tried = tried
		if opened.byPath == nil {
			opened.byPath = map[string]*Library{}
		}
		opened.byPath[file], opened.byPath[l.path] = l, l
		return l, nil
	}
	return nil, nixl.Refuse("open", "", cause, "%s", strings.Join(tried, "; "))
}

func load(file string) (*Library, error) {
	l := &Library{}
	var stub bool
	var err error
	l.noteSignals(guardSignals(func() { l.d, l.path, stub, err = openDriver(file) }))
	switch {
	case err != nil:
		return nil, err
	case stub:
		return nil, fmt.Errorf("%s is a stub", l.path)
	}
	return l, l.choosePlugins()
}

// chosen is what NIXL_PLUGIN_DIR was set to here.
var chosen struct {
	sync.Mutex
	folder string // "": nothing
}

func (l *Library) choosePlugins() error {
	chosen.Lock()
	defer chosen.Unlock()
	l.plugins = os.Getenv(PluginVariable)
	if l.plugins != "" && l.plugins != chosen.folder {
		return nil
	}
	l.plugins, l.ours = "", true
	dir := filepath.Join(filepath.Dir(l.path), "plugins")
	if st, err := os.Stat(dir); err == nil && st.IsDir() {
		l.plugins = dir
	}
	return l.tellPlugins()
}

// tellPlugins sets the variable for this library. The caller holds chosen.
func (l *Library) tellPlugins() error {
	chosen.folder = l.plugins
	if l.plugins == "" {
		return os.Unsetenv(PluginVariable)
	}
	return os.Setenv(PluginVariable, l.plugins)
}

// withPlugins calls fn, which makes an agent. The library reads the variable when
// it makes its first: by then it may be another library's, or the program's.
func (l *Library) withPlugins(fn func()) error {
	if !l.ours || l.started.Load() {
		fn()
		return nil
	}
	chosen.Lock()
	defer chosen.Unlock()
	if os.Getenv(PluginVariable) == chosen.folder {
		if err := l.tellPlugins(); err != nil {
			return err
		}
	}
	fn()
	l.started.Store(true)
	return nil
}

// candidates returns the files to try, in order. One that is named is made
// absolute: plugins and version are found from where it lies, even when the
// process changes its folder.
func candidates(o Options) ([]string, error) {
	named := o.Path
	if named == "" {
		named = os.Getenv(LibraryVariable)
	}
	if named != "" {
		f, err := filepath.Abs(named)
		return []string{f}, err
	}
	files := []string{libraryName}
	folders := o.Folders
	if folders == nil {
		folders = pythonFolders()
	}
	for _, wheel := range []string{"cu12", "cu13", "cu*", ""} {
		pattern := ".nixl_" + wheel + ".mesonpy.libs"
		if wheel == "" {
			pattern = ".nixl.mesonpy.libs"
		}
		for _, dir := range folders {
			found, _ := filepath.Glob(filepath.Join(dir, pattern, libraryName)) // only a bad pattern is an error
			for _, f := range found {
				if !slices.Contains(files, f) {
					files = append(files, f)
				}
			}
		}
	}
	return files, nil
}

// pythonFolders returns where Python keeps installed packages, as far as that
// can be known without asking it.
func pythonFolders() []string {
	folders := filepath.SplitList(os.Getenv("PYTHONPATH"))
	var prefixes []string
	if env := os.Getenv("VIRTUAL_ENV"); env != "" {
		prefixes = append(prefixes, env)
	}
	if home, err := os.UserHomeDir(); err == nil {
		prefixes = append(prefixes, filepath.Join(home, ".local"))
	}
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		if f, err := filepath.EvalSymlinks(filepath.Join(dir, "python3")); err == nil {
			prefixes = append(prefixes, filepath.Dir(filepath.Dir(f)))
		}
	}
	prefixes = append(prefixes, "/usr/local", "/usr")
	for _, p := range prefixes {
		for _, packages := range []string{"site-packages", "dist-packages"} {
			found, _ := filepath.Glob(filepath.Join(p, "lib", "python3*", packages)) // as above
			folders = append(folders, found...)
		}
	}
	return folders
}

// Path returns the file that was loaded.
func (l *Library) Path() string { return l.path }

// Version returns the version of the wheel that the library is of, or "" where
// it is not of one: the C ABI tells none.
func (l *Library) Version() string {
	hidden := filepath.Dir(l.path)
	name := strings.TrimSuffix(strings.TrimPrefix(filepath.Base(hidden), "."), ".mesonpy.libs")
	found, _ := filepath.Glob(filepath.Join(filepath.Dir(hidden), name+"-*.dist-info")) // only a bad pattern is an error
	if len(found) != 1 {
		return ""
	}
	return strings.TrimSuffix(strings.TrimPrefix(filepath.Base(found[0]), name+"-"), ".dist-info")
}

// noteSignals notes signals whose handlers the library or a backend replaced, and
// that were put back: Go needs its own.
func (l *Library) noteSignals(numbers []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, n := range numbers {
		if !slices.Contains(l.signals, n) {
			l.signals = append(l.signals, n)
		}
	}
	slices.Sort(l.signals)
}

func (l *Library) String() string {
	v := l.Version()
	if v == "" {
		v = "of unknown version"
	}
	return fmt.Sprintf("libnixl %s (%s)", v, l.path)
}
