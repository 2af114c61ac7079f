// Quickstart is the smallest engine that uses the gate: it loads a prompt's cache
// from a prefill engine and decodes some tokens. engine.go is the part that an
// engine's author writes, peer.go the other engine and stand-ins for kernels.
//
//	go run ./examples/quickstart [-nixl]
//
// Device and fabric are simulated, in this process and in virtual time. With -nixl
// the other engine is another process, and the transport is NVIDIA's NIXL, which
// has to be installed (or named by KVGATE_NIXL_LIB); the device is a GPU where
// there is one.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/layout"
	"github.com/kvgate/kvgate/nixl/libnixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

const (
	promptTokens = 200
	answerTokens = 3
)

func main() {
	nixl := flag.Bool("nixl", false, "use NIXL, with the prefill engine in another process")
	serving := flag.Bool("prefill", false, "be that process: for -nixl")
	flag.Parse()
	ctx := context.Background()
	var err error
	switch {
	case *serving:
		err = servePrompt(ctx, os.Stdin, os.Stdout)
	case *nixl:
		err = overNIXL(ctx, os.Stdout)
	default:
		err = simulated(ctx, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "quickstart:", err)
		os.Exit(1)
	}
}

// listener prints what the gate does.
func listener(w io.Writer) loadgate.Listener {
	return loadgate.Listener{
		Launched: func(i loadgate.LaunchInfo) { fmt.Fprintf(w, "%v of %d blocks launched\n", i.Filling, len(i.Blocks)) },
		Held:     func(i loadgate.TransferInfo) { fmt.Fprintf(w, "%v held: waits for %s\n", i.Kind, i.Why) },
		Posted:   func(i loadgate.TransferInfo) { fmt.Fprintf(w, "%v posted\n", i.Kind) },
		Done: func(i loadgate.TransferInfo) {
			if i.Err != nil {
				fmt.Fprintf(w, "%v failed: %v\n", i.Kind, i.Err)
				return
			}
			fmt.Fprintf(w, "%v done\n", i.Kind)
		},
	}
}

// tell runs the decode engine and prints what came of it.
func tell(ctx context.Context, w io.Writer, p prompt, decode func(loadgate.Listener) error) error {
	plan, err := layout.NewPlan(model, layout.Options{})
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "%v\n%d tokens come from the prefill engine\n", plan, p.Tokens)
	if err := decode(listener(w)); err != nil {
		return err
	}
	fmt.Fprintf(w, "%d steps ran; content right: %d tokens as sent, %d appended, zeros behind\n", answerTokens, p.Tokens, answerTokens)
	return nil
}

// simulated has both engines on one simulated device, and a simulated fabric.
func simulated(ctx context.Context, w io.Writer) (err error) {
	dev, err := sim.New(sim.Options{})
	if err != nil {
		return err
	}
	fabric := softnic.New(dev.World(), softnic.Options{})
	defer func() { err = errors.Join(err, fabric.Close(), dev.Close()) }()
	fmt.Fprintln(w, "simulated device and fabric, virtual time")
	return bothHere(ctx, w, dev, dev.NIC(), fabric)
}

// bothHere has both engines in this process. nic is the device's memory.
func bothHere(ctx context.Context, w io.Writer, dev cuda.Device, nic softnic.Memory, fabric *softnic.Fabric) (err error) {
	theirs, err := fabric.NewAgent("prefill", nic)
	if err != nil {
		return err
	}
	ours, err := fabric.NewAgent("decode", nic)
	if err != nil {
		return err
	}
	p, err := newPrefill(ctx, dev, loadgate.Options{Agent: theirs}, promptTokens)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, p.gate.Close(ctx)) }()
	return tell(ctx, w, p.prompt, func(l loadgate.Listener) error {
		return decode(ctx, dev, loadgate.Options{Agent: ours, Listener: l}, p.prompt, answerTokens)
	})
}

// overNIXL has the prefill engine in another process.
func overNIXL(ctx context.Context, w io.Writer) (err error) {
	other := exec.CommandContext(ctx, os.Args[0], "-prefill")
	other.Stderr = os.Stderr
	hold, err := other.StdinPipe()
	if err != nil {
		return err
	}
	out, err := other.StdoutPipe()
	if err != nil {
		return err
	}
	if err := other.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, hold.Close(), other.Wait()) }()
	var p prompt
	if err := json.NewDecoder(out).Decode(&p); err != nil {
		return fmt.Errorf("the prefill process: %w", err)
	}
	return withNIXL(ctx, w, "decode", func(dev cuda.Device, o loadgate.Options) error {
		return tell(ctx, w, p, func(l loadgate.Listener) error {
			o.Listener = l
			return decode(ctx, dev, o, p, answerTokens)
		})
	})
}

// servePrompt is the prefill process: it writes what the other one has to know,
// and holds the prompt until in ends.
func servePrompt(ctx context.Context, in io.Reader, out io.Writer) error {
	return withNIXL(ctx, os.Stderr, "prefill", func(dev cuda.Device, o loadgate.Options) error {
		p, err := newPrefill(ctx, dev, o, promptTokens)
		if err != nil {
			return err
		}
		err = json.NewEncoder(out).Encode(p.prompt)
		if err == nil {
			_, err = io.Copy(io.Discard, in)
		}
		return errors.Join(err, p.gate.Close(ctx))
	})
}

// withNIXL opens the device at hand and a NIXL agent.
func withNIXL(ctx context.Context, w io.Writer, name string, f func(cuda.Device, loadgate.Options) error) (err error) {
	lib, err := libnixl.Open()
	if err != nil {
		return err
	}
	dev, err := auto.Open(w, auto.Options{Sim: sim.Options{Real: true}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dev.Close()) }()
	agent, err := lib.NewAgent(ctx, name, libnixl.Config{Clock: dev.Clock()})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, agent.Close()) }()
	// Memory of a simulated device is memory of this process.
	return f(dev, loadgate.Options{Agent: agent, HostMemory: dev.Info().Simulated})
}
