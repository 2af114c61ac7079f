package main

import (
	"bytes"
	"encoding/json"
	"io"
)

// object writes a JSON object whose fields stay in order.
type object struct {
	bytes.Buffer
	err error
}

func (o *object) add(name string, v any) {
	if o.Len() == 0 {
		o.WriteByte('{')
	} else {
		o.WriteByte(',')
	}
	key, err := json.Marshal(name)
	if err == nil {
		o.Write(key)
		o.WriteByte(':')
		var b []byte
		b, err = json.Marshal(v)
		o.Write(b)
	}
	if o.err == nil {
		o.err = err
	}
}

// MarshalJSON implements json.Marshaler.
func (o *object) MarshalJSON() ([]byte, error) { return append(bytes.Clone(o.Bytes()), '}'), o.err }

func (s *summary) writeJSON(w io.Writer) error {
	var out object
	out.add("model", s.job.model.Name)
	out.add("trace", s.job.trace.Name)
	out.add("clock", "virtual")
	out.add("seed", s.job.seed)
	out.add("params", s.params())
	out.add("needs_zeroing", s.job.plan.NeedsZeroing)
	var modes []*object
	for i := range s.modes {
		m := &s.modes[i]
		o := &object{}
		o.add("mode", m.mode)
		ci := &object{}
		for k := range metrics {
			o.add(metrics[k].name, m.values[k].mean)
			ci.add(metrics[k].name, m.values[k].ci)
		}
		if s.seeds > 1 {
			o.add("ci95", ci)
		}
		modes = append(modes, o)
	}
	out.add("modes", modes)
	b, err := out.MarshalJSON()
	if err != nil {
		return err
	}
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, b, "", "  "); err != nil {
		return err
	}
	pretty.WriteByte('\n')
	_, err = pretty.WriteTo(w)
	return err
}

// params echoes what the run was made with, defaults included.
func (s *summary) params() *object {
	j := s.job
	o := &object{}
	for _, p := range []struct {
		name string
		v    any
	}{
		{"simulated", true},
		{"weights", j.weights}, {"pool", j.pool}, {"hbm", j.hbm}, {"nic", j.nic}, {"nic_us", j.nicUS}, {"host_us", j.hostUS},
		{"block_tokens", j.plan.BlockTokens}, {"tp", j.tp}, {"kv_dtype", j.plan.Options.KVDType.String()},
		{"requests", len(j.seeded(0).Trace.Requests)}, {"clip", j.clip}, {"clipped", j.limited.Prompts}, {"shortened", j.limited.Outputs},
		{"rate", j.rate}, {"concurrency", s.outstanding}, {"late", j.late}, {"defer", j.deferral}, {"zero", j.zero},
		{"check", j.check}, {"content", j.content}, {"seeds", s.seeds}, {"pool_blocks", s.blocks}, {"block_bytes", j.plan.BlockBytes},
	} {
		o.add(p.name, p.v)
	}
	return o
}
