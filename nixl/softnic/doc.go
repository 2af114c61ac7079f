// Package softnic is a fabric inside the process: agents of package nixl whose
// transfers move real bytes between memories on the time of a vtime.World.
//
// It exists to be as unhelpful as the real thing. Bytes arrive in chunks over
// the running time of a transfer, and the source of each chunk is read when
// the chunk leaves, not when the transfer is posted. Nothing orders a transfer
// against a stream of the device or against another transfer. A failure is no
// proof of silence: after a post that fails half way, and after a disconnect,
// chunks go on landing for a while with no handle left to ask. Notifications
// leave when the initiator polls. [Fabric.Inject] adds the faults of a bad day.
//
// Everything is decided by the world's seed and chooser, so that a run on
// virtual time can be replayed. Figures that come out of it are simulated.
package softnic
