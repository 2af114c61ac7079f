package stream_test

import (
	"context"
	"fmt"
	"log"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/event"
	"github.com/kvgate/kvgate/stream"
)

// Two streams in one batch: the second waits, on the device, for what the first
// did, and the host waits for the second.
func ExampleBatch() {
	dev, err := sim.New(sim.Options{})
	check(err)
	reg := event.NewRegistry(dev)
	gate, err := stream.New(reg, cuda.StreamOptions{Name: "gate", HighPriority: true})
	check(err)
	compute, err := stream.New(reg, cuda.StreamOptions{Name: "compute"})
	check(err)
	block, err := dev.Alloc(4096, cuda.AllocOptions{Name: "block"})
	check(err)

	b := stream.NewBatch(reg)
	b.Fill8(gate, block, 0, 4096)
	zeroed := b.Record(gate)
	check(b.Wait(compute, zeroed))
	b.Fill8(compute, block, 7, 1)
	used := b.Record(compute)
	check(b.Submit())
	b.Reset()

	check(used.Wait(context.Background()))
	head := make([]byte, 2)
	check(dev.Read(head, block))
	fmt.Println(zeroed.State(), used.State(), head)

	check(gate.Close())
	check(compute.Close())
	check(reg.Close())
	check(dev.Close())
	// Output: fired fired [7 0]
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
