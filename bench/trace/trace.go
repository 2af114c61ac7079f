// Package trace reads traces of requests to an LLM service, and makes such
// traces up: arrival times, lengths, and which prompts begin alike. There is no
// text in them.
//
// A [Trace] is immutable and safe for use by several goroutines; what changes
// one returns another.
package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Stretch is how many prompt tokens one of a request's HashIDs stands for.
const Stretch = 512

// What the readers take at most; beyond any service's, and near enough that
// sums don't overflow.
const (
	MaxTokens   = 1 << 30              // of a prompt or an answer
	MaxRequests = 1 << 22              // of a trace
	MaxSpan     = 366 * 24 * time.Hour // from the first arrival to the last
	maxLine     = 4 << 20              // bytes
)

// Request is one line of a trace.
type Request struct {
	Line    int           // in the file, from 1, or that it would have there
	Arrival time.Duration // from the start of the trace, never decreasing
	Input   int           // prompt tokens, at least 1
	Output  int           // generated tokens, at least 1
	// HashIDs has an id for each stretch of the prompt, the last of which may be
	// short. Prompts share a prefix as far as their ids are equal. nil: the
	// trace does not tell.
	HashIDs []uint64
}

// Trace is a list of requests in order of arrival, at least one.
type Trace struct {
	Name     string // of the file, for messages
	Requests []Request
	// Prefixes reports whether the requests have HashIDs.
	Prefixes bool
}

// ErrTrace is wrapped by every error about a trace's content.
var ErrTrace = errors.New("bad trace")

// Error says what is wrong with which field of which line.
type Error struct {
	File  string
	Line  int    // from 1, 0 for the file as such
	Field string // "" for the line as such
	Value string // as in the file, cut short; "" where there is none
	Err   error
}

func (e *Error) Error() string {
	s := "trace: " + e.File
	if e.Line > 0 {
		s += fmt.Sprintf(":%d", e.Line)
	}
	s += ": "
	if e.Field != "" {
		s += e.Field + ": "
	}
	if e.Value != "" {
		s += e.Value + ": "
	}
	return s + e.Err.Error()
}

// Unwrap gives [ErrTrace] and the cause.
func (e *Error) Unwrap() []error { return []error{ErrTrace, e.Err} }

func cutShort(s string) string {
	if len(s) > 60 {
		s = s[:60] + "..."
	}
	return strings.ToValidUTF8(s, "?")
}

// Load reads the trace at path: JSON lines if it ends in .jsonl, CSV if in .csv.
// Errors of content are *[Error] and wrap [ErrTrace].
func Load(path string) (*Trace, error) {
	var read func(string, io.Reader) (*Trace, error)
	switch ext := filepath.Ext(path); ext {
	case ".jsonl":
		read = ReadMooncake
	case ".csv":
		read = ReadAzure
	default:
		return nil, &Error{File: path, Err: fmt.Errorf("is a file of %q, want .jsonl or .csv", ext)}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("trace: %w", err)
	}
	defer f.Close()
	return read(path, f)
}

// Limited counts what [Trace.Limit] changed.
type Limited struct {
	Prompts int // shortened
	Outputs int // that end early, as an engine ends them at its longest sequence
}

// Limit fits a trace to a model whose sequences have at most longest tokens.
// Prompts of longest tokens or more leave no room for an answer: the first is
// an *[Error] that names line and limit or, with clip, they are all shortened
// so that their answer fits (to half of longest at least). Answers that would
// pass the limit end at it.
func (t *Trace) Limit(longest int, clip bool) (*Trace, Limited, error) {
	var n Limited
	if longest < 2 {
		return nil, n, fmt.Errorf("trace: sequences of at most %d tokens, want 2 or more", longest)
	}
	out := *t
	out.Requests = slices.Clone(t.Requests)
	for i := range out.Requests {
		r := &out.Requests[i]
		if r.Input >= longest {
			if !clip {
				return nil, Limited{}, &Error{File: t.Name, Line: r.Line, Field: t.inputField(), Value: fmt.Sprint(r.Input),
					Err: fmt.Errorf("the model's sequences have at most %d tokens, prompt and answer together", longest)}
			}
			n.Prompts++
			r.Input = max(longest-r.Output, (longest+1)/2)
			if r.Input == longest {
				r.Input--
			}
			if t.Prefixes {
				r.HashIDs = r.HashIDs[:stretches(r.Input)]
			}
		}
		if r.Output > longest-r.Input {
			n.Outputs++
			r.Output = longest - r.Input
		}
	}
	return &out, n, nil
}

// Rotate returns the trace from request k on, with the requests before it
// behind, arrivals moved accordingly. Ids and lines stay. k may be any number.
func (t *Trace) Rotate(k int) *Trace {
	n := len(t.Requests)
	k = ((k % n) + n) % n
	out := *t
	out.Requests = slices.Concat(t.Requests[k:], t.Requests[:k])
	last := t.Requests[n-1].Arrival
	step := time.Duration(0)
	if n > 1 {
		step = (last - t.Requests[0].Arrival) / time.Duration(n-1)
	}
	begin := t.Requests[k].Arrival
	for i := range out.Requests {
		r := &out.Requests[i]
		if i < n-k {
			r.Arrival -= begin
		} else {
			r.Arrival += last - begin + step - t.Requests[0].Arrival
		}
	}
	return &out
}

func (t *Trace) inputField() string {
	if t.Prefixes {
		return fieldInput
	}
	return azureColumns[1]
}

func stretches(tokens int) int { return (tokens + Stretch - 1) / Stretch }
