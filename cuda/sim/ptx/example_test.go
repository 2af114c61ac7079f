package ptx_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"

	"github.com/kvgate/kvgate/cuda/sim/ptx"
)

// buffer is global memory of one region.
type buffer struct {
	base uint64
	data []byte
}

func (b buffer) Region(addr uint64) (ptx.Region, bool) {
	return ptx.Region{Base: b.base, Data: b.data}, addr-b.base < uint64(len(b.data))
}

func Example() {
	src, err := os.ReadFile("testdata/zero.ptx")
	if err != nil {
		fmt.Println(err)
		return
	}
	module, err := ptx.Parse("zero.ptx", src)
	if err != nil {
		fmt.Println(err)
		return
	}
	kernel, _ := module.Kernel("zero_flat") // (uint4* p, u64 n)
	memory := buffer{base: 1 << 40, data: []byte("sixteen bytes ..the next sixteen")}
	launch := ptx.Launch{Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}}
	launch.Params = binary.LittleEndian.AppendUint64(nil, memory.base)
	launch.Params = binary.LittleEndian.AppendUint64(launch.Params, 1)

	run, err := kernel.Start(memory, launch)
	if err != nil {
		fmt.Println(err)
		return
	}
	done, err := run.Step(run.Blocks())
	_, written := run.Traffic()
	fmt.Printf("%v %v, %d bytes: %q\n", done, err, written, memory.data)

	binary.LittleEndian.PutUint64(launch.Params[8:], 3)
	if run, err = kernel.Start(memory, launch); err == nil {
		_, err = run.Step(1)
	}
	fmt.Println(errors.Is(err, ptx.ErrOutOfBounds))
	fmt.Println(err)
	// Output:
	// true <nil>, 16 bytes: "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00the next sixteen"
	// true
	// ptx: kernel zero_flat, line 46 (st.global.v4.u32), block (0,0,0), thread (2,0,0): access out of bounds: 16 bytes at global address 0x10000000020: no memory there
}
