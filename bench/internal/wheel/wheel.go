// Package wheel finds the NIXL library that ./build.sh deps has fetched.
package wheel

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvgate/kvgate/nixl/libnixl"
)

// Root returns the root of the repository that the program runs in.
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
			return "", errors.New("not inside the repository")
		}
		dir = up
	}
}

// Open opens the library that KVGATE_NIXL_LIB names, else the fetched one, else
// whatever libnixl finds on this machine.
func Open() (*libnixl.Library, error) {
	o := libnixl.Options{}
	if os.Getenv(libnixl.LibraryVariable) == "" {
		if root, err := Root(); err == nil {
			found, err := filepath.Glob(filepath.Join(root, ".cache", "nixl-cu12-*", ".nixl_cu12.mesonpy.libs", "libnixl_capi.so"))
			if err != nil {
				return nil, err
			}
			if len(found) == 1 {
				o.Path = found[0]
			}
		}
	}
	for _, v := range []struct{ name, value string }{
		{"UCX_LOG_LEVEL", "error"}, // it warns of hardware that is not there
		{"UCX_LOG_FILE", "stderr"}, // and standard output is for results
	} {
		if os.Getenv(v.name) == "" {
			if err := os.Setenv(v.name, v.value); err != nil {
				return nil, err
			}
		}
	}
	lib, err := libnixl.OpenWithOptions(o)
	if err != nil {
		return nil, fmt.Errorf("%w (./build.sh deps fetches it)", err)
	}
	return lib, nil
}
