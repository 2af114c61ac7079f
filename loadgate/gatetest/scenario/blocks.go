package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
)

var blockVerbs = []*verb{
	{name: "alloc", help: "take blocks from the pool", args: []arg{{name: "blocks", kind: newBlocks}, {name: "count", kind: count}}, run: (*run).alloc},
	{name: "forge", help: "name a block that the pool did not hand out",
		args: []arg{{name: "blocks", kind: newBlocks}, {name: "id", kind: count}},
		opts: []arg{{name: "generation", kind: count}, {name: "pad", kind: flag}}, run: (*run).forge},
	{name: "free", help: "give blocks back to the pool", args: []arg{{name: "blocks", kind: blockList}}, run: (*run).free},
	{name: "ref", help: "take another reference to blocks", args: []arg{{name: "blocks", kind: blockList}}, run: (*run).ref},
	{name: "hold", help: "a request's set of blocks", args: []arg{{name: "holder", kind: newHolder}, {name: "blocks", kind: blockList}}, run: (*run).hold},
	{name: "append", help: "add blocks to a holder", args: []arg{{name: "holder", kind: aHolder}, {name: "blocks", kind: blockList}}, run: (*run).append},
	{name: "remove", help: "take blocks out of a holder", args: []arg{{name: "holder", kind: aHolder}, {name: "blocks", kind: blockList}}, run: (*run).remove},
	{name: "drop", help: "let go of a holder", args: []arg{{name: "holder", kind: aHolder}}, run: (*run).drop},
	{name: "zero", help: "zero blocks; covered: a load will overwrite them wholly",
		args: []arg{{name: "blocks", kind: blockList}}, opts: []arg{{name: "covered", kind: flag}}, run: (*run).zero},
	{name: "reset", help: "reset state rows, which without a template is to zero", args: []arg{{name: "blocks", kind: blockList}}, run: (*run).reset},
}

func (r *run) alloc(st *statement) (string, error) {
	ts, err := r.rig.Pool.Alloc(st.args[1].n, nil)
	if err != nil {
		return "", refusal(err)
	}
	return r.name(st.args[0].word, ts), nil
}

// name enters new tenancies under a name and says which they are.
func (r *run) name(name string, ts []kv.Tenancy) string {
	var cells []*cell
	var ids []string
	for i, t := range ts {
		c := newCell(fmt.Sprintf("%s.%d", name, i), t, !r.spec.clean)
		r.alias(fmt.Sprintf("block %d gen %d", t.Block, t.Generation), c.name)
		if t.Block > 0 {
			r.current[t.Block] = c
		}
		cells = append(cells, c)
		ids = append(ids, fmt.Sprint(t.Block))
	}
	r.blocks[name] = cells
	if len(ids) == 0 {
		return "no blocks"
	}
	return "blocks " + strings.Join(ids, " ")
}

func (r *run) forge(st *statement) (string, error) {
	id, gen := kv.Block(st.args[1].n), kv.Generation(1)
	if st.has("generation") {
		gen = kv.Generation(st.opts["generation"].n)
	}
	if st.has("pad") {
		id = -1 - id
	}
	c := newCell(st.args[0].word+".0", kv.Tenancy{Block: id, Generation: gen}, false)
	r.blocks[st.args[0].word] = []*cell{c}
	return "", nil
}

func (r *run) free(st *statement) (string, error) {
	cells, err := r.cells(st.args[0].blocks)
	if err != nil {
		return "", err
	}
	if err := r.rig.Pool.Free(tenancies(cells)); err != nil {
		return "", refusal(err)
	}
	for _, c := range cells {
		if r.rig.Pool.Refs(c.t) == 0 && r.current[c.t.Block] == c {
			r.current[c.t.Block] = nil
		}
	}
	return "", nil
}

func (r *run) ref(st *statement) (string, error) {
	cells, err := r.cells(st.args[0].blocks)
	if err != nil {
		return "", err
	}
	return "", refusal(r.rig.Pool.Ref(tenancies(cells)))
}

func (r *run) hold(st *statement) (string, error) {
	cells, err := r.cells(st.args[1].blocks)
	if err != nil {
		return "", err
	}
	h, err := r.rig.Gate.Hold(0, tenancies(cells))
	if err != nil {
		return "", refusal(err)
	}
	r.holders[st.args[0].word] = &holder{h, cells}
	r.alias(h.String(), st.args[0].word)
	return "", nil
}

// change does something with a holder and blocks.
func (r *run) change(st *statement, do func(*holder, []*cell) error) (string, error) {
	h, err := r.holder(st.args[0].word)
	if err != nil {
		return "", err
	}
	cells, err := r.cells(st.args[1].blocks)
	if err != nil {
		return "", err
	}
	return "", refusal(do(h, cells))
}

func (r *run) append(st *statement) (string, error) {
	return r.change(st, func(h *holder, cells []*cell) error {
		err := r.rig.Gate.Append(h.h, 0, tenancies(cells))
		if err == nil {
			h.cells = append(slices.Clone(h.cells), cells...)
		}
		return err
	})
}

func (r *run) remove(st *statement) (string, error) {
	return r.change(st, func(h *holder, cells []*cell) error {
		err := r.rig.Gate.Remove(h.h, 0, tenancies(cells))
		if err == nil {
			h.cells = slices.DeleteFunc(slices.Clone(h.cells), func(c *cell) bool { return slices.Contains(cells, c) })
		}
		return err
	})
}

func (r *run) drop(st *statement) (string, error) {
	h, err := r.holder(st.args[0].word)
	if err != nil {
		return "", err
	}
	return "", refusal(r.rig.Gate.Drop(h.h))
}

func (r *run) zero(st *statement) (string, error) {
	return r.fill(st, loadgate.ZeroRequest{Filling: loadgate.Zeroing, Covered: st.has("covered")})
}

func (r *run) reset(st *statement) (string, error) {
	return r.fill(st, loadgate.ZeroRequest{Filling: loadgate.Resetting})
}

func (r *run) fill(st *statement, q loadgate.ZeroRequest) (string, error) {
	cells, err := r.cells(st.args[0].blocks)
	if err != nil {
		return "", err
	}
	q.Tenancies = tenancies(cells)
	if err := r.rig.Gate.Zero(q); err != nil {
		return "", refusal(err)
	}
	if q.Covered && r.spec.mode.Coverage == core.ZeroUncovered {
		return "left to the load", nil
	}
	for _, c := range cells {
		c.zeroed()
		c.asked = true
	}
	return "", nil
}
