package ptx

import "fmt"

// exec runs a warp until it waits at a barrier or has exited; its state says
// which.
//
// An op computes all 32 lanes. When fewer are running, its result goes to a
// scratch register first and the running lanes of that to the destination;
// lanes that have exited may hold anything.
func (r *Run) exec(w *warp) error {
	code := r.k.code
	regs, preds := w.regs, w.preds
	pc := w.pc
	n := w.steps
	for {
		in := &code[pc]
		pc++
		n++
		m := w.mask
		if in.guard >= 0 {
			m &= preds[in.guard] ^ in.invert
			if m == 0 {
				continue
			}
		}
		d := &regs[in.d]
		if m != w.live {
			d = &r.scratch
		}
		a, b, c := &regs[in.a], &regs[in.b], &regs[in.c]
		var set uint32 // result of ops on predicates, one bit a lane
		switch in.op {
		case opMov:
			*d = *a
		case opAdd:
			add(d, a, b, in.mask)
		case opSub:
			sub(d, a, b, in.mask)
		case opMul:
			mul(d, a, b, in.mask)
		case opMulWideU:
			mulWideU(d, a, b)
		case opMulWideS:
			mulWideS(d, a, b, in.sh, in.mask)
		case opMulHiU:
			mulHiU(d, a, b, in.sh)
		case opMulHiS:
			mulHiS(d, a, b, in.sh, in.mask)
		case opMad:
			mad(d, a, b, c, in.mask)
		case opMadWideU:
			mad(d, a, b, c, in.mask)
		case opMadWideS:
			madWideS(d, a, b, c, in.sh, in.mask)
		case opMadHiU:
			mulHiU(&r.scratch, a, b, in.sh)
			add(d, &r.scratch, c, in.mask)
		case opMadHiS:
			mulHiS(&r.scratch, a, b, in.sh, in.mask)
			add(d, &r.scratch, c, in.mask)
		case opDivU:
			divU(d, a, b, in.mask)
		case opDivS:
			divS(d, a, b, in.sh, in.mask)
		case opRemU:
			remU(d, a, b)
		case opRemS:
			remS(d, a, b, in.sh, in.mask)
		case opMinU:
			minU(d, a, b)
		case opMinS:
			minS(d, a, b, in.sh)
		case opMaxU:
			maxU(d, a, b)
		case opMaxS:
			maxS(d, a, b, in.sh)
		case opNeg:
			neg(d, a, in.mask)
		case opAbs:
			abs(d, a, in.sh, in.mask)
		case opSadU:
			sadU(d, a, b, c, in.mask)
		case opSadS:
			sadS(d, a, b, c, in.sh, in.mask)
		case opAddCC:
			out := addCarry(d, a, b, w.carryIn(in), in.sh, in.mask)
			w.carryOut(in, m, out)
		case opSubCC:
			out := subBorrow(d, a, b, w.carryIn(in), in.mask)
			w.carryOut(in, m, out)
		case opCvt:
			convert(d, a, in)

		case opAnd:
			and(d, a, b)
		case opOr:
			or(d, a, b)
		case opXor:
			xor(d, a, b)
		case opNot:
			not(d, a, in.mask)
		case opCnot:
			cnot(d, a)
		case opShl:
			shl(d, a, b, in.mask)
		case opShrU:
			shrU(d, a, b)
		case opShrS:
			shrS(d, a, b, in.sh, in.mask)
		case opShfL:
			shfL(d, a, b, c, in.flags&flagClamp != 0)
		case opShfR:
			shfR(d, a, b, c, in.flags&flagClamp != 0)
		case opLop3:
			lop3(d, a, b, c, in.sub)
		case opPrmt:
			prmt(d, a, b, c, in.sub)
		case opBfeU:
			bfeU(d, a, b, c, in.sh)
		case opBfeS:
			bfeS(d, a, b, c, in.sh, in.mask)
		case opBfi:
			bfi(d, a, b, c, &regs[in.elems[0]], in.sh)
		case opPopc:
			popc(d, a)
		case opClz:
			clz(d, a, in.sh)
		case opBrev:
			brev(d, a, in.sh)
		case opFindU:
			findU(d, a, in.sh, in.flags&flagShift != 0)
		case opFindS:
			findS(d, a, in.sh, in.mask, in.flags&flagShift != 0)
		case opPack:
			pack(d, regs, in)
		case opUnpack:
			unpack(d, a, in.sh, in.mask)

		case opSetEq:
			set = setEq(a, b)
		case opSetNe:
			set = ^setEq(a, b)
		case opSetLtU:
			set = setLtU(a, b)
		case opSetLeU:
			set = ^setLtU(b, a)
		case opSetLtS:
			set = setLtS(a, b, in.sh)
		case opSetLeS:
			set = ^setLtS(b, a, in.sh)
		case opSetF:
			set = setFloat(a, b, in.sub, in.sh)
		case opSelp:
			p := preds[in.p]
			if in.flags&flagNot != 0 {
				p = ^p
			}
			selp(d, a, b, p)
		case opSlct:
			selp(d, a, b, ^setLtS(c, &zeroLanes, in.sh))
		case opPredAnd:
			set = preds[in.elems[0]] & preds[in.elems[1]]
		case opPredOr:
			set = preds[in.elems[0]] | preds[in.elems[1]]
		case opPredXor:
			set = preds[in.elems[0]] ^ preds[in.elems[1]]
		case opPredNot:
			set = ^preds[in.elems[0]]
		case opPredMov:
			set = preds[in.elems[0]]
		case opPredSet:
			predSet(d, preds[in.p], in.mask)

		case opFloat1:
			float1(d, a, in.sub, in.sh)
		case opFloat2:
			float2(d, a, b, in.sub, in.sh)
		case opFloat3:
			float3(d, a, b, c, in.sh)
		case opCvtF:
			convertFloat(d, a, in)

		case opLd:
			if err := r.load(w, in, m); err != nil {
				return err
			}
			continue
		case opSt:
			if err := r.store(w, in, m); err != nil {
				return err
			}
			continue
		case opLdParam:
			if err := r.loadParam(w, in, m); err != nil {
				return err
			}
			continue
		case opAtom:
			if err := r.atomic(w, in, m); err != nil {
				return err
			}
			continue
		case opNop:
			continue

		case opShfl, opVote, opMatch, opWarpSync:
			ok, moved := w.gather(pc-1, membersOf(w, in, m))
			if moved {
				pc = w.pc
				continue
			}
			if !ok {
				return r.trap(w, in, m, ErrDivergentBarrier, "lanes of its mask are elsewhere")
			}
			if m = w.mask; in.guard >= 0 {
				m &= preds[in.guard] ^ in.invert
			}
			switch in.op {
			case opShfl:
				shuffle(w, in, m)
			case opVote:
				vote(w, in, m)
			case opMatch:
				match(w, in, m)
			}
			continue
		case opActive:
			d.fill(uint64(m))
		case opClock:
			d.fill(n >> in.sub & in.mask)
		case opTimer:
			d.fill((r.now + w.slept) >> in.sub & in.mask)
		case opSleep:
			w.sleep(a, m)
			continue
		case opBar:
			ok, moved := w.gather(pc-1, w.live)
			if moved {
				pc = w.pc
				continue
			}
			if !ok || m != w.live && in.guard >= 0 {
				return r.trap(w, in, m, ErrDivergentBarrier, "threads of the warp are elsewhere")
			}
			w.pc, w.steps = pc, n
			return r.arrive(w, in)

		case opBra:
			if n > r.l.StepLimit {
				return r.trap(w, in, m, ErrStepLimit, fmt.Sprintf("%d instructions", n))
			}
			if m == w.mask {
				pc = in.target
			} else {
				pc = w.branch(m, in.target, pc, in.join)
			}
			continue
		case opJoin:
			n-- // no instruction of the kernel
			if w.rpc == pc-1 {
				w.pop()
				pc = w.pc
			}
			continue
		case opExit:
			w.exit(m)
			if w.mask == 0 {
				if !w.pop() {
					w.state = warpExited
					r.count.Instructions += n
					r.count.Longest = max(r.count.Longest, n)
					return nil
				}
				pc = w.pc
			}
			continue
		case opTrap:
			return r.trap(w, in, m, ErrTrapped, "")
		default:
			return r.trap(w, in, m, ErrBadInstruction, in.op.String())
		}

		switch {
		case in.op.writesPred():
			preds[in.p] = preds[in.p]&^m | set&m
		case d == &r.scratch:
			blend(&regs[in.d], d, m)
		}
	}
}
