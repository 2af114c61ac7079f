package loadgate

import "github.com/kvgate/kvgate/loadgate/core"

// The types of the core, under the names that users of the gate need.
type (
	Mode         = core.Mode
	Holder       = core.Holder
	Access       = core.Access
	Counters     = core.Counters
	PoolCounters = core.PoolCounters
	BlockInfo    = core.BlockInfo
	Filling      = core.Filling
	Kind         = core.Kind
	Want         = core.Want
	FullError    = core.FullError
	Ledger       = core.Ledger
)

// The kinds of transfers.
const (
	KindLoad  = core.Load
	KindStore = core.Store
)

// What Zero writes.
const (
	Zeroing   = core.Zeroing
	Resetting = core.Resetting
)

// The modes that have a name. [PerBlock] is the default.
var (
	PerBlock            = core.PerBlock
	PerBlockSkipCovered = core.PerBlockSkipCovered // prints PerBlock+SkipCovered
	StepFIFO            = core.StepFIFO
	EventSync           = core.EventSync
	FullSync            = core.FullSync
	Ungated             = core.Ungated
	SkipCovered         = core.SkipCovered
)

// Modes returns the modes that have a name, in the order of the documentation.
func Modes() []Mode { return core.Modes() }

// ParseMode returns the mode of that name.
func ParseMode(name string) (Mode, error) { return core.ParseMode(name) }

// Why the gate refuses, for errors.Is. A refused call has changed nothing.
var (
	ErrInvalid     = core.ErrInvalid
	ErrStale       = core.ErrStale
	ErrNull        = core.ErrNull
	ErrQuarantined = core.ErrQuarantined
	ErrHeld        = core.ErrHeld
	ErrNotHeld     = core.ErrNotHeld
	ErrFreed       = core.ErrFreed
	ErrFull        = core.ErrFull
	ErrDiverged    = core.ErrDiverged
	ErrLoading     = core.ErrLoading
	ErrLost        = core.ErrLost
	ErrSending     = core.ErrSending
	ErrTransfer    = core.ErrTransfer
	ErrInUse       = core.ErrInUse
	ErrPoisoned    = core.ErrPoisoned
	ErrState       = core.ErrState
	ErrCanceled    = core.ErrCanceled
	ErrPeerLost    = core.ErrPeerLost
	ErrDead        = core.ErrDead
)
