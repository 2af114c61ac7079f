//go:build gorgonia

package gorgonia_test

import (
	"context"
	"fmt"
	"log"

	"gorgonia.org/cu"

	"github.com/kvgate/kvgate/cuda/driver"
	"github.com/kvgate/kvgate/cuda/gorgonia"
	"github.com/kvgate/kvgate/cuda/softcuda"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

// An engine on gorgonia.org/cu lends the gate its context and its compute
// stream: [RawStream], then AdoptStream of the driver's device, then
// stream.Adopt. Memory is named by its address, [Pointer].
func ExampleRawStream() {
	// The engine.
	ctx, err := cu.Device(0).MakeContext(cu.SchedAuto)
	check(err)
	compute, err := cu.MakeStream(cu.NonBlocking)
	check(err)
	p, err := cu.MemAlloc(4096)
	check(err)
	_, err = cu.PopCurrentCtx()
	check(err)

	// The gate's side. Beside a GPU Options{} finds the system's library.
	dev, err := driver.Adopt(gorgonia.RawContext(ctx), driver.Options{Library: softcuda.Library{}})
	check(err)
	h, err := dev.AdoptStream(gorgonia.RawStream(compute))
	check(err)
	reg := event.NewRegistry(dev)
	s, err := stream.Adopt(reg, h, "the engine's")
	check(err)
	b := stream.NewBatch(reg)
	b.Fill8(s, gorgonia.Pointer(p), 7, 4096)
	done := b.Record(s)
	check(b.Submit())
	check(done.Wait(context.Background()))
	b.Reset()
	head := make([]byte, 1)
	check(dev.Read(head, gorgonia.Pointer(p)))
	fmt.Println(head)

	check(s.Close())
	check(dev.DestroyStream(h))
	check(reg.Close())
	check(dev.Close())
	check(ctx.Destroy())
	// Output: [7]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
