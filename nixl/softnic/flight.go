package softnic

import (
	"fmt"
	"slices"
	"time"

	"github.com/kvgate/kvgate/nixl"
)

// flight is one post on its way. It goes on when nobody can ask after it any
// more, so it knows nothing of the transfer's status.
type flight struct {
	f      *Fabric
	agent  *agent // the initiator
	remote *agent
	op     nixl.Op
	mem    nixl.MemoryType // of the remote side
	segs   []segment       // the transfer's
	id     uint64
	fault  Fault

	start   time.Duration // when entry 0 may leave
	handed  int           // entries
	bytes   uint64        // of those
	entry   int           // the next chunk: its entry and its offset in it
	off     uint64
	window  []place // chunks that may leave now
	onLink  bool
	sent    uint64
	landed  uint64
	pending int // events to come

	halted   bool // nothing leaves any more
	killed   bool // and nothing lands
	complete bool // every byte has landed and the initiator's hardware knows
	stopping bool // canceled
	stopped  bool // what had left has landed and the initiator's hardware knows
	err      error
	cut      bool // err is a disconnect
	settled  bool // nothing will happen any more

	timerFn, finishFn, haltFn, stopFn func()
}

// place is a chunk that has not left.
type place struct {
	entry int
	off   uint64
}

// chunk is bytes of one entry on their way.
type chunk struct {
	fl    *flight
	place place
	buf   []byte
	left  int // resources that it has still to pass

	passedFn, landFn func()
}

func newFlight(t *transfer, remote *agent) *flight {
	fl := &flight{
		f: t.a.f, agent: t.a, remote: remote,
		op: t.spec.Op, mem: t.spec.RemoteMemory, segs: t.segs, settled: true,
	}
	fl.timerFn = func() { fl.pending--; fl.pump(); fl.settle() }
	fl.finishFn = func() { fl.pending--; fl.finish(); fl.settle() }
	fl.haltFn = func() { fl.pending--; fl.halted = true; fl.settle() }
	fl.stopFn = func() { fl.pending--; fl.stopped = true; fl.agent.bump(); fl.settle() }
	return fl
}

// launch hands the first n entries over. The flight must be settled.
func (fl *flight) launch(id uint64, fault Fault, n int) {
	fl.id, fl.fault, fl.handed = id, fault, n
	fl.entry, fl.off, fl.window = 0, 0, fl.window[:0]
	fl.bytes, fl.sent, fl.landed = 0, 0, 0
	fl.halted, fl.complete, fl.cut, fl.err = false, false, false, nil
	fl.stopping, fl.stopped = false, false
	if n == 0 {
		return
	}
	for i := range fl.segs[:n] {
		fl.bytes += fl.segs[i].len
		fl.measure(&fl.segs[i])
	}
	fl.settled = false
	fl.f.flights = append(fl.f.flights, fl)
	fl.start = fl.f.world.Time()
	if fl.op == nixl.Read { // the request has to get there
		fl.start += fl.f.o.Latency
	}
	fl.pump()
	fl.settle()
}

// tear is the smallest piece that may land alone: a cache line.
const tear = 64

// measure decides how s is cut into chunks.
func (fl *flight) measure(s *segment) {
	s.scale = max(uint64(s.localMem.Scale(s.local)), 1)
	if m, err := fl.remoteMemory(s); err == nil {
		s.scale = max(s.scale, uint64(m.Scale(s.remote)))
	}
	least := uint64(fl.f.o.MinChunks)
	step := min(max(uint64(fl.f.o.Chunk)/s.scale, 1), (s.len-1)/least+1)
	s.step = (step + tear - 1) / tear * tear
}

// remoteMemory returns the memory on the other side of s, if it is registered
// there now.
func (fl *flight) remoteMemory(s *segment) (Memory, error) {
	if s.remoteMem != nil && s.remoteVersion == fl.remote.version {
		return s.remoteMem, nil
	}
	d := nixl.Descriptor{Addr: s.remote, Len: s.len, Device: s.device}
	e, ok := fl.remote.registry.Find(fl.mem, d)
	if !ok {
		return nil, fmt.Errorf("agent %s no longer has %s %s registered", fl.remote.name, fl.mem, d)
	}
	s.remoteMem, s.remoteVersion = e.Container().Cookie.(Memory), fl.remote.version
	return s.remoteMem, nil
}

