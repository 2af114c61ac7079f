package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kvgate/kvgate/memory/kv"
)

// Content of a byte: the number of its writer.
const (
	zeroed  = 0
	garbage = 0xff // what fresh memory of the simulator holds
	anyByte = -1   // in a ledger: nobody promised anything
	lost    = -2   // in a ledger: a load did not bring it, and no step may read it
)

// cell is what the ledger knows of one tenancy.
type cell struct {
	name  string
	t     kv.Tenancy
	want  []int16
	dirty bool // to be zeroed before it is used
	// asked: its zeroing was asked for and is not launched yet.
	asked bool
}

// zeroed says that the block is zeroed from here on.
func (c *cell) zeroed() {
	c.set(whole, zeroed)
	c.dirty = false
}

// unzeroed says that the launch of its zeroing failed.
func (c *cell) unzeroed(dirty bool) {
	c.set(whole, anyByte)
	c.dirty, c.asked = dirty, false
}

func newCell(name string, t kv.Tenancy, dirty bool) *cell {
	c := &cell{name: name, t: t, want: make([]int16, blockBytes), dirty: dirty}
	c.set(whole, anyByte)
	return c
}

var whole = kv.Range{Len: blockBytes}

func (c *cell) set(bytes kv.Range, writer int16) {
	w := c.want[bytes.Off:min(bytes.End(), blockBytes)]
	for i := range w {
		w[i] = writer
	}
}

// differ compares content with what was promised. used: somebody relies on it.
func differ(want []int16, have []byte, used bool) bool {
	for i, w := range want {
		if w != anyByte && w != int16(have[i]) && (w != lost || used) {
			return true
		}
	}
	return false
}

// writers names the writers of content, in the order of the bytes.
type writers []string

func (ws writers) name(w int16) string {
	switch {
	case w == zeroed:
		return "zero"
	case w == garbage:
		return "garbage"
	case w == anyByte:
		return "anything"
	case w == lost:
		return "(lost)"
	case int(w) <= len(ws):
		return ws[w-1]
	}
	return fmt.Sprintf("%#x", w)
}

func (ws writers) describe(content []int16) string {
	var names []string
	for i, w := range content {
		if i > 0 && w == content[i-1] {
			continue
		}
		if n := ws.name(w); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return strings.Join(names, "+")
}

func (ws writers) describeBytes(content []byte) string {
	wide := make([]int16, len(content))
	for i, b := range content {
		wide[i] = int16(b)
	}
	return ws.describe(wide)
}
