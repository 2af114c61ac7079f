package core

import "fmt"

// Place says where zeroing runs.
type Place uint8

const (
	// IdleBusy: on two streams of the gate, so that idle blocks never queue
	// behind busy ones, whose earlier uses have not fired.
	IdleBusy Place = iota
	// GateStream: on one stream of the gate.
	GateStream
	// InLine: on the compute stream, in program order with the steps.
	InLine
)

// Wait says what holds a transfer back, and who waits.
type Wait uint8

const (
	// OwnBlocks: the gate holds each load until its own blocks are ready.
	OwnBlocks Wait = iota
	// StepOrder: the gate holds the loads of a step until the step's zeroing
	// has fired, steps in order, and looks again when the next step ends.
	StepOrder
	// HostBlocks: the host waits for the step's zeroing and the blocks' last uses.
	HostBlocks
	// HostDevice: the host waits for the whole device before it launches the
	// step that has loads.
	HostDevice
	// AtOnce: nothing holds a load back.
	AtOnce
)

// Coverage says which new blocks are zeroed.
type Coverage uint8

const (
	// ZeroAll: all of them.
	ZeroAll Coverage = iota
	// ZeroUncovered: those that no load will overwrite wholly.
	ZeroUncovered
)

// Mode is how the gate orders zeroing against transfers: three independent
// choices. The zero Mode is [PerBlock].
type Mode struct {
	Place    Place
	Wait     Wait
	Coverage Coverage
}

// The modes that have a name, which is what they print.
var (
	PerBlock            = Mode{IdleBusy, OwnBlocks, ZeroAll}
	PerBlockSkipCovered = Mode{IdleBusy, OwnBlocks, ZeroUncovered} // prints PerBlock+SkipCovered
	StepFIFO            = Mode{GateStream, StepOrder, ZeroAll}
	EventSync           = Mode{GateStream, HostBlocks, ZeroAll}
	FullSync            = Mode{InLine, HostDevice, ZeroAll}
	Ungated             = Mode{InLine, AtOnce, ZeroAll}
	SkipCovered         = Mode{InLine, AtOnce, ZeroUncovered}
)

var presets = []struct {
	name string
	mode Mode
}{
	{"Ungated", Ungated},
	{"FullSync", FullSync},
	{"EventSync", EventSync},
	{"StepFIFO", StepFIFO},
	{"PerBlock", PerBlock},
	{"SkipCovered", SkipCovered},
	{"PerBlock+SkipCovered", PerBlockSkipCovered},
}

// Modes returns the modes that have a name, in the order of the documentation.
func Modes() []Mode {
	m := make([]Mode, len(presets))
	for i, p := range presets {
		m[i] = p.mode
	}
	return m
}

// ParseMode returns the mode of that name.
func ParseMode(name string) (Mode, error) {
	for _, p := range presets {
		if p.name == name {
			return p.mode, nil
		}
	}
	return Mode{}, fmt.Errorf("loadgate: unknown mode %q: %w", name, ErrInvalid)
}

// String returns the mode's name, or its three values where it has none.
func (m Mode) String() string {
	for _, p := range presets {
		if p.mode == m {
			return p.name
		}
	}
	return fmt.Sprintf("mode(place %d, wait %d, coverage %d)", m.Place, m.Wait, m.Coverage)
}

// Gated reports whether the mode promises that no transfer and no device work
// corrupt each other.
func (m Mode) Gated() bool { return m.Wait != AtOnce }

func (m Mode) check() error {
	if m.Place > InLine || m.Wait > AtOnce || m.Coverage > ZeroUncovered {
		return fmt.Errorf("loadgate: %v is not a mode: %w", m, ErrInvalid)
	}
	return nil
}