// ends returns source and target of a place: agent, memory and address.
func (fl *flight) ends(p place) (from, to side, err error) {
	s := &fl.segs[p.entry]
	m, err := fl.remoteMemory(s)
	local := side{fl.agent, s.localMem, s.local + p.off}
	remote := side{fl.remote, m, s.remote + p.off}
	if fl.op == nixl.Read {
		return remote, local, err
	}
	return local, remote, err
}

type side struct {
	agent *agent
	mem   Memory
	addr  uint64
}

// pump lets the next chunk leave if the link is free for it.
func (fl *flight) pump() {
	if fl.onLink || fl.halted {
		return
	}
	if fl.fault.Kind == Hang && fl.fault.At < 1 && fl.sent >= fl.fault.part(fl.bytes) {
		return
	}
	p, ok := fl.next()
	if !ok {
		return
	}
	from, to, err := fl.ends(p)
	if err != nil {
		fl.abort(err)
		return
	}
	s := &fl.segs[p.entry]
	n := min(s.step, s.len-p.off)
	c := fl.f.newChunk(n)
	c.fl, c.place = fl, p
	carries(from.mem, fl.id)
	if err := from.mem.Read(from.addr, c.buf); err != nil {
		fl.f.free(c)
		fl.abort(err)
		return
	}
	fl.sent += n
	fl.onLink = true
	fl.pending++
	fl.f.o.Listener.Left(fl.info(c, from, to))

	cost, limit := float64(n)*float64(s.scale), fl.f.o.Bandwidth
	if fl.fault.Kind == Slow {
		limit /= fl.fault.factor()
	}
	memory := to.mem.Bandwidth()
	c.left = 2
	if memory != nil {
		c.left++
		memory.Start(cost, limit, "nic write", c.passedFn)
	}
	from.agent.out.Start(cost, limit, "nic out", c.passedFn)
	to.agent.in.Start(cost, limit, "nic in", c.passedFn)
}

// next takes the chunk that is to leave now. Where the next entry is still
// being posted it plans to be back.
func (fl *flight) next() (place, bool) {
	size := 1
	if fl.f.o.Reorder {
		size = reorderWindow
	}
	for len(fl.window) < size && fl.entry < fl.handed {
		at := fl.start + times(fl.entry, fl.f.o.PostPerDescriptor)
		if at > fl.f.world.Time() {
			if len(fl.window) == 0 {
				fl.pending++
				fl.f.world.At(at, "nic post", fl.timerFn)
			}
			break
		}
		fl.window = append(fl.window, place{fl.entry, fl.off})
		if fl.off += fl.segs[fl.entry].step; fl.off >= fl.segs[fl.entry].len {
			fl.entry, fl.off = fl.entry+1, 0
		}
	}
	if len(fl.window) == 0 {
		return place{}, false
	}
	k := fl.f.world.Choose("nic chunk", len(fl.window))
	p := fl.window[k]
	fl.window = slices.Delete(fl.window, k, k+1)
	return p, true
}

// passed is called once by each resource that the chunk has passed.
func (c *chunk) passed() {
	if c.left--; c.left > 0 {
		return
	}
	fl := c.fl
	late := fl.f.o.Latency
	if j := fl.f.o.Jitter; j > 0 {
		late += time.Duration(fl.f.world.Rand().Int64N(int64(j)))
	}
	fl.f.world.After(late, "nic land", c.landFn)
	fl.onLink = false
	fl.pump()
}

func (c *chunk) land() {
	fl := c.fl
	fl.pending--
	if !fl.killed {
		fl.write(c)
	}
	fl.f.free(c)
	if fl.landed == fl.bytes && fl.err == nil && !fl.killed {
		if fl.op == nixl.Write { // the acknowledgement comes back
			fl.pending++
			fl.f.world.After(fl.f.o.Latency, "nic ack", fl.finishFn)
		} else {
			fl.finish()
		}
	}
	fl.settle()
}

