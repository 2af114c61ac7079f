package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"
)

// reader goes through a file line by line and collects requests.
type reader struct {
	scan  *bufio.Scanner
	trace Trace
	line  int
}

func newReader(name string, r io.Reader) *reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, 64<<10), maxLine)
	return &reader{scan: s, trace: Trace{Name: name}}
}

func (r *reader) next() bool {
	if !r.scan.Scan() {
		return false
	}
	r.line++
	return true
}

func (r *reader) fail(field, value string, format string, args ...any) error {
	return &Error{File: r.trace.Name, Line: r.line, Field: field, Value: cutShort(value), Err: fmt.Errorf(format, args...)}
}

// number reads a decimal integer of least to most.
func (r *reader) number(field, value string, least, most int64) (int64, error) {
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return 0, r.fail(field, value, "want an integer")
	}
	if err != nil || n < least || n > most {
		return 0, r.fail(field, value, "want %d to %d", least, most)
	}
	return n, nil
}

func (r *reader) add(field, value string, q Request) error {
	if n := len(r.trace.Requests); n > 0 && q.Arrival < r.trace.Requests[n-1].Arrival {
		return r.fail(field, value, "earlier than the line before")
	} else if n == MaxRequests {
		return r.fail("", "", "more than %d requests", MaxRequests)
	}
	if q.Arrival > MaxSpan {
		return r.fail(field, value, "%v after the start, want at most %v", q.Arrival.Round(time.Second), MaxSpan)
	}
	q.Line = r.line
	r.trace.Requests = append(r.trace.Requests, q)
	return nil
}

// end returns the trace after the last line.
func (r *reader) end() (*Trace, error) {
	switch err := r.scan.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		r.line++
		return nil, r.fail("", "", "a line of more than %d bytes", maxLine)
	case err != nil:
		return nil, fmt.Errorf("trace: %s: %w", r.trace.Name, err)
	}
	if len(r.trace.Requests) == 0 {
		r.line = 0
		return nil, r.fail("", "", "no requests")
	}
	return &r.trace, nil
}
