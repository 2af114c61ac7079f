package libnixl

import (
	"fmt"
	"os"
	"runtime"
	"sync/atomic"
)

// Leaked is told of agents that the garbage collector found without their having
// been closed. It can do nothing for them: what they hold of the library, and of
// the network, stays until the process ends, since nobody knows what still moves
// there. By default it prints a line to standard error. Set it before the first
// agent is made. It is called on a goroutine of the runtime's and must not
// block.
//
// Everything that is made of an agent keeps it alive, and so does a
// listener of package exchange: such an agent is never told of. Nor is a transfer, list, view or registration that was dropped: the agent keeps what
// they have of the library until its own end, or that of their memory or peer.
var Leaked = func(agent string) {
	fmt.Fprintf(os.Stderr, "kvgate: NIXL agent %s was dropped without Close\n", agent)
}

// tracked is what is left of an agent when it is gone.
type tracked struct {
	name   string
	closed atomic.Bool
}

func track(a *Agent) *tracked {
	k := &tracked{name: a.name}
	runtime.AddCleanup(a, func(k *tracked) {
		if !k.closed.Load() {
			Leaked(k.name)
		}
	}, k)
	return k
}

func (k *tracked) close() { k.closed.Store(true) }
