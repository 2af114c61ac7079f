// Package outcome says what runs in the gate's modes have shown: that those which
// promise to keep blocks do, and that there was something to keep them from.
package outcome

import (
	"fmt"
	"strings"

	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
)

// Run is what became of one mode.
type Run struct {
	Mode      string
	Gated     bool
	Blocks    int // looked at
	Corrupted int // of them
}

// Judge says what is wrong with runs: a mode that promises to keep blocks and
// lost some, or a race that did not show where nothing prevents it.
func Judge(runs []Run) error {
	for _, r := range runs {
		if r.Gated && r.Corrupted > 0 {
			return fmt.Errorf("%s is gated, and %d of %d blocks were corrupted", r.Mode, r.Corrupted, r.Blocks)
		}
		if r.Mode == core.Ungated.String() && r.Corrupted == 0 {
			return fmt.Errorf("%s corrupted none of %d blocks: the race did not show", r.Mode, r.Blocks)
		}
	}
	return nil
}

// Unshown says so where nothing that was run could have shown the race: that
// gated modes lost no blocks proves little then. It is "" otherwise.
func Unshown(runs []Run) string {
	who := "only gated modes ran"
	for _, r := range runs {
		if r.Corrupted > 0 {
			return ""
		}
		if !r.Gated {
			who = r.Mode + " lost nothing and " + core.Ungated.String() + " did not run"
		}
	}
	return who + ": that the race occurs was not shown"
}

// ParseModes reads the value of a flag -mode: names of modes with commas between,
// each once, or nothing for all modes.
func ParseModes(list string) ([]loadgate.Mode, error) {
	if list == "" {
		return core.Modes(), nil
	}
	var modes []loadgate.Mode
	seen := map[loadgate.Mode]bool{}
	for name := range strings.SplitSeq(list, ",") {
		m, err := core.ParseMode(name)
		if err != nil {
			var names []string
			for _, m := range core.Modes() {
				names = append(names, m.String())
			}
			return nil, fmt.Errorf("-mode %q: want one of %s", name, strings.Join(names, ", "))
		}
		if seen[m] {
			return nil, fmt.Errorf("-mode %s: twice", name)
		}
		seen[m] = true
		modes = append(modes, m)
	}
	return modes, nil
}
