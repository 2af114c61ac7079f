//go:build linux

package libnixl

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
)

// compiled makes a shared library of C source.
func compiled(t *testing.T, dir, source string) string {
	t.Helper()
	if !hasCgo {
		t.Skip("built without cgo: no C library can be called")
	}
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "gcc"
	}
	if _, err := exec.LookPath(cc); err != nil {
		testutil.SkipOrFail(t, "no C compiler: %v", err)
	}
	require.NoError(t, os.MkdirAll(dir, 0o755))
	c, so := filepath.Join(dir, "lib.c"), filepath.Join(dir, libraryName)
	require.NoError(t, os.WriteFile(c, []byte(source), 0o644))
	out, err := exec.Command(cc, "-shared", "-fPIC", "-o", so, c).CombinedOutput()
	require.NoError(t, err, string(out))
	return so
}

func TestOpenWithoutCgo(t *testing.T) {
	if hasCgo {
		t.Skip("built with cgo")
	}
	_, err := Open()
	require.ErrorIs(t, err, nixl.ErrUnavailable)
	require.ErrorIs(t, err, dl.ErrNoCgo)
}

func TestNoLibraryNamesEachTry(t *testing.T) {
	_, err := OpenWithOptions(Options{Path: "/nowhere/" + libraryName})
	require.ErrorIs(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "/nowhere/"+libraryName)
	require.True(t, nixl.Quiet(err))

	t.Setenv(LibraryVariable, filepath.Join(t.TempDir(), "absent.so"))
	_, err = Open()
	require.ErrorIs(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "absent.so")
}

const stubSource = `#include <stdbool.h>
bool nixl_capi_is_stub(void) { return true; }
int nixl_capi_create_configured_agent(const char *n, const void *c, void **a) { *a = (void *)n; return 0; }`

func TestAStubIsUnavailable(t *testing.T) {
	so := compiled(t, t.TempDir(), stubSource)
	_, err := OpenWithOptions(Options{Path: so})
	require.ErrorIs(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "is a stub")
	require.ErrorContains(t, err, so)
	t.Setenv(LibraryVariable, so)
	_, err = Open()
	require.ErrorContains(t, err, "is a stub")
}

// A stub in one wheel's folder does not hide the library of another, and is
// reported. In a child, since the loader finds by its name what is loaded.
func TestWheelFolders(t *testing.T) {
	real := library(t)
	dir := t.TempDir()
	stub := compiled(t, filepath.Join(dir, ".nixl_cu12.mesonpy.libs"), stubSource)
	hidden := filepath.Join(dir, ".nixl_cu13.mesonpy.libs")
	require.NoError(t, os.Symlink(filepath.Dir(real.Path()), hidden))
	t.Setenv(LibraryVariable, "")
	got, err := candidates(Options{Folders: []string{"/nowhere", dir}})
	require.NoError(t, err)
	require.Equal(t, []string{libraryName, stub, filepath.Join(hidden, libraryName)}, got)

	out, err := finish(t, command(t, "search", "PYTHONPATH="+dir, LibraryVariable+"=", PluginVariable+"="), patience)
	require.NoError(t, err, out)
	require.Contains(t, out, "loaded "+filepath.Join(hidden, libraryName))
	require.Contains(t, out, "plugins "+filepath.Join(hidden, "plugins"))
	require.Contains(t, out, stub+" is a stub")
	// What the user says of the plugins holds.
	out, err = finish(t, command(t, "search", "PYTHONPATH="+dir, LibraryVariable+"=", PluginVariable+"="+dir), patience)
	require.NoError(t, err, out)
	require.Contains(t, out, "plugins "+dir+"\n")
}

func init() {
	roles["search"] = func() error {
		l, err := Open()
		if err != nil {
			return err
		}
		fmt.Printf("loaded %s\nplugins %s\nversion %s\ntried %q\n", l.Path(), l.plugins, l.Version(), l.tried)
		return nil
	}
}

const choosySource = `#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
bool nixl_capi_is_stub(void) { return false; }
int nixl_capi_create_configured_agent(const char *n, const void *c, void **a) {
	const char *dir = getenv("NIXL_PLUGIN_DIR");
	static int x; *a = &x;
	return dir && !strcmp(dir, "%s") ? 0 : -1;
}
int nixl_capi_destroy_agent(void *a) { return 0; }`

