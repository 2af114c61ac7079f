package nixl

import "fmt"

// Peers keeps the remote agents that an agent knows and their generations, for
// implementations of [Agent]. Generations of a name start at 1 and only grow,
// also across a removal. The zero Peers is empty. The agent's lock guards it.
type Peers struct {
	byName map[string]*peerState
	// The last one looked up: calls about one peer come in a row.
	last     *peerState
	lastName string
}

type peerState struct {
	life       string
	generation uint32
	known      bool
	inFlight   int
}

func (p *Peers) state(name string) *peerState {
	if p.last != nil && p.lastName == name {
		return p.last
	}
	s := p.byName[name]
	if s != nil {
		p.last, p.lastName = s, name
	}
	return s
}

// Add makes a life of a name known. The same life again keeps its generation,
// as long as it has not been lost or removed; anything else begins a new one
// (fresh), which is refused with [ErrBusy] while transfers with the earlier
// one are in flight.
func (p *Peers) Add(name, life string) (peer Peer, fresh bool, err error) {
	s := p.byName[name]
	if s == nil {
		if p.byName == nil {
			p.byName = map[string]*peerState{}
		}
		s = &peerState{}
		p.byName[name] = s
	}
	if s.known && s.life == life {
		return Peer{name, s.generation}, false, nil
	}
	if s.inFlight > 0 {
		return Peer{}, false, Refuse("add peer", name, ErrBusy, "%d transfers with generation %d in flight", s.inFlight, s.generation)
	}
	s.life, s.known = life, true
	s.generation++
	return Peer{name, s.generation}, true, nil
}

// Check returns nil if q is the peer as it is known now, [ErrStalePeer] if it
// is an earlier generation, and [ErrNoPeer] if the name is not known (any
// more). The errors name op and are quiet.
func (p *Peers) Check(op string, q Peer) error {
	s := p.state(q.Name)
	switch {
	case s == nil || q.Generation == 0 || q.Generation > s.generation:
		return Refuse(op, q.Name, ErrNoPeer, "generation %d", q.Generation)
	case q.Generation < s.generation:
		return Refuse(op, q.Name, ErrStalePeer, "generation %d is over, %d runs", q.Generation, s.generation)
	case !s.known:
		return Refuse(op, q.Name, ErrNoPeer, "generation %d was lost or removed", q.Generation)
	}
	return nil
}

// Current returns the newest generation of a name (0: there was none), whether
// it is known, and how many transfers with it are in flight.
func (p *Peers) Current(name string) (peer Peer, known bool, inFlight int) {
	s := p.state(name)
	if s == nil {
		return Peer{Name: name}, false, 0
	}
	return Peer{name, s.generation}, s.known, s.inFlight
}

// Begin counts a transfer with q that is in flight; End undoes it.
func (p *Peers) Begin(q Peer) { p.state(q.Name).inFlight++ }

// End ends what Begin began.
func (p *Peers) End(q Peer) { p.state(q.Name).inFlight-- }

// Lost makes q unknown, whatever is in flight: the transport dropped it.
func (p *Peers) Lost(q Peer) {
	if p.Check("", q) == nil {
		p.state(q.Name).known = false
	}
}

// Found undoes Lost, for a peer that was lost in no transfer's sight: while its
// agent learned it anew.
func (p *Peers) Found(q Peer) {
	if s := p.state(q.Name); s != nil && s.generation == q.Generation {
		s.known = true
	}
}

// Remove makes q unknown. It is refused with [ErrBusy] while transfers with it
// are in flight.
func (p *Peers) Remove(q Peer) error {
	const op = "remove peer"
	if err := p.Check(op, q); err != nil {
		return err
	}
	s := p.state(q.Name)
	if s.inFlight > 0 {
		return Refuse(op, q.Name, ErrBusy, "%d transfers in flight", s.inFlight)
	}
	s.known = false
	return nil
}

// Refuse returns an error of something that was refused before the transport
// saw anything of it.
func Refuse(op, peer string, cause error, format string, args ...any) *Error {
	return &Error{Op: op, Peer: peer, Detail: fmt.Sprintf(format, args...), Err: cause, NeverHanded: true}
}
