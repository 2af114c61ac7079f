package softnic_test

import (
	"fmt"
	"testing"

	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// What the simulated fabric costs the machine that simulates it. None of this
// says anything about a real one.
func BenchmarkSimulated(b *testing.B) {
	for _, n := range []int{1, 64, 512} {
		b.Run(fmt.Sprintf("transfer-%d", n), func(b *testing.B) {
			x := newPair(b, vtime.NewVirtual(vtime.Options{}), softnic.Options{})
			tr := x.transfer(x.spec(nixl.Read, 0, n, 2048))
			b.ReportAllocs()
			for b.Loop() {
				if err := tr.Post(); err != nil {
					b.Fatal(err)
				}
				if err := x.wait(tr); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n*softnic.DefaultMinChunks), "ns/chunk")
		})
	}
	b.Run("status", func(b *testing.B) {
		x := newPair(b, vtime.NewVirtual(vtime.Options{}), softnic.Options{})
		tr := x.transfer(x.spec(nixl.Read, 0, 1, 64))
		b.ReportAllocs()
		for b.Loop() {
			if _, err := tr.Status(); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("make-512", func(b *testing.B) {
		x := newPair(b, vtime.NewVirtual(vtime.Options{}), softnic.Options{})
		s := x.spec(nixl.Read, 0, 512, 2048)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := x.d.NewTransfer(s); err != nil {
				b.Fatal(err)
			}
		}
	})
}