// Each of two libraries finds its own plugins, whichever is used first; what the
// program says holds for both.
func TestPluginsOfTwoLibraries(t *testing.T) {
	t.Setenv(PluginVariable, os.Getenv(PluginVariable)) // puts it back
	for _, c := range []struct {
		set   string
		order []int
	}{{"", []int{0, 1}}, {"", []int{1, 0}}, {t.TempDir(), []int{0, 1}}} {
		require.NoError(t, os.Setenv(PluginVariable, c.set))
		var libs []*Library
		for range 2 {
			dir := t.TempDir()
			plugins := filepath.Join(dir, "plugins")
			require.NoError(t, os.Mkdir(plugins, 0o755))
			want := plugins
			if c.set != "" {
				want = c.set
			}
			l, err := OpenWithOptions(Options{Path: compiled(t, dir, fmt.Sprintf(choosySource, want))})
			require.NoError(t, err)
			require.Equal(t, want, l.plugins)
			libs = append(libs, l)
		}
		for _, i := range c.order {
			a, err := libs[i].NewAgent(context.Background(), "a", Config{Backends: []BackendConfig{}})
			require.NoError(t, err)
			require.NoError(t, a.Close())
		}
	}
}

// A relative path is as good: the plugins and the version are found from it.
func TestRelativePath(t *testing.T) {
	file := library(t).Path()
	t.Chdir(filepath.Dir(filepath.Dir(file)))
	relative := filepath.Join(filepath.Base(filepath.Dir(file)), libraryName)
	c := command(t, "search", LibraryVariable+"="+relative, PluginVariable+"=")
	out, err := finish(t, c, patience)
	require.NoError(t, err, out)
	require.Contains(t, out, "loaded "+file+"\n")
	require.Contains(t, out, "plugins "+filepath.Join(filepath.Dir(file), "plugins")+"\n")
	require.Contains(t, out, "version "+library(t).Version()+"\n")
}

func TestAMissingSymbolDisablesItsCallsOnly(t *testing.T) {
	so := compiled(t, t.TempDir(), "int kvgate_nothing;")
	_, err := OpenWithOptions(Options{Path: so})
	require.ErrorIs(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "nixl_capi_is_stub")

	so = compiled(t, t.TempDir(), `#include <stdbool.h>
bool nixl_capi_is_stub(void) { return false; }
int nixl_capi_create_configured_agent(const char *n, const void *c, void **a) { static int x; *a = &x; return 0; }
int nixl_capi_destroy_agent(void *a) { return 0; }
int nixl_capi_get_local_md(void *a, void **d, unsigned long *n) { return -1; }`)
	l, err := OpenWithOptions(Options{Path: so})
	require.NoError(t, err)
	require.Equal(t, so, l.Path())
	require.Empty(t, l.Version())
	a, err := l.NewAgent(context.Background(), "a", Config{Backends: []BackendConfig{}})
	require.NoError(t, err)
	_, err = a.Metadata()
	require.ErrorIs(t, err, nixl.ErrInvalid, "what is there works")
	_, err = a.Notifications(nil)
	require.ErrorIs(t, err, nixl.ErrUnavailable)
	require.ErrorContains(t, err, "nixl_capi_get_notifs")
	require.ErrorContains(t, err, so)
	_, err = l.NewAgent(context.Background(), "b", Config{})
	require.ErrorContains(t, err, "nixl_capi_get_plugin_params")
	require.NoError(t, a.Close())
}

func TestLibraryOfTheWheel(t *testing.T) {
	l := library(t)
	require.Equal(t, libraryName, filepath.Base(l.Path()))
	if os.Getenv(LibraryVariable) == "" {
		require.Equal(t, "1.5.1", l.Version())
		require.Contains(t, l.String(), "libnixl 1.5.1")
	}
	require.DirExists(t, l.plugins)
	require.Equal(t, l.plugins, os.Getenv(PluginVariable))
	again, err := OpenWithOptions(Options{Path: l.Path()})
	require.NoError(t, err)
	require.Same(t, l, again)
}
