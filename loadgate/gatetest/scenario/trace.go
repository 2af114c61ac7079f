package scenario

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/kvgate/kvgate/loadgate"
)

// say adds a line about what happened during a statement.
func (r *run) say(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.trace = append(r.trace, "  "+r.translate(fmt.Sprintf(format, args...)))
}

// corrupt enters a tenancy into the verdict.
func (r *run) corrupt(c *cell, what string) {
	r.say("WRONG: %s", what)
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.corrupted, c.name) {
		r.corrupted = append(r.corrupted, c.name)
	}
}

var (
	handles = regexp.MustCompile(`\b(transfer|plan|holder) \d+\.\d+\b`)
	points  = regexp.MustCompile(`fence t(\d+)@\d+ \(timeline is at \d+\)`)
	block   = regexp.MustCompile(`pool \d+ block (\d+) gen (\d+)`)
	tuple   = regexp.MustCompile(`\{(\d+) (\d+)\}`)
	address = regexp.MustCompile(`0x[0-9a-f]{6,}`)
	held    = regexp.MustCompile(`held for \d+ ns`)
)

// translate puts the script's names in the place of handles and numbers.
func (r *run) translate(s string) string {
	s = strings.ReplaceAll(s, "loadgate: ", "")
	s = handles.ReplaceAllStringFunc(s, func(h string) string {
		if n, ok := r.aliases[h]; ok {
			return n
		}
		return h
	})
	s = points.ReplaceAllStringFunc(s, func(p string) string {
		m := points.FindStringSubmatch(p)
		if n, ok := r.aliases["timeline "+m[1]]; ok {
			return "work on " + n
		}
		return p
	})
	named := func(re *regexp.Regexp) func(string) string {
		return func(b string) string {
			m := re.FindStringSubmatch(b)
			if n, ok := r.aliases["block "+m[1]+" gen "+m[2]]; ok {
				return n
			}
			return "block " + m[1] + " gen " + m[2]
		}
	}
	s = block.ReplaceAllStringFunc(s, named(block))
	s = tuple.ReplaceAllStringFunc(s, named(tuple))
	s = address.ReplaceAllString(s, "(address)")
	return held.ReplaceAllString(s, "held too long")
}

func (r *run) alias(what, name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.aliases[what] = name
}

// listener writes what the gate tells into the trace.
func (r *run) listener() loadgate.Listener {
	return loadgate.Listener{
		Launched: func(i loadgate.LaunchInfo) {
			var names []string
			for _, b := range i.Blocks {
				if c := r.current[b]; c != nil {
					c.asked = false
					names = append(names, c.name)
				} else {
					names = append(names, fmt.Sprintf("block %d", b))
				}
			}
			r.say("launched: %v %s on %v", i.Filling, strings.Join(names, " "), i.Where)
		},
		Held:   func(i loadgate.TransferInfo) { r.say("%s held: waits for %s", r.nameOf(i.Transfer), i.Why) },
		Posted: func(i loadgate.TransferInfo) { r.say("%s posted", r.nameOf(i.Transfer)) },
		Done: func(i loadgate.TransferInfo) {
			r.mu.Lock()
			r.ended = append(r.ended, i)
			r.mu.Unlock()
			if i.Err != nil {
				r.say("%s over: %v", r.nameOf(i.Transfer), i.Err)
			} else {
				r.say("%s done", r.nameOf(i.Transfer))
			}
		},
		Failed:  func(i loadgate.FailedInfo) { r.say("%v told: %s failed", i.Holder, r.nameOf(i.Transfer)) },
		Overdue: func(i loadgate.TransferInfo) { r.say("%s overdue: %v", r.nameOf(i.Transfer), i.Err) },
	}
}
