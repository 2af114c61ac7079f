package softnic_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// A decode worker pulls four kilobytes from a prefill worker and tells it so.
func Example() {
	world := vtime.NewVirtual(vtime.Options{})
	defer world.Close()
	fabric := softnic.New(world, softnic.Options{})
	defer fabric.Close()

	agent := func(name string) (nixl.Agent, *softnic.HostMemory) {
		m := softnic.NewHostMemory(4096)
		a, err := fabric.NewAgent(name, m)
		check(err)
		_, err = a.Register(nixl.DRAM, []nixl.Descriptor{{Addr: m.Addr(), Len: m.Len()}})
		check(err)
		return a, m
	}
	decode, to := agent("decode")
	prefill, from := agent("prefill")
	copy(from.Bytes(), "keys and values")

	blob, err := prefill.Metadata()
	check(err)
	peer, err := decode.AddPeer(blob)
	check(err)
	transfer, err := decode.NewTransfer(nixl.Spec{
		Op: nixl.Read, Peer: peer,
		Local:        []nixl.Descriptor{{Addr: to.Addr(), Len: 4096}},
		Remote:       []nixl.Descriptor{{Addr: from.Addr(), Len: 4096}},
		Notification: []byte("request 7 pulled"),
	})
	check(err)
	check(transfer.Post())
	check(nixl.Wait(context.Background(), world, decode, transfer, world.Now()+time.Second))
	fmt.Printf("%s\n", to.Bytes()[:15])

	inbox := nixl.NewInbox(prefill, world, 16)
	message, err := inbox.Wait(context.Background(), func(nixl.Notification) bool { return true }, world.Now()+time.Second)
	check(err)
	fmt.Printf("%s: %s\n", message.From, message.Message)
	// Output:
	// keys and values
	// decode: request 7 pulled
}

// The device is what auto.Open picked. A simulated one has a world for a clock, and
// the fabric is a part of the same: its agent moves bytes between the device's
// memory and a host's.
func ExampleNew() {
	check(os.Setenv(auto.Variable, "sim")) // also on a machine with a GPU
	device, err := auto.Open(os.Stdout, auto.Options{})
	check(err)
	defer device.Close()
	world, simulated := device.Clock().(*vtime.World)
	if !simulated {
		fmt.Println("a GPU needs a transport of its own: see nixl/libnixl")
		return
	}
	fabric := softnic.New(world, softnic.Options{})
	defer fabric.Close()

	decode, err := fabric.NewAgent("decode", device.(*sim.Device).Memory())
	check(err)
	host := softnic.NewHostMemory(4096)
	prefill, err := fabric.NewAgent("prefill", host)
	check(err)
	copy(host.Bytes(), "keys and values")
	block, err := device.Alloc(4096, cuda.AllocOptions{Name: "kv block"})
	check(err)
	local := []nixl.Descriptor{{Addr: uint64(block), Len: 4096}}
	remote := []nixl.Descriptor{{Addr: host.Addr(), Len: host.Len()}}
	_, err = decode.Register(nixl.VRAM, local)
	check(err)
	_, err = prefill.Register(nixl.DRAM, remote)
	check(err)
	metadata, err := prefill.Metadata()
	check(err)
	peer, err := decode.AddPeer(metadata)
	check(err)
	load, err := decode.NewTransfer(nixl.Spec{Op: nixl.Read, Peer: peer, LocalMemory: nixl.VRAM, Local: local, Remote: remote})
	check(err)
	check(load.Post())
	check(nixl.Wait(context.Background(), device.Clock(), decode, load, device.Clock().Now()+time.Second))
	got := make([]byte, 15)
	check(device.Read(got, block))
	fmt.Printf("%s\n", got)
	// Output:
	// device: simulated (sim, virtual time), because KVGATE_DRIVER asks for it
	// keys and values
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
