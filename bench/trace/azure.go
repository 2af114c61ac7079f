package trace

import (
	"io"
	"strings"
	"time"
)

// azureColumns are the columns of a file, in order.
var azureColumns = [...]string{"TIMESTAMP", "ContextTokens", "GeneratedTokens"}

const azureTime = "2006-01-02 15:04:05.9999999" // UTC, 100 ns

// ReadAzure reads a trace of Azure's LLM inference data set of 2023: CSV with a
// header and wall clock times, lines ending in CRLF or LF. It has no prefixes.
// Arrivals count from the first. The name is that of the file, for messages.
// The error is an *[Error] that names file, line and field, unless reading
// failed.
func ReadAzure(name string, in io.Reader) (*Trace, error) {
	r := newReader(name, in)
	if !r.next() {
		return r.end()
	}
	if err := r.azureHeader(); err != nil {
		return nil, err
	}
	var start time.Time
	for r.next() {
		if err := r.azure(&start); err != nil {
			return nil, err
		}
	}
	return r.end()
}

func (r *reader) columns() []string {
	// The scanner has taken the line's end, CR included.
	return strings.SplitN(r.scan.Text(), ",", len(azureColumns)+1)
}

func (r *reader) azureHeader() error {
	columns := r.columns()
	for i, c := range columns {
		if i >= len(azureColumns) {
			return r.fail(cutShort(c), "", "unknown column")
		}
		if c != azureColumns[i] {
			return r.fail(azureColumns[i], c, "want this column here")
		}
	}
	if n := len(columns); n < len(azureColumns) {
		return r.fail(azureColumns[n], "", "missing")
	}
	return nil
}

func (r *reader) azure(start *time.Time) error {
	columns := r.columns()
	if n := len(columns); n < len(azureColumns) {
		return r.fail(azureColumns[n], "", "missing")
	} else if n > len(azureColumns) {
		return r.fail("", r.scan.Text(), "more than %d columns", len(azureColumns))
	}
	at, err := time.Parse(azureTime, columns[0])
	if err != nil {
		return r.fail(azureColumns[0], columns[0], "want a time such as %s", azureTime)
	}
	input, err := r.number(azureColumns[1], columns[1], 1, MaxTokens)
	if err != nil {
		return err
	}
	output, err := r.number(azureColumns[2], columns[2], 1, MaxTokens)
	if err != nil {
		return err
	}
	if len(r.trace.Requests) == 0 {
		*start = at
	}
	// A span too long for a Duration saturates, and is refused as too long.
	return r.add(azureColumns[0], columns[0], Request{Arrival: at.Sub(*start), Input: int(input), Output: int(output)})
}
