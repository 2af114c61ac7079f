// Package auto picks a back end of the cuda interface. It is for commands,
// tests and examples; engines call the constructor of the back end they want,
// which never falls back to another.
package auto

import (
	"fmt"
	"io"
	"os"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

// Variable is the environment variable that forces a back end: "sim", "nvidia"
// or "gorgonia".
const Variable = "KVGATE_DRIVER"

// Options are the options of [Open].
type Options struct {
	// Sim are the options of the simulator, if that is what is picked.
	Sim sim.Options
}

// Open opens the back end that [Variable] names or, where it is unset or
// empty, a real GPU if there is a usable driver and the simulator if not. It
// says on w, in one line, what it picked and why; w may be nil. A back end that
// was asked for and can't be had is an error, for a GPU [cuda.ErrNoDriver].
//
// The zero Options open the simulator on virtual time; the calling goroutine is
// then its first actor.
func Open(w io.Writer, o Options) (cuda.Device, error) {
	name, why := os.Getenv(Variable), Variable+" asks for it"
	if name == "" {
		name, why = "sim", "there is no usable GPU: "+noDriver
	}
	switch name {
	case "sim":
	case "nvidia", "gorgonia":
		return nil, fmt.Errorf("%s=%s: %w: %s", Variable, name, cuda.ErrNoDriver, noDriver)
	default:
		return nil, fmt.Errorf("%s=%q: unknown, may be sim, nvidia or gorgonia", Variable, name)
	}
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

// noDriver is why there is no GPU.
const noDriver = "this build has no driver back end"
