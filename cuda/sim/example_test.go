package sim_test

import (
	"context"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

// A zeroing on one stream, and a model on another that waits for it.
func Example() {
	dev, err := sim.New(sim.Options{Seed: 1})
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	pool, _ := dev.Alloc(1<<20, cuda.AllocOptions{Name: "kv pool", CostScale: 64})
	gate, _ := dev.NewStream(cuda.StreamOptions{Name: "gate", HighPriority: true})
	compute, _ := dev.NewStream(cuda.StreamOptions{Name: "compute"})
	zeroed, _ := dev.NewEvent()
	step, _ := dev.NewModel("step", func(k *sim.ModelLaunch) error {
		k.Read = 64 << 20
		k.Chunks = 1
		k.Step = func(m *sim.Memory, _ int) error {
			b, err := m.Bytes(uint64(pool), 4)
			fmt.Println("the step reads", b)
			return err
		}
		return nil
	})

	var b cuda.Batch
	b.Fill32(gate, pool, 0, 1<<18)
	b.Record(gate, zeroed)
	b.WaitEvent(compute, zeroed)
	b.Launch(compute, step, cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}, 0)
	if err := dev.Submit(&b); err != nil {
		panic(err)
	}
	if err := dev.Sync(context.Background()); err != nil {
		panic(err)
	}
	fmt.Println("simulated time:", dev.World().Now() > 0)
	// Output:
	// the step reads [0 0 0 0]
	// simulated time: true
}

// The host is called when a stream has come to a place, and lets another go on.
func ExampleDevice_NewHostFunc() {
	dev, err := sim.New(sim.Options{})
	if err != nil {
		panic(err)
	}
	defer dev.Close()
	flag, _ := dev.AllocPinned(4, cuda.AllocOptions{Name: "flag"})
	flag.Word(0).Store(0)
	pool, _ := dev.Alloc(1<<20, cuda.AllocOptions{Name: "kv pool"})
	gate, _ := dev.NewStream(cuda.StreamOptions{Name: "gate"})
	compute, _ := dev.NewStream(cuda.StreamOptions{Name: "compute"})
	zeroed, _ := dev.NewHostFunc("zeroed", func(block uint64) {
		fmt.Println("block", block, "is zeroed")
		flag.Word(0).Store(1)
	})
	over, _ := dev.NewSignal()

	var b cuda.Batch
	b.Fill32(gate, pool, 0, 1<<18)
	b.Signal(gate, zeroed, 7)
	b.WaitWord(compute, flag.Device, 1)
	b.Signal(compute, over, 0)
	if err := dev.Submit(&b); err != nil {
		panic(err)
	}
	if err := dev.SyncStream(context.Background(), compute); err != nil {
		panic(err)
	}
	n, _ := dev.SignalCount(over)
	fmt.Println("steps that are over:", n)
	// Output:
	// block 7 is zeroed
	// steps that are over: 1
}
