package core

import "fmt"

// Place says where zeroing runs.
type Place uint8

const (
	// InLine: on the compute stream, in program order with the steps.
	InLine Place = iota
	// GateStream: on one stream of the gate.
	GateStream
	// DryWet: on two streams of the gate, so that blocks whose earlier uses
	// have fired never queue behind blocks whose uses have not.
	DryWet
)

// Wait says what holds a transfer back, and who waits.
type Wait uint8

const (
	// AtOnce: nothing holds a load back.
	AtOnce Wait = iota
	// HostDevice: the host waits for the whole device before it launches the
	// step that has loads.
	HostDevice
	// HostBlocks: the host waits for the step's zeroing and the blocks' last uses.
	HostBlocks
	// StepOrder: the gate holds the loads of a step until the step's zeroing
	// has fired, steps in order, and looks again when the next step ends.
	StepOrder
	// OwnBlocks: the gate holds each load until its own blocks are ready.
	OwnBlocks
)

// Coverage says which new blocks are zeroed.
type Coverage uint8

const (
	// AllNew: all of them.
	AllNew Coverage = iota
	// SkipCovered: those that no load will overwrite wholly.
	SkipCovered
)

// Mode is how the gate orders zeroing against transfers: three independent
// choices. The zero Mode is [Ungated].
type Mode struct {
	Place    Place
	Wait     Wait
	Coverage Coverage
}

// The modes that have a name.
var (
	Ungated           = Mode{InLine, AtOnce, AllNew}
	FullSync          = Mode{InLine, HostDevice, AllNew}
	EventSync         = Mode{GateStream, HostBlocks, AllNew}
	StepFIFO          = Mode{GateStream, StepOrder, AllNew}
	SkipCoveredInLine = Mode{InLine, AtOnce, SkipCovered}
	PerBlock          = Mode{DryWet, OwnBlocks, AllNew}
	PerBlockSkip      = Mode{DryWet, OwnBlocks, SkipCovered}
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
	{"SkipCovered", SkipCoveredInLine},
	{"PerBlock+SkipCovered", PerBlockSkip},
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
	return Mode{}, fmt.Errorf("loadgate: unknown mode %q", name)
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
	if m.Place > DryWet || m.Wait > OwnBlocks || m.Coverage > SkipCovered {
		return fmt.Errorf("loadgate: %v is not a mode", m)
	}
	return nil
}
