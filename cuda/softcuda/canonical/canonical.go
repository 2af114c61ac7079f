//go:build cgo && linux

// Package canonical gives the program that imports it the CUDA driver's own
// names, served by the simulator. Two programs do: softcuda/libcuda, and the
// tests of cuda/gorgonia, where they stand for the library that gorgonia.org/cu
// is linked with. In any other program they would catch the calls that its
// libraries make to a real driver.
//
// There is one device, or as many as KVGATE_SOFT_DEVICES says, which reach each
// other's memory.
// KVGATE_SOFT_SLOW of more than 1 stretches the simulated times by that factor.
// With KVGATE_SOFT_PLAIN=1 fresh memory is not filled with garbage first, which
// takes a while for large allocations. With KVGATE_SOFT_FAIL=n a device dies of
// CUDA_ERROR_LAUNCH_FAILED when n kernels, copies and fills have run on it, and with
// KVGATE_SOFT_HANG=n it hangs then: calls don't return any more.
package canonical

import "C"

import (
	"fmt"
	"math"
	"os"
	"strconv"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
)

// The devices are there before anything of the importing program runs: other
// packages call cuInit when they are initialised.
func init() {
	devices, slow, plain, fail, hang := 1, 0.0, false, 0, 0
	if err := setting("KVGATE_SOFT_DEVICES", func(v string) (err error) { devices, err = strconv.Atoi(v); return }); err != nil {
		complain(err)
		return
	}
	if err := setting("KVGATE_SOFT_SLOW", func(v string) (err error) { slow, err = strconv.ParseFloat(v, 64); return }); err != nil {
		complain(err)
		return
	}
	if err := setting("KVGATE_SOFT_PLAIN", func(v string) (err error) { plain, err = strconv.ParseBool(v); return }); err != nil {
		complain(err)
		return
	}
	if err := setting("KVGATE_SOFT_FAIL", func(v string) (err error) { fail, err = strconv.Atoi(v); return }); err != nil {
		complain(err)
		return
	}
	if err := setting("KVGATE_SOFT_HANG", func(v string) (err error) { hang, err = strconv.Atoi(v); return }); err != nil {
		complain(err)
		return
	}
	if slow != 0 && !(slow >= 1 && slow <= math.MaxFloat64) {
		complain(fmt.Errorf("KVGATE_SOFT_SLOW=%g: it is at least 1, and finite", slow))
		return
	}
	// One world, so that the devices reach each other. It ends with the process.
	world := vtime.NewReal(vtime.Options{}, max(slow, 1))
	for range devices {
		o := sim.Options{World: world, Uninitialised: plain}
		ended := make(chan struct{}, 1)
		if ran := 0; fail > 0 || hang > 0 {
			o.Ran = func(sim.Ran) {
				switch ran++; ran {
				case fail:
					ended <- struct{}{}
				case hang:
					select {} // with the machine locked
				}
			}
		}
		d, err := softcuda.Add(o)
		if err != nil {
			complain(err)
			return
		}
		if fail > 0 {
			clock.Wall().Go("the end of a device", func() {
				<-ended
				if err := d.Sim().Kill(cuda.ErrLaunchFailed, "KVGATE_SOFT_FAIL"); err != nil {
					complain(err)
				}
			})
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
