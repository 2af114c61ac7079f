package layout

import (
	"errors"
	"fmt"

	"github.com/kvgate/kvgate/memory/kv"
)

var (
	// ErrNull: the null block was named where something would be written.
	ErrNull = errors.New("null block")
	// ErrRange: a block id is not of the pool.
	ErrRange = errors.New("block id out of range")
)

// CheckIDs checks that every id may be written. Negative ids are padding and
// pass; id 0 is an error that wraps [ErrNull] unless the table says RealNull,
// and an id of Blocks or more one that wraps [ErrRange]. The error names the
// first such id and its place.
func (t *Table) CheckIDs(ids []kv.Block) error {
	first := uint32(t.First())
	span := uint32(t.Blocks) - first
	for i, id := range ids {
		if uint32(id)-first < span || id < 0 {
			continue
		}
		if id == kv.Null && !t.RealNull {
			return fmt.Errorf("layout: pool %d: id %d of the list: %w", t.Pool, i, ErrNull)
		}
		return fmt.Errorf("layout: pool %d: id %d of the list is block %d of %d: %w", t.Pool, i, id, t.Blocks, ErrRange)
	}
	return nil
}
