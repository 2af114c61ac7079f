package scenario

import (
	"fmt"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/faultdev"
	"github.com/kvgate/kvgate/nixl/softnic"
)

var faultKinds = map[string]softnic.FaultKind{
	"fail-post":     softnic.FailPost,
	"fail-half-way": softnic.FailHalfWay,
	"fail-late":     softnic.FailLate,
	"hang":          softnic.Hang,
	"slow":          softnic.Slow,
	"disconnect":    softnic.Disconnect,
}

var faultVerbs = []*verb{
	{name: "fault", help: "what goes wrong with the next post, at= some part of its bytes; slow is by factor=",
		args: []arg{{name: "kind", words: []string{"fail-post", "fail-half-way", "fail-late", "hang", "slow", "disconnect"}}},
		opts: []arg{{name: "at", kind: number}, {name: "factor", kind: number}, {name: "peer", words: peerNames}}, run: (*run).fault},
	{name: "disconnect", help: "cut the connection of a peer", args: []arg{{name: "peer", words: peerNames}}, run: (*run).disconnect},
	{name: "fail", help: "the next command of that kind is refused by the driver; the device lives on",
		args: []arg{{name: "command", words: []string{"launch", "record"}}}, opts: []arg{{name: "after", kind: count}}, run: (*run).fail},
	{name: "kill", help: "a sticky error: the device is dead", run: (*run).kill},
}

type fault struct {
	softnic.Fault
	peer string
}

type failure struct {
	op    cuda.Op
	after int
}

func (r *run) fault(st *statement) (string, error) {
	f := fault{peer: st.opts["peer"].word}
	f.Kind = faultKinds[st.args[0].word]
	f.At, f.Factor = st.opts["at"].f, st.opts["factor"].f
	r.mu.Lock()
	defer r.mu.Unlock()
	r.faults = append(r.faults, f)
	return "", nil
}

// chooseFault is asked about each post, with the machine locked.
func (r *run) chooseFault(i softnic.TransferInfo) softnic.Fault {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, f := range r.faults {
		if i.Entries > 0 && (f.peer == "" || f.peer == i.Peer) {
			r.faults = append(r.faults[:k], r.faults[k+1:]...)
			return f.Fault
		}
	}
	return softnic.Fault{}
}

func (r *run) disconnect(st *statement) (string, error) {
	return "", r.rig.Fabric.Disconnect(st.args[0].word)
}

func (r *run) fail(st *statement) (string, error) {
	op := cuda.OpLaunch
	if st.args[0].word == "record" {
		op = cuda.OpRecord
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failOps = append(r.failOps, failure{op, st.opts["after"].n})
	return "", nil
}

// failCommand is asked before each call of the device.
func (r *run) failCommand(c faultdev.Call) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for k := range r.failOps {
		op := r.failOps[k].op
		if c.Op != op {
			continue
		}
		if r.failOps[k].after > 0 {
			r.failOps[k].after--
			return nil
		}
		r.failOps = append(r.failOps[:k], r.failOps[k+1:]...)
		r.lostLaunch = true
		return &cuda.Error{Code: cuda.ErrOutOfMemory, Op: fmt.Sprint(c.Op), Detail: "injected"}
	}
	return nil
}

func (r *run) kill(*statement) (string, error) {
	return "", refusal(r.rig.Sim.Kill(cuda.ErrECC, "injected"))
}
