package scenario

import (
	"context"
	"fmt"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/nixl"
)

var transferVerbs = []*verb{
	{name: "load", help: "bring bytes from a peer into blocks of a holder", run: (*run).load,
		args: []arg{{name: "transfer", kind: newTransfer}, {name: "holder", kind: aHolder}, {name: "blocks", kind: blockList}},
		opts: []arg{{name: "bytes", kind: byteRange}, {name: "from", words: peerNames}}},
	{name: "store", help: "send bytes of blocks of a holder to a peer", run: (*run).store,
		args: []arg{{name: "transfer", kind: newTransfer}, {name: "holder", kind: aHolder}, {name: "blocks", kind: blockList}},
		opts: []arg{{name: "bytes", kind: byteRange}, {name: "to", words: peerNames}}},
	{name: "cancel", help: "end a transfer for its caller", args: []arg{{name: "transfer", kind: aTransfer}}, run: (*run).cancel},
}

// transfer is a load or a store.
type transfer struct {
	name   string
	kind   string
	ticket loadgate.Transfer
	cells  []*cell
	bytes  kv.Range
	writer int16 // of a load
	whole  bool
	peer   *peer
	at     uint64    // offset of its bytes at the peer
	want   [][]int16 // of a store: what has to arrive, by block
	err    error     // of one that is over
	over   bool
	number int
}

func (r *run) load(st *statement) (string, error) {
	t, tr, h, err := r.prepare(st, "load", nixl.Read, st.opts["from"].word)
	if err != nil {
		return "", err
	}
	if t.writer, err = r.writer(t.name); err != nil {
		return "", err
	}
	p := t.peer.Host.Bytes()[t.at:t.peer.used]
	for i := range p {
		p[i] = byte(t.writer)
	}
	err = r.within(limit, func(ctx context.Context) error { return r.rig.Gate.WaitBlocks(ctx, 0, tenancies(t.cells)) })
	if err == nil {
		err = r.hand(t, func() (loadgate.Transfer, error) { return r.rig.Gate.Load(h.h, tr) })
	}
	if err != nil {
		_ = tr.Close()
		return "", refusal(err)
	}
	// What the load does not cover of a block that nobody zeroed is zeroed.
	for _, c := range t.cells {
		if !t.whole {
			r.cleaned(c)
		}
		c.set(t.bytes, anyByte)
	}
	return "", nil
}

func (r *run) store(st *statement) (string, error) {
	t, tr, h, err := r.prepare(st, "store", nixl.Write, st.opts["to"].word)
	if err != nil {
		return "", err
	}
	if err := r.hand(t, func() (loadgate.Transfer, error) { return r.rig.Gate.Store(h.h, tr) }); err != nil {
		_ = tr.Close()
		return "", refusal(err)
	}
	for _, c := range t.cells {
		r.cleaned(c)
		want := make([]int16, t.bytes.Len)
		copy(want, c.want[t.bytes.Off:])
		t.want = append(t.want, want)
	}
	return "", nil
}

// cleaned takes in that the gate zeroes a dirty block before a transfer. Whether
// it does is the gate's to say, since a block that another transfer may touch is
// left as it is; what the block holds then is not.
func (r *run) cleaned(c *cell) {
	if i, err := r.rig.Gate.Block(0, c.t.Block); err == nil && c.dirty && !i.Dirty {
		c.zeroed()
		c.asked = true
		r.underWay()
	}
}

// prepare makes the transport's part of a transfer.
func (r *run) prepare(st *statement, kind string, op nixl.Op, with string) (*transfer, nixl.Transfer, *holder, error) {
	h, err := r.holder(st.args[1].word)
	if err != nil {
		return nil, nil, nil, err
	}
	r.number++
	t := &transfer{name: st.args[0].word, kind: kind, bytes: whole, whole: true, number: r.number}
	if t.cells, err = r.cells(st.args[2].blocks); err != nil {
		return nil, nil, nil, err
	}
	if st.has("bytes") {
		t.bytes = st.opts["bytes"].bytes
		t.whole = t.bytes == whole
	}
	if t.bytes.End() > blockBytes {
		return nil, nil, nil, fmt.Errorf("a block has %d bytes", blockBytes)
	}
	if with == "" {
		with = peerNames[0]
	}
	t.peer = r.rig.peers[with]
	t.at = t.peer.used
	spec := nixl.Spec{Op: op, Peer: t.peer.ID, LocalMemory: nixl.VRAM, RemoteMemory: nixl.DRAM}
	for _, c := range t.cells {
		for _, d := range r.rig.Descriptors(c.t.Block, t.bytes) {
			spec.Local = append(spec.Local, d)
			spec.Remote = append(spec.Remote, nixl.Descriptor{Addr: t.peer.Host.Addr() + t.peer.used, Len: d.Len})
			if t.peer.used += d.Len; t.peer.used > peerBytes {
				return nil, nil, nil, fmt.Errorf("%s has no more memory", with)
			}
		}
	}
	tr, err := r.rig.Agent.NewTransfer(spec)
	if err != nil {
		return nil, nil, nil, refusal(err)
	}
	return t, tr, h, nil
}

