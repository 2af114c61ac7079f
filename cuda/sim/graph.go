package sim

import (
	"fmt"
	"time"

	"github.com/kvgate/kvgate/cuda"
)

// graphExec is an executable graph. Its nodes run on lanes: streams of its own,
// each a chain of nodes, that wait for one another where the graph says so.
type graphExec struct {
	nodes int
	lanes []*stream
	base  []uint64 // commands that each lane was given before this launch
	steps []graphStep

	// The newest launch, which the next one waits for.
	on    *stream
	until uint64
	end   *moment // of the last launch
}

// graphStep is a command in a lane: a node, or a wait.
type graphStep struct {
	lane int
	node *node
	on   int    // a wait: for the lane
	nth  uint64 // to have done so many of the launch's commands
}

func (d *Device) newExec(nodes []*node) *graphExec {
	type place struct {
		lane int
		nth  uint64
	}
	x := &graphExec{nodes: len(nodes)}
	places := make([]place, len(nodes))
	var count []uint64 // commands of each lane
	var tail []int     // the last node of each lane
	step := func(s graphStep) {
		x.steps = append(x.steps, s)
		count[s.lane]++
	}
	for i, n := range nodes {
		lane := -1
		for _, dep := range n.deps {
			if l := places[dep].lane; tail[l] == dep && x.lanes[l].priority == n.priority {
				lane = l
				break
			}
		}
		if lane < 0 {
			lane = len(x.lanes)
			x.lanes = append(x.lanes, d.newStream("", n.priority))
			x.lanes[lane].lane = true
			count, tail = append(count, 0), append(tail, 0)
		}
		for _, dep := range n.deps {
			if p := places[dep]; p.lane != lane {
				step(graphStep{lane: lane, on: p.lane, nth: p.nth})
			}
		}
		step(graphStep{lane: lane, node: n})
		tail[lane] = i
		places[i] = place{lane, count[lane]}
	}
	x.base = make([]uint64, len(x.lanes))
	return x
}

// begin puts the nodes into the lanes. c is the launch, at the head of s.
func (x *graphExec) begin(s *stream, c *command) {
	for i, l := range x.lanes {
		l.name, l.ready = s.String(), s.ready
		x.base[i] = l.issued
	}
	for i := range x.steps {
		t := &x.steps[i]
		l := x.lanes[t.lane]
		if t.node == nil {
			w := l.enqueue(cuda.OpWaitEvent)
			w.on, w.until = x.lanes[t.on], x.base[t.on]+t.nth
			continue
		}
		n := l.enqueue(t.node.cmd.op)
		args := append(n.args, t.node.cmd.args...)
		*n = t.node.cmd
		n.args, n.seen, n.by = args, c.seen, c.by
		if n.op == cuda.OpLaunch {
			l.launches.Add(1)
		}
	}
	for _, l := range x.lanes {
		l.advance()
	}
}

// stepGraph brings a launch of a graph at the head of s on its way: behind the
// launch before it, then through all lanes.
func (s *stream) stepGraph() {
	c := &s.queue[s.head]
	x := c.exec
	for {
		if c.on != nil && c.on.completed.Load() < c.until {
			s.busy, s.waiting = false, true
			c.on.waiters = append(c.on.waiters, s)
			return
		}
		if !c.begun {
			c.begun, c.lane = true, 0
			x.begin(s, c)
		} else {
			c.lane++
		}
		if c.lane >= len(x.lanes) {
			s.busy = true
			s.complete()
			return
		}
		c.on = x.lanes[c.lane]
		c.until = c.on.issued
	}
}

// graphCost is what a launch of a graph costs the host.
func (d *Device) graphCost(h cuda.GraphExec) time.Duration {
	d.world.Enter(0)
	defer d.world.Exit()
	x := d.execs[h]
	if x == nil {
		return d.costs.Graph
	}
	return d.costs.Graph + time.Duration(x.nodes)*d.costs.GraphNode
}

func (d *Device) submitGraph(c *cuda.Command, s *stream) error {
	x := d.execs[cuda.GraphExec(c.A)]
	if x == nil {
		return badHandle(c.Op.String(), "graph", c.A)
	}
	if err := d.forbidManaged(c.Op.String(), s); err != nil {
		return err
	}
	if s.capture != nil {
		return refuse(cuda.ErrStreamCapturing, c.Op.String(), fmt.Sprintf("%s is captured", s), s.capture)
	}
	n := s.push(c.Op)
	n.a, n.exec = c.A, x
	n.on, n.until, n.sees = x.on, x.until, x.end
	x.on, x.until, x.end = s, s.issued, s.lastEnd
	s.advance()
	return nil
}

// GraphSize returns the number of nodes of a graph.
func (d *Device) GraphSize(h cuda.Graph) (int, error) {
	const op = "size of graph"
	if err := d.call(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	nodes, ok := d.graphs[h]
	if !ok {
		return 0, badHandle(op, "graph", uint64(h))
	}
	return len(nodes), nil
}

// Instantiate returns the graph in a form that can be launched.
func (d *Device) Instantiate(h cuda.Graph) (cuda.GraphExec, error) {
	const op = "instantiate graph"
	if err := d.call(op, d.costs.Module); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	nodes, ok := d.graphs[h]
	if !ok {
		return 0, badHandle(op, "graph", uint64(h))
	}
	x := cuda.GraphExec(d.handle(kindGraphExec))
	d.execs[x] = d.newExec(nodes)
	return x, nil
}

// DestroyGraph makes the handle invalid.
func (d *Device) DestroyGraph(h cuda.Graph) error {
	const op = "destroy graph"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	if _, ok := d.graphs[h]; !ok {
		return badHandle(op, "graph", uint64(h))
	}
	delete(d.graphs, h)
	return nil
}

// DestroyGraphExec makes the handle invalid. Launches that are in streams still
// run.
func (d *Device) DestroyGraphExec(h cuda.GraphExec) error {
	const op = "destroy executable graph"
	if err := d.call(op, d.costs.Handle); err != nil {
		return err
	}
	defer d.world.Exit()
	if d.execs[h] == nil {
		return badHandle(op, "executable graph", uint64(h))
	}
	delete(d.execs, h)
	return nil
}

func (x *graphExec) String() string { return fmt.Sprintf("graph of %d nodes", x.nodes) }
