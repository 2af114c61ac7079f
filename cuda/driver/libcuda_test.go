//go:build cgo && linux

package driver_test

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/dl"
)

// realLibcuda returns the path of NVIDIA's libcuda.so.1, which ./build.sh
// libcuda-check finds or fetches, or skips with what that says.
func realLibcuda(t *testing.T) string {
	path := os.Getenv("KVGATE_LIBCUDA")
	if path == "" {
		t.Skip("runs in ./build.sh libcuda-check alone")
	}
	if !strings.HasPrefix(path, "/") {
		t.Skip("no libcuda.so.1:", path)
	}
	return path
}

// Each symbol of the table is one of NVIDIA's library, by its exact name and, as
// CUDA's own runtime asks for it, by its name without a suffix in the version that
// is told to have brought it.
func TestSymbolsOfRealLibcuda(t *testing.T) {
	lib, err := dl.Open(realLibcuda(t))
	require.NoError(t, err)
	defer func() { require.NoError(t, lib.Close()) }()
	e := engine.Engine{Lib: lib}
	version, err := e.DriverVersion()
	require.NoError(t, err)
	all := abi.Symbols()
	// Of what softcuda refuses for gorgonia.org/cu the table keeps no version.
	const unknown = 1
	checked, newer := 0, []string{}
	for _, s := range all {
		if s.Since == 0 { // this module's own
			continue
		}
		if s.Since > version {
			newer = append(newer, s.Name)
			continue
		}
		byName, err := lib.Symbol(s.Name)
		if err != nil {
			t.Errorf("%s: %v", s.Name, err)
			continue
		}
		if s.Since == unknown {
			continue
		}
		byVersion, err := e.ProcAddress(s.Base(), s.Since)
		if err != nil || byVersion != byName {
			t.Errorf("%s of %s: %#x by cuGetProcAddress (%v), %#x by dlsym", s.Base(), abi.CUDA(s.Since), byVersion, err, byName)
		}
		checked++
	}
	require.Greater(t, checked, 90, "the library supports CUDA %s", abi.CUDA(version))
	t.Logf("CUDA %s: %d symbols at the same address by name and by version; newer: %v", abi.CUDA(version), checked, newer)
}

// Where there is no device, the error says so in the driver's words.
func TestOpenRealLibcuda(t *testing.T) {
	path := realLibcuda(t)
	d, err := driver.Open(driver.Options{Path: path})
	if err == nil {
		t.Logf("there is a device: %s", d.Info().Name)
		require.NoError(t, d.Close())
		return
	}
	require.ErrorIs(t, err, cuda.ErrNoDriver)
	require.ErrorContains(t, err, path)
	require.ErrorContains(t, err, "CUDA_ERROR_")
	t.Log(err)
}