// hand gives a transfer to the gate.
func (r *run) hand(t *transfer, call func() (loadgate.Transfer, error)) error {
	r.mu.Lock()
	r.making = t.name
	r.mu.Unlock()
	ticket, err := call()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.making = ""
	if err != nil {
		return err
	}
	t.ticket = ticket
	r.transfers[t.name] = t
	r.aliases[handles.FindString(ticket.String())] = t.name
	return nil
}

func (r *run) nameOf(ticket loadgate.Transfer) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	if t := r.transferOf(ticket); t != nil {
		return t.name
	}
	return r.making
}

// settle enters the ends of transfers into the ledger, in their order.
func (r *run) settle() {
	r.mu.Lock()
	ended := r.ended
	r.ended = nil
	failed := r.lostLaunch
	r.lostLaunch = false
	r.mu.Unlock()
	if failed { // the launches behind the one that failed are not there either
		for _, c := range r.current {
			if c != nil && c.asked {
				c.unzeroed(!r.spec.clean)
			}
		}
	}
	for _, end := range ended {
		t := r.transferOf(end.Transfer)
		if t == nil {
			continue // it was refused after all
		}
		t.over, t.err = true, end.Err
		if end.Err != nil {
			if t.kind == "load" {
				for _, c := range t.cells {
					c.set(t.bytes, lost)
					r.sentAfter(t.number, c, t.bytes, lost)
				}
			}
			continue
		}
		if t.kind == "store" {
			r.arrived(t)
			continue
		}
		for _, c := range t.cells {
			c.set(t.bytes, t.writer)
			r.sentAfter(t.number, c, t.bytes, t.writer)
			c.dirty = c.dirty && !t.whole
		}
	}
	r.underWay()
}

// underWay takes in that loads which are not over may be writing.
func (r *run) underWay() {
	for _, t := range r.transfers {
		if !t.over && t.kind == "load" {
			for _, c := range t.cells {
				c.set(t.bytes, anyByte)
			}
		}
	}
}

func (r *run) transferOf(ticket loadgate.Transfer) *transfer {
	for _, t := range r.transfers {
		if t.ticket == ticket {
			return t
		}
	}
	return nil
}

// sentAfter enters what a plan or a load brought into the stores that wait for
// it: those that were asked for later, and before it was over.
func (r *run) sentAfter(number int, c *cell, bytes kv.Range, writer int16) {
	for _, t := range r.transfers {
		if t.kind != "store" || t.over || t.number < number {
			continue
		}
		for i, sent := range t.cells {
			if sent != c {
				continue
			}
			for k := range t.want[i] {
				if at := t.bytes.Off + uint64(k); at >= bytes.Off && at < bytes.End() {
					t.want[i][k] = writer
				}
			}
		}
	}
}

// arrived compares what a store brought to the peer.
func (r *run) arrived(t *transfer) {
	at := t.at
	for i, c := range t.cells {
		have := t.peer.Host.Bytes()[at : at+t.bytes.Len]
		at += t.bytes.Len
		if differ(t.want[i], have, true) {
			r.corrupt(c, fmt.Sprintf("%s brought %s: %s instead of %s", t.name, c.name,
				r.writers.describeBytes(have), r.writers.describe(t.want[i])))
		}
	}
}

func (r *run) cancel(st *statement) (string, error) {
	t, ok := r.transfers[st.args[0].word]
	if !ok {
		return "", fmt.Errorf("%w: there is no %s", errSkipped, st.args[0].word)
	}
	withdrawn, err := t.ticket.Cancel()
	if err != nil {
		return "", refusal(err)
	}
	if withdrawn {
		return "withdrawn", nil
	}
	return "under way", nil
}
