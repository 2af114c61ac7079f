package core

// stepQueue is the order of [StepOrder]: the loads of a step leave when the
// step's zeroing has fired, and never before those of an earlier step.
type stepQueue struct {
	entries []stepEntry // from first on
	first   int
	current stepEntry // the step under way
	count   int32     // of the step under way
	urgent  int       // held loads that somebody waits for
}

// stepEntry is one step: its loads, and what they have to wait for.
type stepEntry struct {
	loads  list
	fences set
}

func (c *Core) joinStep(i int32) {
	c.tickets[i].waiting, c.tickets[i].on = waitStep, c.steps.count
	c.push(&c.steps.current.loads, i)
}

// step returns the entry that a load waits in.
func (c *Core) step(n int32) *stepEntry {
	s := &c.steps
	if n == s.count {
		return &s.current
	}
	// The step under way is count; the newest closed one is count-1.
	return &s.entries[len(s.entries)-int(s.count-n)]
}

func (c *Core) leaveStep(i int32) { c.unlink(&c.step(c.tickets[i].on).loads, i) }

// EndStep says that the work and the loads of a step have been handed over. In
// [StepOrder] this is the moment when held loads are looked at; elsewhere it
// does nothing.
func (c *Core) EndStep() {
	if c.opts.Mode.Wait != StepOrder {
		return
	}
	c.closeStep()
	c.drainSteps()
}

func (c *Core) closeStep() {
	s := &c.steps
	for t := s.current.loads.head; t != 0; t = c.tickets[t-1].next {
		for n := c.tickets[t-1].first; n >= 0; n = c.pieces[n].nextInTicket {
			s.current.fences = c.union(s.current.fences, c.uses(c.pieces[n].block))
		}
	}
	if !s.current.loads.empty() {
		if s.first > 0 && s.first >= len(s.entries)/2 {
			n := copy(s.entries, s.entries[s.first:])
			clear(s.entries[n:])
			s.entries, s.first = s.entries[:n], 0
		}
		s.entries = append(s.entries, s.current)
		s.count++
	}
	s.current = stepEntry{}
}

// drainSteps lets the loads at the head go, step by step.
func (c *Core) drainSteps() {
	s := &c.steps
	for s.first < len(s.entries) {
		e := &s.entries[s.first]
		if !c.fired(e.fences) && !e.loads.empty() {
			return
		}
		loads := e.loads
		*e = stepEntry{}
		s.first++
		c.wakeAll(loads)
	}
	s.entries, s.first = s.entries[:0], 0
}

// Hurry says that somebody waits for a transfer. In [StepOrder] it then leaves,
// in its turn, as soon as the fences fire and not only when a step ends.
func (c *Core) Hurry(t Transfer) error {
	i, err := c.transfer("hurry", t)
	if err != nil {
		return err
	}
	tk := &c.tickets[i]
	for tk.waiting == waitTransfer { // whoever waits for it waits for that one
		i = tk.on
		tk = &c.tickets[i]
	}
	if tk.waiting != waitStep || tk.urgent {
		return nil
	}
	tk.urgent = true
	c.steps.urgent++
	if tk.on == c.steps.count {
		c.closeStep()
	}
	c.drainSteps()
	return nil
}

func (c *Core) unhurry(i int32) {
	if c.tickets[i].urgent {
		c.tickets[i].urgent = false
		c.steps.urgent--
	}
}
