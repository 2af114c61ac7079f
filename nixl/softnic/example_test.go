package softnic_test

import (
	"context"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/clock/vtime"
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

func check(err error) {
	if err != nil {
		panic(err)
	}
}
