package ptx

import "slices"

// system lowers the call of a function that the driver defines.
func (b *builder) system(a callArgs, e *entry) error {
	o, sizes, results := opPrint, []uint64{8, 8}, []uint64{4}
	switch e.name {
	case "vprintf":
	case "__assertfail":
		o, sizes, results = opAssert, []uint64{8, 8, 4, 8, 8}, nil
	default:
		return b.errorf("function %s is not defined in this module", e.name)
	}
	bytes := func(list []*variable) (n []uint64) {
		for _, v := range list {
			n = append(n, v.size)
		}
		return n
	}
	if !slices.Equal(bytes(e.params), sizes) || !slices.Equal(bytes(e.rets), results) {
		return b.errorf("function %s is not declared as the driver has it", e.name)
	}
	params, err := b.actuals(a.params, e.params, false)
	if err != nil {
		return err
	}
	rets := a.rets
	if len(rets) == 0 && len(results) > 0 { // the result is not wanted
		rets = []arg{{kind: argSink}}
	}
	out, err := b.actuals(rets, e.rets, true)
	if err != nil {
		return err
	}
	n, err := b.guarded(o)
	if err != nil {
		return err
	}
	n.a = b.fn.base
	for i, p := range params {
		n.elems[i] = int32(p.from)
	}
	if len(out) > 0 {
		n.imm = int64(out[0].from)
		out[0].to = out[0].from
	}
	return b.results(rets, e.rets, out)
}
