package ptx

// Control flow: ops are cut into blocks, each branch gets the place where its
// lanes meet again, and a join op is put there.
//
// That place is the branch block's immediate post-dominator, computed as
// Cooper, Harvey and Kennedy do ("A Simple, Fast Dominance Algorithm") on the
// reversed graph. Ways out of the kernel other than its end in program order
// are left out of the graph where there is such an end: lanes that leave early
// never come to a meeting place, and should not keep the others from theirs.
// Any choice is correct as long as each lane reaches the place or exits.

type blockRange struct {
	from, to int // ops [from, to)
	succ     []int
	exits    bool // the exit is one of its successors
}

// leaders marks the ops that start a block. A guarded exit ends none: the
// lanes that it does not take go on.
func leaders(code []inst) []bool {
	lead := make([]bool, len(code)+1)
	lead[0] = true
	for i, n := range code {
		switch {
		case n.op == opBra:
			lead[n.target] = true
			lead[i+1] = true
		case n.op.ends() && n.guard < 0:
			lead[i+1] = true
		}
	}
	return lead
}

func cutBlocks(code []inst) ([]blockRange, []int) {
	lead := leaders(code)
	of := make([]int, len(code)) // block of each op
	var blocks []blockRange
	for i := range code {
		if lead[i] {
			blocks = append(blocks, blockRange{from: i})
		}
		of[i] = len(blocks) - 1
		blocks[len(blocks)-1].to = i + 1
	}
	for b := range blocks {
		last := code[blocks[b].to-1]
		falls := true
		switch {
		case last.op == opBra:
			blocks[b].succ = append(blocks[b].succ, of[last.target])
			falls = last.guard >= 0
		case last.op.ends() && last.guard < 0:
			blocks[b].exits = true
			falls = false
		}
		if falls && b+1 < len(blocks) {
			blocks[b].succ = append(blocks[b].succ, b+1)
		}
	}
	return blocks, of
}

// prune takes early ways out of the graph and reports whether an end is left.
// The end is the last block that exits; when it does nothing else, only the
// block before it falls through into it, and jumps to it are early ways out.
func prune(blocks []blockRange, code []inst) ([]blockRange, bool) {
	entered := make([]bool, len(blocks))
	entered[0] = true
	for b := range blocks {
		for _, s := range blocks[b].succ {
			entered[s] = true
		}
	}
	end := len(blocks) - 1
	for end >= 0 && (!blocks[end].exits || !entered[end]) {
		end--
	}
	if end < 0 {
		return blocks, false
	}
	alone := func(b int) bool { return blocks[b].exits && blocks[b].to-blocks[b].from == 1 }
	out := make([]blockRange, len(blocks))
	left := end == 0
	for b, bl := range blocks {
		n := blockRange{from: bl.from, to: bl.to, exits: b == end}
		last := code[bl.to-1]
		falls := b == end-1 && (last.op != opBra || last.guard >= 0)
		for _, s := range bl.succ {
			if alone(s) && (s != end || !falls) {
				continue
			}
			left = left || s == end
			n.succ = append(n.succ, s)
		}
		out[b] = n
	}
	return out, left
}

// postDominators returns for each block its immediate post-dominator, or -1
// where it is the exit or where no way leads to the exit.
func postDominators(blocks []blockRange) []int {
	n := len(blocks) // the virtual exit
	pred := make([][]int, n+1)
	for b := range blocks {
		for _, s := range blocks[b].succ {
			pred[s] = append(pred[s], b)
		}
		if blocks[b].exits {
			pred[n] = append(pred[n], b)
		}
	}
	// Post-order of the reversed graph from the exit, without recursion.
	order := make([]int, n+1)
	for i := range order {
		order[i] = -1
	}
	var post []int
	type frame struct{ b, i int }
	seen := make([]bool, n+1)
	stack := []frame{{n, 0}}
	seen[n] = true
	for len(stack) > 0 {
		f := &stack[len(stack)-1]
		if f.i < len(pred[f.b]) {
			s := pred[f.b][f.i]
			f.i++
			if !seen[s] {
				seen[s] = true
				stack = append(stack, frame{s, 0})
			}
			continue
		}
		order[f.b] = len(post)
		post = append(post, f.b)
		stack = stack[:len(stack)-1]
	}
	idom := make([]int, n+1)
	for i := range idom {
		idom[i] = -1
	}
	idom[n] = n
	for changed := true; changed; {
		changed = false
		for i := len(post) - 2; i >= 0; i-- {
			b := post[i]
			best := -1
			meet := func(s int) {
				if idom[s] < 0 {
					return
				}
				if best < 0 {
					best = s
					return
				}
				x, y := s, best
				for x != y {
					for order[x] < order[y] {
						x = idom[x]
					}
					for order[y] < order[x] {
						y = idom[y]
					}
				}
				best = x
			}
			for _, s := range blocks[b].succ {
				meet(s)
			}
			if blocks[b].exits {
				meet(n)
			}
			if idom[b] != best {
				idom[b], changed = best, true
			}
		}
	}
	for b := range blocks {
		if idom[b] == n {
			idom[b] = -1
		}
	}
	return idom[:n]
}

// withJoins returns the code with a join op in front of each block where a
// branch's lanes meet, without nops, and with targets and joins set to match.
func withJoins(code []inst) []inst {
	blocks, of := cutBlocks(code)
	idom := postDominators(blocks)
	if graph, ok := prune(blocks, code); ok {
		// Blocks that only leave early keep their place in the whole graph.
		for b, to := range postDominators(graph) {
			if to >= 0 {
				idom[b] = to
			}
		}
	}
	meets := make([]bool, len(blocks))
	for i := range code {
		n := &code[i]
		if n.op == opBra && n.guard >= 0 {
			if n.join = int32(idom[of[i]]); n.join >= 0 {
				meets[n.join] = true
			}
		}
	}
	out := make([]inst, 0, len(code)+len(blocks))
	start := make([]int32, len(blocks))
	for b, bl := range blocks {
		start[b] = int32(len(out))
		if meets[b] {
			out = append(out, inst{op: opJoin, guard: -1, p: -1, q: -1, join: -1, line: code[bl.from].line, srcInst: code[bl.from].srcInst})
		}
		for _, n := range code[bl.from:bl.to] {
			if n.op != opNop {
				out = append(out, n)
			}
		}
	}
	for i := range out {
		n := &out[i]
		if n.op == opBra {
			n.target = start[of[n.target]]
			if n.join >= 0 {
				n.join = start[n.join]
			}
		}
	}
	return out
}
