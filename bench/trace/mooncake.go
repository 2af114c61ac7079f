package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"time"
)

// The fields of a line, all of which have to be there, and no other.
const (
	fieldTimestamp = "timestamp" // ms since the start of the trace
	fieldInput     = "input_length"
	fieldOutput    = "output_length"
	fieldHashes    = "hash_ids" // one for each stretch of the prompt
)

// ReadMooncake reads a trace of the Mooncake project (FAST'25): a JSON object
// on each line. The name is that of the file, for messages. The error is an
// *[Error] that names file, line and field, unless reading failed.
func ReadMooncake(name string, in io.Reader) (*Trace, error) {
	r := newReader(name, in)
	r.trace.Prefixes = true
	for r.next() {
		if err := r.mooncake(r.scan.Bytes()); err != nil {
			return nil, err
		}
	}
	return r.end()
}

func (r *reader) mooncake(line []byte) error {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(line, &fields); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return r.fail("", string(line), "want a JSON object: %w", err)
		}
		return r.fail("", string(line), "want a JSON object")
	}
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		switch key {
		case fieldTimestamp, fieldInput, fieldOutput, fieldHashes:
		default:
			return r.fail(cutShort(key), string(fields[key]), "unknown field")
		}
	}
	number := func(field string, least, most int64) (int64, error) {
		v, ok := fields[field]
		if !ok {
			return 0, r.fail(field, "", "missing")
		}
		return r.number(field, string(v), least, most)
	}
	ms, err := number(fieldTimestamp, 0, int64(MaxSpan/time.Millisecond))
	if err != nil {
		return err
	}
	input, err := number(fieldInput, 1, MaxTokens)
	if err != nil {
		return err
	}
	output, err := number(fieldOutput, 1, MaxTokens)
	if err != nil {
		return err
	}
	ids, err := r.hashes(fields[fieldHashes], stretches(int(input)))
	if err != nil {
		return err
	}
	return r.add(fieldTimestamp, string(fields[fieldTimestamp]), Request{
		Arrival: time.Duration(ms) * time.Millisecond, Input: int(input), Output: int(output), HashIDs: ids})
}

func (r *reader) hashes(raw json.RawMessage, want int) ([]uint64, error) {
	if raw == nil {
		return nil, r.fail(fieldHashes, "", "missing")
	}
	var numbers []json.RawMessage
	if err := json.Unmarshal(raw, &numbers); err != nil || numbers == nil {
		return nil, r.fail(fieldHashes, string(raw), "want a list of integers")
	}
	if len(numbers) != want {
		return nil, r.fail(fieldHashes, "", "%d ids, want %d: one for each %d tokens of %s", len(numbers), want, Stretch, fieldInput)
	}
	ids := make([]uint64, len(numbers))
	for i, n := range numbers {
		id, err := r.number(fmt.Sprintf("%s[%d]", fieldHashes, i), string(n), 0, math.MaxInt64)
		if err != nil {
			return nil, err
		}
		ids[i] = uint64(id)
	}
	return ids, nil
}

// WriteMooncake writes a trace in the form that [ReadMooncake] reads. Arrivals
// are cut to milliseconds. A trace without prefixes is an error.
func WriteMooncake(w io.Writer, t *Trace) error {
	if !t.Prefixes {
		return fmt.Errorf("trace: %s has no prefixes: %w", t.Name, ErrTrace)
	}
	b := bufio.NewWriter(w)
	for i := range t.Requests {
		q := &t.Requests[i]
		ids, err := json.Marshal(q.HashIDs)
		if err != nil {
			return fmt.Errorf("trace: %w", err)
		}
		ids = bytes.ReplaceAll(ids, []byte(","), []byte(", "))
		fmt.Fprintf(b, "{%q: %d, %q: %d, %q: %d, %q: %s}\n", fieldTimestamp, q.Arrival.Milliseconds(),
			fieldInput, q.Input, fieldOutput, q.Output, fieldHashes, ids)
	}
	return b.Flush()
}
