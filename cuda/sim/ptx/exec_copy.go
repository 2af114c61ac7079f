package ptx

import "math/bits"

// asyncCopy is a cp.async that its thread has not waited for. Memory is read and
// written then, which is as late as the ISA allows, so that a missing wait shows.
type asyncCopy struct {
	lane     int
	group    uint32
	in       *inst
	to, from uint64
	bytes    uint64 // of the source; the rest is zeros
}

func lowest(m uint32) int { return bits.TrailingZeros32(m) & 31 }

func (r *Run) copyAsync(w *warp, in *inst, m uint32) error {
	w.watch.impure()
	for ; m != 0; m &= m - 1 {
		lane := lowest(m)
		c := asyncCopy{lane: lane, group: w.groups[lane], in: in, from: w.regs[in.a][lane] + uint64(in.imm),
			to: (w.regs[in.c][lane] + w.regs[in.elems[0]][lane]) & 0xffffffff, bytes: min(w.regs[in.b][lane], uint64(in.size))}
		if in.flags&flagIgnore != 0 && (w.preds[in.q]>>lane&1 != 0) == (in.flags&flagNot == 0) {
			c.bytes = 0
		}
		if _, _, _, err := r.ends(w, c); err != nil {
			return err
		}
		w.copies = append(w.copies, c)
	}
	return nil
}

// ends returns the bytes on both sides of a copy.
func (r *Run) ends(w *warp, c asyncCopy) (to, from []byte, g *Region, err error) {
	to, _, t := r.at(w, c.in, c.lane, spaceShared, c.to, uint64(c.in.size), true)
	if t != nil {
		return nil, nil, nil, t
	}
	if c.bytes == 0 {
		return to, nil, nil, nil
	}
	from, g, t = r.at(w, c.in, c.lane, spaceGlobal, c.from, uint64(c.in.size), false)
	if t != nil && c.bytes < uint64(c.in.size) && t.Kind == ErrOutOfBounds { // the rest need not be there
		from, g = r.whole(c.from, c.bytes)
		if from != nil {
			return to, from, g, nil
		}
	}
	if t != nil {
		return nil, nil, nil, t
	}
	return to, from[:c.bytes], g, nil
}

// commit closes a group of each lane.
func (w *warp) commit(m uint32) {
	for ; m != 0; m &= m - 1 {
		w.groups[lowest(m)]++
	}
}

// copyWait makes the copies of all but the newest groups, in.imm of them; or all, of
// groups that are not closed too.
func (r *Run) copyWait(w *warp, in *inst, m uint32) error {
	kept := w.copies[:0]
	for i, c := range w.copies {
		open := int64(c.group) >= int64(w.groups[c.lane])-in.imm
		if m>>c.lane&1 == 0 || open && in.flags&flagAll == 0 {
			kept = append(kept, c)
			continue
		}
		to, from, g, err := r.ends(w, c)
		if err != nil {
			w.copies = append(kept, w.copies[i+1:]...)
			return err
		}
		if g != nil {
			r.read += c.bytes * uint64(g.Scale)
			r.accessed(c.in, c.from, c.bytes, false)
		}
		clear(to[copy(to, from):])
		r.writes++
	}
	w.copies = kept
	return nil
}

// inSpace says which lanes have a generic address of a space.
func (r *Run) inSpace(a *lanes, sp space) (set uint32) {
	for i, x := range a {
		var is bool
		constant := x-r.l.Image < r.k.constBytes && r.l.Image != 0
		switch top := x >> 56 << 56; sp {
		case spaceConst:
			is = constant
		case spaceShared:
			is = top == windowShared
		case spaceLocal:
			is = top == windowLocal
		case spaceParam:
			is = top == windowParam
		default:
			is = top != windowShared && top != windowLocal && top != windowParam && !constant
		}
		if is {
			set |= 1 << i
		}
	}
	return set
}
