// Package auto picks a back end of the cuda interface. It is for commands,
// tests and examples; engines call the constructor of the back end they want,
// which never falls back to another.
package auto

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/internal/abi"
)

// Variable is the environment variable that forces a back end: "sim", "nvidia"
// or "gorgonia".
const Variable = "KVGATE_DRIVER"

// Options are the options of [Open].
type Options struct {
	// Sim are the options of the simulator, if that is what is picked.
	Sim sim.Options
	// Driver are the options of the driver, if there is one.
	Driver driver.Options
}

// Open opens the back end that [Variable] names or, where it is unset or
// empty, a real GPU if there is a usable driver and the simulator if not. It
// says on w, in one line, what it picked and why; w may be nil. A back end that
// was asked for and can't be had is an error, for a GPU [cuda.ErrNoDriver]. So
// is a GPU that is there and does not open.
//
// The zero Options open the simulator on virtual time; the calling goroutine is
// then its first actor.
func Open(w io.Writer, o Options) (cuda.Device, error) {
	switch name := os.Getenv(Variable); name {
	case "":
		d, err := driver.Open(o.Driver)
		if errors.Is(err, cuda.ErrNoDriver) {
			return openSim(w, o, "there is no usable GPU: "+strings.TrimPrefix(err.Error(), "cuda/driver: "))
		}
		return opened(w, d, err, "it is there")
	case "sim":
		return openSim(w, o, Variable+" asks for it")
	case "nvidia":
		d, err := driver.Open(o.Driver)
		if err != nil {
			err = fmt.Errorf("%s=%s: %w", Variable, name, err)
		}
		return opened(w, d, err, Variable+" asks for it")
	case "gorgonia":
		return nil, fmt.Errorf("%s=%s: %w: this build has no such back end", Variable, name, cuda.ErrNoDriver)
	default:
		return nil, fmt.Errorf("%s=%q: unknown, may be sim, nvidia or gorgonia", Variable, name)
	}
}

func opened(w io.Writer, d *driver.Device, err error, why string) (cuda.Device, error) {
	if err != nil {
		return nil, err
	}
	if w != nil {
		kind := "GPU"
		if d.Info().Simulated {
			kind = "no GPU, a stand-in for one"
		}
		fmt.Fprintf(w, "device: %s (%s, CUDA %s, %s), because %s\n", kind, d.Info().Name, abi.CUDA(d.Info().Driver), d.Library(), why)
	}
	return d, nil
}

func openSim(w io.Writer, o Options, why string) (cuda.Device, error) {
	d, err := sim.New(o.Sim)
	if err != nil {
		return nil, err
	}
	if w != nil {
		time := "virtual time"
		if !d.Clock().Virtual() {
			time = "real time"
		}
		fmt.Fprintf(w, "device: simulated (%s, %s), because %s\n", d.Info().Name, time, why)
	}
	return d, nil
}
