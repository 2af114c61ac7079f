package sim_test

import (
	"context"
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
)

// A step is captured once and launched twice.
func ExampleDevice_Instantiate() {
	d, err := sim.New(sim.Options{})
	check(err)
	s, err := d.NewStream(cuda.StreamOptions{Name: "compute"})
	check(err)
	p, err := d.Alloc(64, cuda.AllocOptions{Name: "scratch"})
	check(err)
	out, err := d.Alloc(64, cuda.AllocOptions{Name: "out"})
	check(err)

	var b cuda.Batch
	check(d.BeginCapture(s, cuda.CaptureRelaxed))
	b.Copy(s, out, p, 64)
	b.Fill8(s, p, 2, 64)
	check(d.Submit(&b))
	g, err := d.EndCapture(s)
	check(err)
	step, err := d.Instantiate(g)
	check(err)
	check(d.DestroyGraph(g))

	b.Reset()
	b.Fill8(s, p, 1, 64)
	b.LaunchGraph(s, step)
	check(d.Submit(&b))
	check(d.SyncStream(context.Background(), s))
	got := make([]byte, 1)
	check(d.Read(got, out))
	fmt.Println("after the first launch:", got[0])

	b.Reset()
	b.LaunchGraph(s, step)
	check(d.Submit(&b))
	check(d.SyncStream(context.Background(), s))
	check(d.Read(got, out))
	fmt.Println("after the second:", got[0])
	check(d.DestroyGraphExec(step))
	check(d.Close())
	// Output:
	// after the first launch: 1
	// after the second: 2
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
