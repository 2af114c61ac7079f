package libnixl_test

import (
	"context"
	"fmt"
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

// One agent reads memory of another; between machines the blob travels by
// whatever connects them.
func Example() {
	lib, err := libnixl.Open()
	if err != nil {
		fmt.Println(err) // wraps nixl.ErrUnavailable
		return
	}
	ctx := context.Background()
	decode, err := lib.NewAgent(ctx, "decode", libnixl.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer decode.Close()
	prefill, err := lib.NewAgent(ctx, "prefill", libnixl.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer prefill.Close()

	here, there := make([]byte, 4096), make([]byte, 4096)
	region := func(b []byte) []nixl.Descriptor {
		return []nixl.Descriptor{{Addr: uint64(uintptr(unsafe.Pointer(&b[0]))), Len: uint64(len(b))}}
	}
	if _, err := prefill.Register(nixl.DRAM, region(there)); err != nil {
		fmt.Println(err)
		return
	}
	if _, err := decode.Register(nixl.DRAM, region(here)); err != nil {
		fmt.Println(err)
		return
	}
	blob, err := prefill.Metadata()
	if err != nil {
		fmt.Println(err)
		return
	}
	peer, err := decode.AddPeer(blob)
	if err != nil {
		fmt.Println(err)
		return
	}
	t, err := decode.NewTransfer(nixl.Spec{
		Op: nixl.Read, Peer: peer, Local: region(here), Remote: region(there), Notification: []byte("read"),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := t.Post(); err != nil {
		fmt.Println(err)
		return
	}
	clk := decode.Clock()
	if err := nixl.Wait(ctx, clk, decode, t, clk.Now()+10*time.Second); err != nil {
		// Unless nixl.Quiet(err), the memory is poisoned until decode.Recover.
		fmt.Println(err)
		return
	}
	fmt.Println(t.Close())
}
