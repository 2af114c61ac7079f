package main

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
)

// What a step does to the pages of its blocks, one after the other over its
// running time.
const (
	writes = iota // garbage
	checks        // compares them with what the peer sent, and reports
)

// The arguments of a step are 64-bit words: these, and the pages' addresses.
const (
	argAct    = iota // writes or checks
	argTime          // nanoseconds
	argTag           // of the first page
	argReport        // address of one word for each page
	argPages
)

// step returns the launch of a step over the blocks, for [loadgate.Step.Launch].
func (m *machine) step(act int, ts []kv.Tenancy, d time.Duration) func(*loadgate.Commands) error {
	words := []uint64{argAct: uint64(act), argTime: uint64(d), argTag: m.tag, argReport: uint64(m.report.Ptr())}
	words = append(words, m.pages(ts)...)
	return func(b *loadgate.Commands) error {
		one := cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}
		args := b.Launch(m.Compute, m.forward, one, 8*len(words))
		for i, w := range words {
			binary.LittleEndian.PutUint64(args[8*i:], w)
		}
		return nil
	}
}

// The forward step is a model: a Go function that the simulator runs as a
// kernel, piece by piece at the times when the pieces are due.
func init() {
	sim.RegisterModel("race step", func(k *sim.ModelLaunch) error {
		word := func(i int) uint64 { return binary.LittleEndian.Uint64(k.Args[8*i:]) }
		k.Chunks = len(k.Args)/8 - argPages
		k.Time = time.Duration(word(argTime))
		moved := float64(k.Chunks * page)
		got, want := make([]byte, page), make([]byte, page)
		switch word(argAct) {
		case writes:
			k.Written = moved
			k.Step = func(mem *sim.Memory, i int) error {
				return mem.Write(word(argPages+i), bytes.Repeat([]byte{0x5a}, page))
			}
		case checks:
			k.Read = moved
			k.Step = func(mem *sim.Memory, i int) error {
				if err := mem.Read(word(argPages+i), got); err != nil {
					return err
				}
				tag := word(argTag) + uint64(i)
				fill(want, tag)
				report := binary.LittleEndian.AppendUint64(nil, saw(tag, bytes.Equal(got, want)))
				return mem.Write(word(argReport)+8*uint64(i), report)
			}
		default:
			return fmt.Errorf("race step: act %d", word(argAct))
		}
		return nil
	})
}

// saw is what a checking step reports of the page with that tag.
func saw(tag uint64, intact bool) uint64 {
	if intact {
		return tag << 1
	}
	return tag<<1 | 1
}
