// Package core is the gate's logic as a pure state machine: who holds which
// block, what a step, a zeroing and a transfer have to wait for, and when a
// block may be given to a new owner. It has no clock, lock, goroutine or
// device. Package loadgate drives it.
//
// # Inputs and outputs
//
// Inputs are methods; each checks all its arguments first and either changes
// everything or nothing. Outputs are [Action]s, fetched with [Core.Actions]:
// launch this, post that, tell someone. The caller carries them out in order
// and tells the results ([Core.Launched], [Core.Posted], [Core.Finished], ...).
// Time comes in with [Core.Tick], progress of the device with [Core.Fired].
//
// # Cost
//
// What a step does is kept at its holders, not at their blocks: planning and
// submitting cost O(holders), whatever they hold. Blocks are touched when they
// change hands. A held transfer waits in the list of the one thing that is in
// its way, so that thousands of them cost a step nothing, and any of them is
// withdrawn in constant time. Fences of one stream collapse to the newest, and
// sets of fences are shared ([set]).
package core
