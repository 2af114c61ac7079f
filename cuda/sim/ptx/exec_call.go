package ptx

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// frame is a call that has not returned.
type frame struct {
	mask  uint32 // lanes that have not returned
	site  *callSite
	to    *target
	out   []move
	regs  []lanes // the callee's registers before the call
	preds []uint32
}

// lane returns the local memory of a lane from an address on.
func (r *Run) frameOf(w *warp, lane int, base uint64) []byte {
	return w.local[lane*r.k.local : (lane+1)*r.k.local][base:]
}

// call makes the lanes of m run a function; pc is behind the call.
func (r *Run) call(w *warp, in *inst, m uint32, pc int32) (int32, error) {
	site := &r.k.calls[in.imm]
	return r.enter(w, in, m, pc, site, &site.to, site.in, site.out)
}

// callPointer is call with the address of a function. Lanes that call another one
// than the first do so when these have come back, and meet behind the call.
func (r *Run) callPointer(w *warp, in *inst, m uint32, pc int32) (int32, error) {
	site := &r.k.calls[in.imm]
	lane := lowest(m)
	address := w.regs[in.a][lane]
	var p *pointer
	for i := range r.k.pointers {
		if windowCode|uint64(r.k.pointers[i].function+1)<<4 == address {
			p = &r.k.pointers[i]
		}
	}
	if p == nil || len(p.params) != len(site.in) || len(p.results) != len(site.out) {
		return 0, r.trap(w, in, 1<<lane, ErrOutOfBounds, fmt.Sprintf("no function of that signature at %#x", address))
	}
	same := uint32(0)
	for i, a := range w.regs[in.a] {
		if m>>i&1 != 0 && a == address {
			same |= 1 << i
		}
	}
	if same != w.mask {
		w.stack = append(w.stack, entryPoint{pc: pc, rpc: w.rpc, mask: w.mask})
		w.rpc = pc
		if rest := m &^ same; rest != 0 {
			w.stack = append(w.stack, entryPoint{pc: pc - 1, rpc: pc, mask: rest})
		}
		w.mask = same
	}
	ins, outs := slices.Clone(site.in), slices.Clone(site.out)
	for i := range ins {
		ins[i].to = p.params[i]
	}
	for i := range outs {
		outs[i].from = p.results[i]
	}
	return r.enter(w, in, same, pc, site, &p.to, ins, outs)
}

func (r *Run) enter(w *warp, in *inst, m uint32, pc int32, site *callSite, to *target, ins, outs []move) (int32, error) {
	if len(w.stack) >= maxCallDepth*4 {
		return 0, r.trap(w, in, m, ErrStack, fmt.Sprintf("%d calls in each other", maxCallDepth))
	}
	f := &frame{mask: m, site: site, to: to, out: outs}
	for _, s := range to.regs {
		f.regs = append(f.regs, w.regs[s])
	}
	for _, s := range to.preds {
		f.preds = append(f.preds, w.preds[s])
	}
	var own lanes
	for lane := range warpSize {
		if m>>lane&1 == 0 {
			continue
		}
		base := w.regs[site.base][lane]
		own[lane] = base + uint64(site.frame)
		if own[lane]+uint64(to.size) > uint64(r.k.local) {
			return 0, r.trap(w, in, 1<<lane, ErrStack, fmt.Sprintf("a thread has %d bytes", r.k.local))
		}
		from, into := r.frameOf(w, lane, base), r.frameOf(w, lane, own[lane])
		for _, c := range ins {
			copy(into[c.to:c.to+c.size], from[c.from:])
		}
	}
	blend(&w.regs[to.base], &own, m)
	w.stack = append(w.stack, entryPoint{pc: pc, rpc: w.rpc, mask: w.mask, call: f})
	w.rpc, w.mask = noPlace, m
	return to.start, nil
}

// finish is the return of lanes from a call.
func (r *Run) finish(w *warp, f *frame, m uint32) {
	m &= f.mask
	f.mask &^= m
	for lane := range warpSize {
		if m>>lane&1 == 0 {
			continue
		}
		own := w.regs[f.to.base][lane]
		from, into := r.frameOf(w, lane, own), r.frameOf(w, lane, own-uint64(f.site.frame))
		for _, c := range f.out {
			copy(into[c.to:c.to+c.size], from[c.from:])
		}
	}
	for i, s := range f.to.regs {
		blend(&w.regs[s], &f.regs[i], m)
	}
	for i, s := range f.to.preds {
		w.preds[s] = w.preds[s]&^m | f.preds[i]&m
	}
}

func frameWord(p []byte) uint64 { return binary.LittleEndian.Uint64(p) }
