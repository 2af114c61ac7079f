//go:build cgo && linux

package driver_test

import (
	"errors"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/internal/abi/clib"
	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
)

// spy is the simulator's library with testdata/spy.c before some of its functions.
type spy struct {
	softcuda.Library
	t    *testing.T
	lib  *dl.Library
	soft *softcuda.Device
}

// call is a call that began or ended.
type call struct {
	name  string
	value uint64
	end   bool
}

// openSpied opens a device over a simulated one whose calls are noted.
func openSpied(t *testing.T, o sim.Options) (*driver.Device, *spy) {
	t.Helper()
	if _, err := exec.LookPath(clib.Compiler()); err != nil {
		testutil.SkipOrFail(t, "no C compiler: %v", err)
	}
	path := filepath.Join(t.TempDir(), "spy.so")
	msg, err := exec.Command(clib.Compiler(), "-shared", "-fPIC", "-O1", "-o", path, filepath.Join("testdata", "spy.c")).CombinedOutput()
	require.NoError(t, err, "%s", msg)
	s := &spy{t: t}
	s.lib, err = dl.Open(path)
	require.NoError(t, err)
	s.soft, err = softcuda.Add(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.soft.Remove()) })
	d, err := driver.Open(driver.Options{Library: s, Device: s.soft.Ordinal()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d, s
}

func (s *spy) at(name string) unsafe.Pointer {
	p, err := s.lib.Symbol(name)
	require.NoError(s.t, err)
	return p
}

// Symbol is the spy's function, where it has one.
func (s *spy) Symbol(name string) (unsafe.Pointer, error) {
	real, err := s.Library.Symbol(name)
	if err != nil {
		return nil, err
	}
	p, err := s.lib.Symbol("spy_" + name)
	if errors.Is(err, dl.ErrNoSymbol) {
		return real, nil
	}
	*(*unsafe.Pointer)(s.at("real_" + name)) = real
	return p, err
}

// fail makes a function return code in place of the call; 0 ends that.
func (s *spy) fail(name string, code int32) {
	atomic.StoreInt32((*int32)(s.at("fail_"+name)), code)
}

// calls returns what was noted of some functions.
func (s *spy) calls(names ...string) (list []call) {
	type line struct {
		name  *byte
		value uint64
		end   int64
	}
	n := atomic.LoadUint32((*uint32)(s.at("spy_len")))
	require.LessOrEqual(s.t, n, uint32(1<<16))
	for _, l := range unsafe.Slice((*line)(s.at("spy_log")), n) {
		for _, name := range names {
			if l.name != nil && cString(l.name) == name {
				list = append(list, call{name, l.value, l.end != 0})
			}
		}
	}
	return list
}

func cString(p *byte) string {
	n := 0
	for *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}
