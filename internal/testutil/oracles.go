package testutil

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
)

// Reduce writes a file of oracles in a form that takes less room: without its
// note, a case a line, and with long lists of numbers, or of rows of numbers,
// as objects {"runs": [[first, step, times], [first], ...]}. Of rows first and
// step are rows.
func Reduce(data []byte) ([]byte, error) {
	var file map[string]json.RawMessage
	if err := json.Unmarshal(data, &file); err != nil {
		return nil, err
	}
	delete(file, "note")
	for key, v := range file {
		var cases []json.RawMessage
		if err := json.Unmarshal(v, &cases); err != nil {
			return nil, fmt.Errorf("%s: %w", key, err)
		}
		out := bytes.NewBufferString("[")
		for i, c := range cases {
			v, err := decode(c)
			if err != nil {
				return nil, err
			}
			line, err := json.Marshal(walk(v, reduced))
			if err != nil {
				return nil, err
			}
			if i > 0 {
				out.WriteByte(',')
			}
			fmt.Fprintf(out, "\n%s", line)
		}
		out.WriteString("\n]")
		return fmt.Appendf(nil, "{%q: %s}\n", key, out.Bytes()), nil
	}
	return nil, fmt.Errorf("no cases")
}

// Expand makes what [Reduce] wrote a file of plain lists again. Other files it
// leaves as they are.
func Expand(data []byte) ([]byte, error) {
	v, err := decode(data)
	if err != nil {
		return nil, err
	}
	return json.Marshal(walk(v, expanded))
}

func decode(data []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// walk replaces values from the leaves on.
func walk(v any, f func(any) any) any {
	switch v := v.(type) {
	case map[string]any:
		for k := range v {
			v[k] = walk(v[k], f)
		}
	case []any:
		for i := range v {
			v[i] = walk(v[i], f)
		}
	}
	return f(v)
}

// shortList is the length up to which a list is kept as it is.
const shortList = 6

func reduced(v any) any {
	list, ok := v.([]any)
	if !ok || len(list) <= shortList {
		return v
	}
	rows := make([][]int64, len(list))
	for i := range list {
		if rows[i] = row(list[i]); rows[i] == nil || len(rows[i]) != len(rows[0]) {
			return v
		}
	}
	single := rows[0] != nil && !isList(list[0])
	pack := func(r []int64) any {
		if single {
			return r[0]
		}
		return r
	}
	var runs []any
	for i := 0; i < len(rows); {
		step, n := make([]int64, len(rows[i])), 1
		if i+1 < len(rows) {
			for k := range step {
				step[k] = rows[i+1][k] - rows[i][k]
			}
			for i+n < len(rows) && slices.Equal(rows[i+n], along(rows[i], step, int64(n))) {
				n++
			}
		}
		if n == 1 {
			runs = append(runs, []any{pack(rows[i])})
		} else {
			runs = append(runs, []any{pack(rows[i]), pack(step), n})
		}
		i += n
	}
	return map[string]any{"runs": runs}
}

func isList(v any) bool { _, ok := v.([]any); return ok }

// row returns a number, or a list of numbers, nil for anything else.
func row(v any) []int64 {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	out := make([]int64, 0, len(list))
	for _, e := range list {
		n, ok := e.(json.Number)
		i, err := strconv.ParseInt(n.String(), 10, 64)
		if !ok || err != nil {
			return nil
		}
		out = append(out, i)
	}
	return out
}

func along(first, step []int64, n int64) []int64 {
	out := slices.Clone(first)
	for i := range out {
		out[i] += n * step[i]
	}
	return out
}

func expanded(v any) any {
	m, ok := v.(map[string]any)
	if !ok || len(m) != 1 {
		return v
	}
	runs, ok := m["runs"].([]any)
	if !ok {
		return v
	}
	var out []any
	for _, r := range runs {
		run, ok := r.([]any)
		if !ok || len(run) != 1 && len(run) != 3 {
			return v
		}
		first := row(run[0])
		step, times := make([]int64, len(first)), []int64{1}
		if len(run) == 3 {
			step, times = row(run[1]), row(run[2])
		}
		if first == nil || len(step) != len(first) || len(times) != 1 {
			return v
		}
		for n := range times[0] {
			if at := along(first, step, n); isList(run[0]) {
				out = append(out, at)
			} else {
				out = append(out, at[0])
			}
		}
	}
	return out
}