func (fl *flight) write(c *chunk) {
	from, to, err := fl.ends(c.place)
	if err == nil {
		carries(to.mem, fl.id)
		err = to.mem.Write(to.addr, c.buf)
	}
	if err != nil {
		fl.abort(err)
		return
	}
	fl.landed += uint64(len(c.buf))
	fl.f.o.Listener.Landed(fl.info(c, from, to))
	if fl.fault.Kind == Disconnect && !fl.cut && fl.landed >= fl.fault.part(fl.bytes) {
		a, b := fl.agent, fl.remote
		fl.f.breakConns(func(from, to *agent) bool { return from == a && to == b || from == b && to == a }, linger)
	}
}

// finish is the initiator's hardware learning that all has landed.
func (fl *flight) finish() {
	if fl.err != nil || fl.killed {
		return
	}
	switch fl.fault.Kind {
	case Hang:
		return
	case FailLate:
		fl.abort(errInjected)
		return
	}
	fl.complete = true
	fl.agent.bump()
}

var errInjected = fmt.Errorf("injected")

// abort ends the flight with a transport error. What is under way lands.
func (fl *flight) abort(cause error) {
	fl.halted = true
	if fl.err == nil && !fl.complete {
		fl.err = &nixl.Error{Op: "status", Peer: fl.remote.name, Detail: cause.Error(), Err: nixl.ErrBackend}
		fl.agent.bump()
	}
}

// disconnect breaks the connection under the flight.
func (fl *flight) disconnect(how cut) {
	if fl.err == nil && !fl.complete {
		fl.err = &nixl.Error{Op: "status", Peer: fl.remote.name, Err: nixl.ErrDisconnected}
		fl.cut = true
		fl.agent.bump()
	}
	switch {
	case how == silence:
		fl.halted, fl.killed = true, true
		fl.settle()
	case !fl.halted:
		fl.pending++
		rest := time.Duration(fl.f.world.Rand().Float64() * float64(fl.f.o.Linger))
		fl.f.world.After(rest, "nic quiet", fl.haltFn)
	}
}

// stop asks for the end of the flight. One that hangs does not hear it.
func (fl *flight) stop() {
	if fl.settled || fl.fault.Kind == Hang {
		return
	}
	fl.halted, fl.stopping = true, true
	fl.settle()
}

// settle takes the flight off the fabric's list when it is over.
func (fl *flight) settle() {
	if fl.settled || fl.pending > 0 || !(fl.complete || fl.halted) {
		return
	}
	if fl.stopping && !fl.stopped && !fl.complete && fl.err == nil {
		// The last chunk's acknowledgement.
		fl.pending++
		fl.f.world.After(fl.f.o.Latency, "nic stopped", fl.stopFn)
		return
	}
	fl.settled = true
	fl.f.flights = slices.DeleteFunc(fl.f.flights, func(x *flight) bool { return x == fl })
}

func (fl *flight) info(c *chunk, from, to side) ChunkInfo {
	return ChunkInfo{
		At: fl.f.world.Time(), Transfer: fl.id, Op: fl.op, Entry: c.place.entry,
		Source: from.agent.name, SourceAddr: from.addr,
		Target: to.agent.name, TargetAddr: to.addr, Len: uint64(len(c.buf)),
	}
}

func (fl *flight) String() string {
	state := "moving"
	switch {
	case fl.err != nil:
		state = fl.err.Error()
	case fl.fault.Kind == Hang:
		state = "hangs (injected)"
	}
	return fmt.Sprintf("transfer %d: %s %ss, peer %s: %d of %d bytes landed: %s",
		fl.id, fl.agent.name, fl.op, fl.remote.name, fl.landed, fl.bytes, state)
}

func (f *Fabric) newChunk(n uint64) *chunk {
	var c *chunk
	if k := len(f.spare); k > 0 {
		c, f.spare = f.spare[k-1], f.spare[:k-1]
	} else {
		c = &chunk{}
		c.passedFn, c.landFn = c.passed, c.land
	}
	c.buf = slices.Grow(c.buf[:0], int(n))[:n]
	return c
}

func (f *Fabric) free(c *chunk) {
	c.fl = nil
	f.spare = append(f.spare, c)
}
