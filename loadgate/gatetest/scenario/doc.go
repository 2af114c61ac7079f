// Package scenario runs the gate through stories: a script is a list of host
// statements, one a line, that is parsed once and run on a simulated device and
// fabric in any mode, under any seed or chooser. What a run gives back is a
// trace and a verdict: which blocks did not hold what the program order of the
// script says.
//
// The verdict does not come from the gate. A ledger beside it follows the
// statements and the ends of transfers, and knows of every byte who was to
// write it last; steps are kernels that compare each block they read with it
// while they run, arrived stores are compared at the peer, and what is left is
// compared at the end.
//
// # Language
//
// A line is a verb, its arguments, and options as key=value; # begins a
// comment. Names are introduced by the statement that makes the thing. X.1 is
// the second block of X, (X Y.0) a list, none an empty one. bytes=0..512 are
// bytes of each block named, behind which the next writer may go on.
// The tables of verbs beside this file say what each takes.
package scenario
