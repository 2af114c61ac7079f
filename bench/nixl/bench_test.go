package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
)

func open(t testing.TB) *golang {
	t.Helper()
	e, err := find()
	if errors.Is(err, dl.ErrNoCgo) {
		t.Skip(err)
	}
	if err != nil {
		testutil.SkipOrFail(t, "no NIXL: %v", err)
	}
	g, err := openGo(e.lib)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, g.Close()) })
	return g
}

// Posting again what was prepared allocates nothing, nor does asking.
func TestRepostAllocatesNothing(t *testing.T) {
	g := open(t)
	for _, n := range counts {
		x, err := g.a.NewTransfer(g.spec(n))
		require.NoError(t, err)
		allocations := testing.AllocsPerRun(100, func() {
			if err := x.Post(); err != nil {
				t.Error(err)
			}
			if err := finish(x); err != nil {
				t.Error(err)
			}
		})
		require.Zero(t, allocations, "%d descriptors", n)
		require.NoError(t, x.Close())
	}
}

func BenchmarkTransfer(b *testing.B) {
	g := open(b)
	for _, n := range counts {
		spec := g.spec(n)
		b.Run(fmt.Sprintf("make and release/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				x, err := g.a.NewTransfer(spec)
				require.NoError(b, err)
				require.NoError(b, x.Close())
			}
		})
		b.Run(fmt.Sprintf("repost/%d", n), func(b *testing.B) {
			b.ReportAllocs()
			x, err := g.a.NewTransfer(spec)
			require.NoError(b, err)
			for b.Loop() {
				if err := x.Post(); err != nil {
					b.Fatal(err)
				}
				if err := finish(x); err != nil {
					b.Fatal(err)
				}
			}
			require.NoError(b, x.Close())
		})
	}
	x, err := g.a.NewTransfer(g.spec(1))
	require.NoError(b, err)
	require.NoError(b, x.Post())
	require.NoError(b, finish(x))
	b.Run("status", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if s, _ := x.Status(); s != nixl.Done {
				b.Fatal(s)
			}
		}
	})
	require.NoError(b, x.Close())
}
