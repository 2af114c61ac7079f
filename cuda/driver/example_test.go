//go:build cgo && linux

package driver_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"runtime"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/internal/engine"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

// An engine with CUDA code of its own lends the gate its context and its
// compute stream. The CUstream goes to [driver.Device.AdoptStream] first, which
// checks it and makes a handle of it; that goes to stream.Adopt, and what comes
// back is a stream for a gate or a batch. The engine's CUstream as it is would be
// refused there.
func ExampleDevice_AdoptStream() {
	// The engine: cuCtxCreate, cuStreamCreate. It is simulated here, and so the
	// library is given; beside a GPU Options{} finds the system's.
	soft, err := softcuda.Add(sim.Options{Real: true})
	check(err)
	options := driver.Options{Library: softcuda.Library{}}
	cu := engine.Engine{Lib: softcuda.Library{}}
	runtime.LockOSThread() // the engine's current context is its thread's
	defer runtime.UnlockOSThread()
	check(cu.Init())
	ctx, err := cu.NewContext(soft.Ordinal())
	check(err)
	raw, err := cu.NewStream(1) // CU_STREAM_NON_BLOCKING
	check(err)

	// The gate's side.
	dev, err := driver.Adopt(driver.Context(ctx), options)
	check(err)
	h, err := dev.AdoptStream(driver.RawStream(raw))
	check(err)
	reg := event.NewRegistry(dev)
	_, err = stream.Adopt(reg, cuda.Stream(raw), "not so")
	fmt.Println("the CUstream itself is refused:", errors.Is(err, cuda.ErrInvalidHandle))
	compute, err := stream.Adopt(reg, h, "the engine's")
	check(err)

	block, err := dev.Alloc(4096, cuda.AllocOptions{Name: "block"})
	check(err)
	b := stream.NewBatch(reg)
	b.Fill8(compute, block, 7, 4096)
	done := b.Record(compute)
	check(b.Submit())
	check(done.Wait(context.Background()))
	b.Reset()
	head := make([]byte, 1)
	check(dev.Read(head, block))
	fmt.Println("filled in the engine's stream:", head)

	check(compute.Close()) // the engine's stream and context live on
	check(dev.DestroyStream(h))
	check(reg.Close())
	check(dev.Close())
	check(cu.Synchronize())
	check(cu.SetCurrent(0))
	check(soft.Remove())
	// Output:
	// the CUstream itself is refused: true
	// filled in the engine's stream: [7]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
