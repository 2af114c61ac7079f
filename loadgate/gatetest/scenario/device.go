package scenario

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/stream"
)

var deviceVerbs = []*verb{
	{name: "gate", help: "the first statement: mode, blocks of the pool, hold limit; clean: blocks need no zeroing; marks: how many each stream counts as past",
		opts: []arg{{name: "mode"}, {name: "blocks", kind: count}, {name: "limit", kind: duration}, {name: "clean", kind: flag}, {name: "marks", kind: number}},
		run:  func(*run, *statement) (string, error) { return "", fmt.Errorf("gate is the first statement or none") }},
	{name: "busy", help: "work of others on a stream, of that duration, that touches nothing",
		args: []arg{{name: "duration", kind: duration}},
		opts: []arg{{name: "stream", words: []string{"compute", "other"}}}, run: (*run).busy},
	{name: "sleep", help: "the host does something else",
		args: []arg{{name: "duration", kind: duration}}, run: (*run).sleep},
	{name: "progress", help: "the gate may move", run: (*run).progress},
	{name: "flush", help: "launch what waits to be launched", run: (*run).flush},
	{name: "wait", help: "wait for a step's fence, a transfer or the whole device, and let the gate move",
		args: []arg{{name: "what", kind: aName}}, opts: []arg{{name: "limit", kind: duration}}, run: (*run).wait},
}

// specify reads the statement gate.
func (r *run) specify(st *statement) (err error) {
	if st.has("mode") {
		if r.spec.mode, err = core.ParseMode(st.opts["mode"].word); err != nil {
			return &ParseError{st.line, st.text, err.Error()}
		}
	}
	if st.has("blocks") {
		if r.spec.blocks = st.opts["blocks"].n; r.spec.blocks < 2 {
			return &ParseError{st.line, st.text, "a pool has two blocks at least"}
		}
	}
	r.spec.limit = st.opts["limit"].d
	r.spec.clean = st.has("clean")
	r.spec.first = kv.Seq(st.opts["marks"].f)
	return nil
}

func (r *run) stream(st *statement) *stream.Stream {
	if st.opts["stream"].word == "other" {
		return r.rig.other
	}
	return r.rig.Compute
}

func (r *run) busy(st *statement) (string, error) {
	b := stream.NewBatch(r.rig.Events)
	r.addBusy(b, r.stream(st), r.time(st.args[0].d))
	return "", refusal(b.Submit())
}

func (r *run) addBusy(b *stream.Batch, s *stream.Stream, d time.Duration) {
	binary.LittleEndian.PutUint64(b.Launch(s, r.rig.busy, one, 8), uint64(d))
}

func (r *run) sleep(st *statement) (string, error) {
	w := r.rig.Sim.World()
	return "", w.Sleep(context.Background(), time.Duration(float64(r.time(st.args[0].d))*w.Slow()))
}

func (r *run) progress(*statement) (string, error) {
	_, err := r.rig.Gate.Progress(0)
	return "", refusal(err)
}

func (r *run) flush(*statement) (string, error) { return "", refusal(r.rig.Gate.Flush()) }

func (r *run) wait(st *statement) (string, error) {
	name, d := st.args[0].word, limit
	if st.has("limit") {
		d = r.time(st.opts["limit"].d)
	}
	if name == "device" {
		return "", refusal(r.drain())
	}
	if t, ok := r.transfers[name]; ok {
		r.settle()
		if t.over { // and the gate may have forgotten it
			return "", refusal(t.err)
		}
		return "", refusal(r.within(d, func(ctx context.Context) error { return t.ticket.Wait(ctx) }))
	}
	p, ok := r.plans[name]
	if !ok || p.fence == zeroFence {
		return "", fmt.Errorf("%w: there is nothing to wait for", errSkipped)
	}
	return "", refusal(r.within(d, func(ctx context.Context) error { return r.rig.Gate.Wait(ctx, p.fence) }))
}

// nameTimelines gives the streams their names in the trace. The gate makes its
// two streams right after the rig's own, which the second one comes behind.
func (r *run) nameTimelines() {
	compute := r.rig.Compute.ID()
	for i, name := range []string{"compute", "the idle stream", "the busy stream", "other"} {
		r.alias(fmt.Sprintf("timeline %d", int(compute)+i), name)
	}
}
