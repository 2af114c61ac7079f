package ptx

// exec runs a warp until it waits, has had its turn or has exited; its state says
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
		case opAddSat:
			addSat(d, a, b, false)
		case opSubSat:
			addSat(d, a, b, true)
		case opHalves:
			halves(d, a, b, in)
		case opMul24:
			mul24(d, a, b, in.sub, in.flags&flagSigned != 0)
		case opDot:
			dot(d, a, b, c, in)
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
		case opBmsk:
			bitMask(d, a, b, in.flags&flagClamp != 0)
		case opSzext:
			szext(d, a, b, in)
		case opFns:
			findNth(d, a, b, c)

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
		case opSetX:
			set = setFloatX(a, b, in)
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
		case opFloatX:
			floatX(d, a, b, c, in)
		case opCvtF:
			convertFloat(d, a, in)
		case opCvtX:
			convertX(d, a, b, in)
		case opCvtPack:
			convertPack(d, a, b, c, in)
		case opTestp:
			set = testFloat(a, in.sub, in.fmt)

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

		case opFence:
			w.watch.sees()
			continue
		case opCopyAsync:
			if err := r.copyAsync(w, in, m); err != nil {
				return err
			}
			continue
		case opCopyCommit:
			w.commit(m)
			continue
		case opCopyWait:
			if err := r.copyWait(w, in, m); err != nil {
				return err
			}
			continue
		case opIsspacep:
			set = r.inSpace(a, in.space)

		case opShfl, opVote, opMatch, opRedux, opElect, opWarpSync:
			here, moved := r.gather(w, pc-1, membersOf(w, in, m))
			if moved {
				pc = w.pc
				continue
			}
			if here == 0 {
				return r.trap(w, in, m, ErrDivergentBarrier, "lanes of its mask are elsewhere")
			}
			if m = here; in.guard >= 0 {
				m &= preds[in.guard] ^ in.invert
			}
			switch in.op {
			case opShfl:
				shuffle(w, in, m)
			case opVote:
				vote(w, in, m)
			case opMatch:
				match(w, in, m)
			case opRedux:
				reduceWarp(w, in, m)
			case opElect:
				elect(w, in, m)
			}
			continue
		case opActive:
			d.fill(uint64(m))
		case opClock:
			w.watch.impure()
			d.fill(n >> in.sub & in.mask)
		case opTimer:
			w.watch.impure()
			w.watch.sees()
			d.fill(r.now >> in.sub & in.mask)
		case opSleep:
			w.pc, w.steps = pc, n
			r.sleep(w, a, m)
			return nil
		case opBar:
			here, moved := r.gather(w, pc-1, w.live)
			if moved {
				pc = w.pc
				continue
			}
			if here == 0 || in.guard >= 0 && here&(preds[in.guard]^in.invert) != w.live {
				return r.trap(w, in, m, ErrDivergentBarrier, "threads of the warp are elsewhere")
			}
			w.pc, w.steps = pc, n
			if err := r.arrive(w, in); err != nil || w.state == warpWaiting {
				return err
			}
			continue

		case opBra:
			if n >= w.due {
				w.pc = pc - 1
				if over, err := r.interrupt(w, in, n); over {
					return err
				}
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
				r.pop(w)
				pc = w.pc
			}
			continue
		case opCall, opCallPointer:
			to := r.call
			if in.op == opCallPointer {
				to = r.callPointer
			}
			next, err := to(w, in, m, pc)
			if err != nil {
				return err
			}
			pc = next
			continue
		case opRet:
			w.leave(m)
			if w.mask == 0 {
				if !r.pop(w) {
					r.exited(w, n)
					return nil
				}
				pc = w.pc
			}
			continue
		case opPrint:
			w.watch.impure()
			if err := r.print(w, in, m); err != nil {
				return err
			}
			continue
		case opAssert:
			return r.assert(w, in, m)
		case opExit:
			w.exit(m)
			if w.mask == 0 {
				if !r.pop(w) {
					r.exited(w, n)
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
