//go:build cgo && linux

// Libcuda is the simulator as libcuda.so.1, for programs that are not Go:
//
//	go build -buildmode=c-shared -o libcuda.so.1 ./cuda/softcuda/libcuda
//
// It has one device, or as many as KVGATE_SOFT_DEVICES says. KVGATE_SOFT_SLOW
// of more than 1 stretches the simulated times by that factor. It is the only
// binary of this module that exports the driver's own names; a second Go
// program in the same process is not supported by Go.
package main

import "C"

import (
	"fmt"
	"os"
	"strconv"

	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
)

func init() {
	devices, slow := 1, 0.0
	if err := setting("KVGATE_SOFT_DEVICES", func(v string) (err error) { devices, err = strconv.Atoi(v); return }); err != nil {
		complain(err)
		return
	}
	if err := setting("KVGATE_SOFT_SLOW", func(v string) (err error) { slow, err = strconv.ParseFloat(v, 64); return }); err != nil {
		complain(err)
		return
	}
	for range devices {
		if _, err := softcuda.Add(sim.Options{Real: true, Slow: slow}); err != nil {
			complain(err)
			return
		}
	}
}

// complain says why there is no device: cuInit will only say that.
func complain(err error) { fmt.Fprintln(os.Stderr, "libcuda.so.1 (simulated):", err) }

func setting(name string, set func(string) error) error {
	v := os.Getenv(name)
	if v == "" {
		return nil
	}
	if err := set(v); err != nil {
		return fmt.Errorf("%s=%q: %w", name, v, err)
	}
	return nil
}

func main() {}
