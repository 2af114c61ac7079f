package nixl

// Agent is one end of the fabric. Methods are safe for use by several
// goroutines; those of one [Transfer] are not, but for Cancel.
type Agent interface {
	// Name returns the name that peers know the agent by. It does not change.
	Name() string

	// Register makes memory reachable for transfers: by this agent as local,
	// by its peers as remote once they have its metadata. Regions that are
	// registered already, or inside one that is, are counted, not registered
	// twice. Any other overlap is refused with [ErrOverlap].
	Register(m MemoryType, regions []Descriptor) (Registration, error)

	// Metadata returns the blob that a peer passes to AddPeer. It covers what
	// is registered at this moment.
	Metadata() ([]byte, error)
	// AddPeer makes the agent of that blob known, or known anew: a blob of
	// another life of the same name starts a new generation, and so does any
	// blob of a peer that was lost or removed. It is refused with [ErrBusy]
	// while transfers with the earlier generation are in flight.
	AddPeer(metadata []byte) (Peer, error)
	// RemovePeer forgets a peer. It is refused with [ErrBusy] while transfers
	// with it are in flight.
	RemovePeer(p Peer) error

	// NewTransfer checks and prepares a transfer. It moves nothing.
	NewTransfer(s Spec) (Transfer, error)

	// Notify sends a message that belongs to no transfer.
	Notify(p Peer, message []byte) error
	// Notifications appends the messages that have arrived to dst.
	Notifications(dst []Notification) ([]Notification, error)

	// Activity changes when a transfer of this agent may have ended or a
	// message may have come. Waits look at it before they poll.
	Activity() uint64

	// Close ends the agent, its registrations and its transport: what failed
	// transfers left under way stops too. It is refused with [ErrBusy] while
	// transfers are in flight. A second Close does nothing.
	Close() error
}

// Registration is memory that an agent has registered.
type Registration interface {
	// Regions returns a copy of the regions that were registered.
	Regions() []Descriptor
	// Close takes the registration back. It is refused with [ErrBusy] while a
	// transfer of this agent that uses the memory is in flight, and with
	// [ErrPoisoned] after one ended without proof that it is quiet; only the
	// end of the agent releases such memory. Where another registration counts
	// the same region too, it stays registered and nothing is refused. Once
	// Close has succeeded no transfer of this agent touches the memory any
	// more: prepared ones are refused when posted. A second Close does nothing.
	Close() error
}

// Transfer is one request, posted any number of times, one at a time. It keeps
// its agent and the registrations that it uses alive.
type Transfer interface {
	// Spec returns the transfer's own copy of what it was made from. It is not
	// to be changed.
	Spec() *Spec

	// Post hands the transfer to the transport and returns without waiting for
	// it. Nothing of a post that Cancel comes before is handed over. The call
	// itself may take tens of microseconds and more. After an error for which
	// [Quiet] holds nothing has left; after any other, some descriptors may be
	// on their way.
	Post() error

	// Status polls the transfer. The error is set exactly when the status is
	// [Failed]. Polling is what sends the notification; a posted transfer has
	// to be polled to its end.
	Status() (Status, error)

	// Cancel says that nobody wants the transfer any more. It never blocks,
	// and may be called at any time, also by a goroutine that is not the one
	// that calls the other methods.
	//
	// From then on every post is refused with [ErrCanceled]. A transfer that
	// was not posted yet has thereby failed with that error, which is quiet.
	// One in flight is asked to stop, and goes on being in flight, with all
	// that it holds, until Status has told its end: then it has failed with
	// ErrCanceled, quiet, however many of its bytes have moved, and its
	// notification is not sent. If it fails otherwise, that error is told. An
	// end that Status had told before Cancel stays as it was.
	//
	// Whether a transport does stop is its own affair: a peer that hangs may
	// hold up a canceled transfer as any other.
	Cancel()

	// Close releases the request. It is refused with [ErrBusy] while the
	// transfer is in flight, since releasing would not stop it. A second Close
	// does nothing.
	Close() error
}

// Owned is implemented by transfers that can tell whose they are, so that one
// who polls through an agent can refuse the transfer of another.
type Owned interface {
	// Agent returns the agent whose NewTransfer made the transfer: the same
	// value, so that == tells. It works after the transfer and the agent have
	// been closed.
	Agent() Agent
}
