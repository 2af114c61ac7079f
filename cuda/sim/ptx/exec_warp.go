package ptx

import "math/bits"

// membersOf returns the lanes that a .sync instruction wants to bring together:
// its mask, less those that have exited. All lanes give the same mask.
func membersOf(w *warp, in *inst, m uint32) uint32 {
	return uint32(w.regs[in.elems[0]][bits.TrailingZeros32(m)&31]) & w.live
}

// shuffle is shfl.sync (section "shfl.sync", whose pseudocode names maxLane and
// minLane so).
func shuffle(w *warp, in *inst, m uint32) {
	var out lanes
	set := uint32(0)
	a, b, c := &w.regs[in.a], &w.regs[in.b], &w.regs[in.c]
	for lane := range int64(warpSize) {
		bval, cval := int64(b[lane]&31), int64(c[lane]&31)
		seg := int64(c[lane] >> 8 & 31)
		maxLane := lane&seg | cval&^seg
		minLane := lane & seg
		j, ok := lane, false
		switch in.sub {
		case shflUp:
			j = lane - bval
			ok = j >= maxLane
		case shflDown:
			j = lane + bval
			ok = j <= maxLane
		case shflBfly:
			j = lane ^ bval
			ok = j <= maxLane
		case shflIdx:
			j = minLane | bval&^seg
			ok = j <= maxLane
		}
		if !ok {
			j = lane
		} else {
			set |= 1 << lane
		}
		out[lane] = a[j&31]
	}
	blend(&w.regs[in.d], &out, m)
	if in.p >= 0 {
		w.preds[in.p] = w.preds[in.p]&^m | set&m
	}
}

// vote is vote.sync over the running lanes of the instruction's mask.
func vote(w *warp, in *inst, m uint32) {
	voters := m & membersOf(w, in, m)
	yes := w.preds[in.q]
	if in.flags&flagNot != 0 {
		yes = ^yes
	}
	yes &= voters
	result := false
	switch in.sub {
	case voteAll:
		result = yes == voters
	case voteAny:
		result = yes != 0
	case voteUni:
		result = yes == voters || yes == 0
	case voteBallot:
		var out lanes
		out.fill(uint64(yes))
		blend(&w.regs[in.d], &out, m)
		return
	}
	w.preds[in.p] &^= m
	if result {
		w.preds[in.p] |= m
	}
}

// match is match.sync over the running lanes of the instruction's mask.
func match(w *warp, in *inst, m uint32) {
	a, voters := w.regs[in.a], m&membersOf(w, in, m)
	var out lanes
	all := true
	for i := range a {
		same := uint32(0)
		for j := range a {
			if voters>>j&1 != 0 && a[i] == a[j] {
				same |= 1 << j
			}
		}
		if voters>>i&1 != 0 && same != voters {
			all = false
		}
		out[i] = uint64(same)
	}
	if in.sub == matchAll {
		v := uint64(0)
		if all {
			v = uint64(voters)
		}
		out.fill(v)
		if in.p >= 0 {
			w.preds[in.p] &^= m
			if all {
				w.preds[in.p] |= m
			}
		}
	}
	blend(&w.regs[in.d], &out, m)
}

// reduceWarp is redux.sync over the running lanes of the instruction's mask.
func reduceWarp(w *warp, in *inst, m uint32) {
	v := redux(&w.regs[in.a], m&membersOf(w, in, m), in)
	var out lanes
	out.fill(v)
	blend(&w.regs[in.d], &out, m)
}

// elect is elect.sync: the lowest lane of the mask is chosen.
func elect(w *warp, in *inst, m uint32) {
	leader := lowest(membersOf(w, in, m))
	var out lanes
	out.fill(uint64(leader))
	blend(&w.regs[in.d], &out, m)
	w.preds[in.p] = w.preds[in.p]&^m | 1<<leader&m
}

// arrive puts the warp at a barrier; pc is behind it.
func (r *Run) arrive(w *warp, in *inst) error {
	lane := bits.TrailingZeros32(w.live) & 31
	id := w.regs[in.a][lane]
	if id >= maxBarriers || id == clusterBarrier && in.flags&flagCluster == 0 {
		return r.trap(w, in, w.live, ErrDivergentBarrier, "barrier number above 15")
	}
	w.barrier, w.want = uint32(id), 0
	if in.flags&flagCount != 0 {
		n := w.regs[in.b][lane]
		if n == 0 || n%warpSize != 0 {
			return r.trap(w, in, w.live, ErrDivergentBarrier, "thread count is no multiple of 32")
		}
		w.want = uint32(n / warpSize)
	}
	if in.sub != redNone {
		w.votes = w.preds[in.q]
		if in.flags&flagNot != 0 {
			w.votes = ^w.votes
		}
		w.votes &= w.live
	}
	if in.flags&flagArrive != 0 {
		r.cur.joined[id]++
		r.writes++ // the warps that wait look again
		return nil
	}
	w.state = warpWaiting
	return nil
}

// barrierSum is what the warps at one barrier bring to it.
type barrierSum struct {
	warps uint32
	yes   uint32 // threads whose predicate holds
	all   bool
}

func (s *barrierSum) add(w *warp) {
	s.all = (s.warps == 0 || s.all) && w.votes == w.live
	s.warps++
	s.yes += uint32(bits.OnesCount32(w.votes))
}

// reduce gives a warp that leaves a barrier the result of bar.red.
func (w *warp) reduce(in *inst, s barrierSum) {
	result := false
	switch in.sub {
	case redNone:
		return
	case redPopc:
		w.regs[in.d].fill(uint64(s.yes))
		return
	case redAnd:
		result = s.all
	case redOr:
		result = s.yes != 0
	}
	w.preds[in.p] = 0
	if result {
		w.preds[in.p] = allLanes
	}
}
