// Package exchange carries metadata between agents that know nothing of each
// other but where to look: through etcd ([Etcd]), or over a socket, from the
// [Listener] of one agent to the [Socket] of another. Keys and protocol are those
// of NVIDIA's NIXL library, so agents of its other bindings can be met as well.
// The library's own exchange is not used: it hands what comes to UCX unread. Here
// all of it goes through the agent's AddPeer.
//
// A program that has a connection to its peers anyway needs nothing of this: it
// sends the blob of [nixl.Agent] Metadata, and the other side adds it.
//
// Deadlines are instants of the clock that a constructor is given. All methods are
// safe for use by several goroutines.
package exchange

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

const (
	// patience is how long etcd or a listener may take for one request.
	patience = 5 * time.Second
	// lookAgain and askAgain are the shortest and the longest pause between two
	// looks for what is not there yet.
	lookAgain = 5 * time.Millisecond
	askAgain  = 500 * time.Millisecond

	// maxMetadata bounds what is read from etcd or a socket. etcd itself takes
	// 1.5 MiB at most unless told otherwise, which is a few thousand regions.
	maxMetadata = 64 << 20
)

var errTooLong = fmt.Errorf("more than %d MiB", maxMetadata>>20)

// Adder is what an agent may have beside [nixl.Agent], so that a fetch is cut
// short, and refuses the metadata of somebody else before it is added. Agents of
// nixl/libnixl have it.
type Adder interface {
	// AddPeerContext is AddPeer; the end of ctx ends what waits in it.
	AddPeerContext(ctx context.Context, metadata []byte) (nixl.Peer, error)
	// NameIn returns the name of the agent that the metadata is of.
	NameIn(metadata []byte) (string, error)
}

func addPeer(ctx context.Context, a nixl.Agent, metadata []byte) (nixl.Peer, error) {
	if x, ok := a.(Adder); ok {
		return x.AddPeerContext(ctx, metadata)
	}
	return a.AddPeer(metadata)
}

// take adds a peer by what was found at a place. It has to be of that name.
func take(ctx context.Context, a nixl.Agent, op, name, place string, metadata []byte) (nixl.Peer, error) {
	refuse := func(cause error, format string, args ...any) (nixl.Peer, error) {
		return nixl.Peer{}, nixl.Refuse(op, name, cause, "%s: %s", place, fmt.Sprintf(format, args...))
	}
	if len(metadata) == 0 {
		return refuse(nixl.ErrInvalid, "it is empty")
	}
	if x, ok := a.(Adder); ok {
		if of, err := x.NameIn(metadata); err == nil && of != name {
			return refuse(nixl.ErrInvalid, "it is of agent %q", of)
		}
	}
	p, err := addPeer(ctx, a, metadata)
	if e := (*nixl.Error)(nil); errors.As(err, &e) {
		return refuse(e.Err, "%s", e.Detail)
	}
	if err == nil && p.Name != name {
		return refuse(nixl.ErrInvalid, "it is of agent %q", p.Name)
	}
	return p, err
}

// notYet is why there is nothing to fetch for now.
type notYet struct{ error }

// mayCome reports whether it may become better: nothing is published, the one who
// is asked is away, or what is there is of a life that has ended.
func mayCome(err error) bool {
	return errors.As(err, new(notYet)) || errors.Is(err, nixl.ErrStalePeer) ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// fetch tries until there is a peer, an error that time does not mend, the end of
// ctx or the deadline.
func fetch(ctx context.Context, clk clock.Clock, a nixl.Agent, name string, deadline time.Duration,
	try func(ctx context.Context, op string) (nixl.Peer, error)) (nixl.Peer, error) {
	const op = "fetch peer"
	switch {
	case name == "" || strings.IndexByte(name, 0) >= 0:
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "name %q", name)
	case name == a.Name():
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "an agent can not fetch itself")
	}
	var why error // the last look had no result, but for the end of the wait
	for pause := lookAgain; ; pause = min(2*pause, askAgain) {
		var p nixl.Peer
		err := clock.Within(ctx, clk, op+" of "+a.Name(), deadline, func(ctx context.Context) (err error) {
			p, err = try(ctx, op)
			return err
		})
		if err == nil || !mayCome(err) {
			return p, err
		}
		now := clk.Now()
		if why == nil || now < deadline && ctx.Err() == nil {
			why = err
		}
		end := error(context.DeadlineExceeded)
		if now < deadline {
			end = clk.Sleep(ctx, min(pause, deadline-now))
		}
		if end != nil {
			return nixl.Peer{}, nixl.Refuse(op, name, fmt.Errorf("%w: %w", nixl.ErrNoPeer, end), "%v", why)
		}
	}
}

// once asks once. Whatever goes wrong is an ErrUnavailable with the reason.
func once(ctx context.Context, clk clock.Clock, op string, fn func(ctx context.Context) error) error {
	if err := clock.Within(ctx, clk, op, clk.Now()+patience, fn); err != nil {
		return nixl.Refuse(op, "", fmt.Errorf("%w: %w", nixl.ErrUnavailable, err), "")
	}
	return nil
}
