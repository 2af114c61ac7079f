package scenario

import (
	"fmt"
	"reflect"
	"strings"
)

var checkVerbs = []*verb{
	{name: "check", help: "wait for the device, say what blocks hold, and compare it with the ledger",
		args: []arg{{name: "blocks", kind: blockList}}, run: (*run).check},
	{name: "state", help: "what the gate knows of blocks", args: []arg{{name: "blocks", kind: blockList}}, run: (*run).state},
	{name: "counters", help: "what the gate has counted; zeros are left out", run: (*run).counters},
	{name: "pool", help: "the pool's blocks by state", run: (*run).poolState},
}

func (r *run) check(st *statement) (string, error) {
	cells, err := r.cells(st.args[0].blocks)
	if err != nil {
		return "", err
	}
	if err := r.drain(); err != nil {
		return "", refusal(err)
	}
	r.settle()
	var said []string
	for _, c := range cells {
		found, err := r.compare(c, "now")
		if err != nil {
			return "", refusal(err)
		}
		said = append(said, c.name+" "+found)
	}
	return strings.Join(said, ", "), nil
}

func (r *run) state(st *statement) (string, error) {
	cells, err := r.cells(st.args[0].blocks)
	if err != nil {
		return "", err
	}
	var said []string
	for _, c := range cells {
		i, err := r.rig.Gate.Block(0, c.t.Block)
		if err != nil {
			return "", refusal(err)
		}
		s := fmt.Sprintf("%s %v", c.name, i.State)
		for _, f := range []struct {
			name string
			is   bool
		}{{"busy", i.Busy}, {"dirty", i.Dirty}, {"lost", i.Lost}, {"poisoned", i.Poisoned}} {
			if f.is {
				s += " " + f.name
			}
		}
		if i.Generation != c.t.Generation {
			s += " of another tenancy"
		}
		said = append(said, s)
	}
	return strings.Join(said, ", "), nil
}

func (r *run) counters(*statement) (string, error) {
	v := reflect.ValueOf(r.rig.Gate.Counters())
	var said []string
	for i := range v.NumField() {
		if f := v.Field(i); !f.IsZero() {
			said = append(said, fmt.Sprintf("%s=%v", v.Type().Field(i).Name, f))
		}
	}
	if len(said) == 0 {
		return "all zero", nil
	}
	return strings.Join(said, " "), nil
}

func (r *run) poolState(*statement) (string, error) {
	c := r.rig.Pool.Counters()
	said := fmt.Sprintf("%d free, %d used, %d quarantined", c.Free, c.Used, c.Quarantined)
	if ts := r.rig.Gate.Poisoned(0, nil); len(ts) > 0 {
		said += fmt.Sprintf(", poisoned: %v", ts)
	}
	return said, nil
}
