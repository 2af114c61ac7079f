package loadgate

import (
	"fmt"
	"slices"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

// locate finds the blocks that a transfer touches and puts them, merged, into
// g.pieces.
func (g *Gate) locate(kind core.Kind, spec *nixl.Spec) error {
	g.pieces = g.pieces[:0]
	for i := range spec.Local {
		d := spec.Local[i]
		for first := true; first || d.Len > 0; first = false { // it may go over blocks that follow each other
			p, n, err := g.findBytes(&d)
			if err != nil {
				return fmt.Errorf("loadgate: %v: local descriptor %d (%v): %w", kind, i, &spec.Local[i], err)
			}
			d.Addr += n
			d.Len -= n
			// Pages of a block are usually listed one after the other.
			if n := len(g.pieces); n > 0 && g.join(&g.pieces[n-1], &p) {
				continue
			}
			g.pieces = append(g.pieces, p)
		}
	}
	// Descriptors in another order: layers outermost, or at random.
	if len(g.pieces) > 1 {
		slices.SortFunc(g.pieces, comparePieces)
		n := 0
		for i := 1; i < len(g.pieces); i++ {
			if !g.join(&g.pieces[n], &g.pieces[i]) {
				n++
				g.pieces[n] = g.pieces[i]
			}
		}
		g.pieces = g.pieces[:n+1]
	}
	return nil
}

func comparePieces(a, b core.Piece) int {
	switch {
	case a.Pool != b.Pool:
		return int(a.Pool) - int(b.Pool)
	case a.Tenancy.Block != b.Tenancy.Block:
		return int(a.Tenancy.Block) - int(b.Tenancy.Block)
	case a.Bytes.Off < b.Bytes.Off:
		return -1
	case a.Bytes.Off > b.Bytes.Off:
		return 1
	}
	return 0
}

// join extends a by b where b follows it in the same block. Bytes that are
// listed twice stay apart, and are refused later; but for blocks whose pages
// overlap, where every descriptor stands for the whole block.
func (g *Gate) join(a, b *core.Piece) bool {
	if a.Pool != b.Pool || a.Tenancy != b.Tenancy {
		return false
	}
	if a.Bytes == kv.WholeBlock && b.Bytes == kv.WholeBlock {
		return true
	}
	if a.Bytes.End() != b.Bytes.Off || b.Bytes == kv.WholeBlock {
		return false
	}
	a.Bytes.Len += b.Bytes.Len
	return true
}

// findBytes returns the block that the first bytes of a descriptor belong to, and
// how many of them do.
func (g *Gate) findBytes(d *nixl.Descriptor) (core.Piece, uint64, error) {
	var first error
	for i := range g.pools {
		b, bytes, n, err := g.pools[i].where.Prefix(d.Addr, d.Len)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		return core.Piece{Pool: kv.PoolID(i), Bytes: bytes,
			Tenancy: kv.Tenancy{Block: b, Generation: g.core.Generation(kv.PoolID(i), b)}}, n, nil
	}
	return core.Piece{}, 0, first
}
