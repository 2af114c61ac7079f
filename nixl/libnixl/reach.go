package libnixl

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// UCX connects over TCP in the call that adds a peer, and blocks there with its
// locks held (uct_tcp_ep_create_socket_and_connect, ucs_socket_connect): posts to
// every other peer wait, too. A host that refuses is told at once; one that is
// silent, only when the kernel has sent its last SYN: with Linux's defaults, after
// more than a minute. So a silent host is found out here before, and what it can
// still hold up, a host that falls silent in between or one of several addresses
// that UCX prefers, is bounded by fewer SYNs.
//
// UCX_TCP_CONN_NB=y makes it not block. It is not set here, since a peer that is
// gone would look known then, and each post to it fail without a proof that its
// memory is left alone.

const (
	connectTimeout = 2 * time.Second

	// ucxSettings is a parameter of the UCX backend: settings of UCX without their
	// UCX_, with commas between them. The environment goes before them
	// (nixl::ucx::config::modify).
	ucxSettings = "engine_config"
	// synSetting is how often UCX lets the kernel repeat a SYN. With two it gives up
	// after 1 + 2 + 4 s, also where the first repeats come each second (since Linux
	// 6.5, tcp_syn_linear_timeouts), as measured.
	synSetting = "TCP_SYN_CNT"
	synRepeats = 2
)

// boundConnects adds the bound to settings that do not name it.
func boundConnects(settings string) string {
	for s := range strings.SplitSeq(settings, ",") {
		if name, _, _ := strings.Cut(s, "="); name == synSetting {
			return settings
		}
	}
	bound := fmt.Sprintf("%s=%d", synSetting, synRepeats)
	if settings == "" {
		return bound
	}
	return settings + "," + bound
}

// reachesByTCP returns the addresses that UCX may connect to over TCP, by the rules
// of its uct_tcp_iface_is_reachable_v2, but for those of the loopback, which are of
// this host and never silent. It connects to them beside shared memory, too, to
// learn of the peer's end. There are none where both sides have InfiniBand, which
// it prefers throughout.
func (own *ucxAddress) reachesByTCP(peer *ucxAddress) []netip.AddrPort {
	var to []netip.AddrPort
	for _, d := range peer.domains {
		shared := slices.ContainsFunc(own.domains, func(o ucxDomain) bool {
			return o.transport.name == d.transport.name && (d.transport.name != "tcp" || o.device[:2] == d.device[:2])
		})
		if !shared {
			continue
		}
		switch d.transport.component {
		case "ib", "ugni":
			return nil
		case "tcp":
			if d.device[0] == 0 {
				ip, _ := netip.AddrFromSlice([]byte(d.device[2:])) // checkTCP knows its length
				to = append(to, netip.AddrPortFrom(ip, binary.BigEndian.Uint16([]byte(d.iface))))
			}
		}
	}
	return to
}

// answers returns nil when one of the addresses has answered, be it by a refusal,
// or can not be asked; UCX then sees for itself. It is called without locks held.
//
// The kernel, not the clock, says when a host was silent for too long: where this
// process is what is slow, an answer is late to be seen and still one.
func (a *Agent) answers(ctx context.Context, op, peer string, to []netip.AddrPort) error {
	if len(to) == 0 {
		return nil
	}
	begin := a.clk.Now()
	silent := false
	_ = clock.Within(ctx, a.clk, op+" of "+a.name, clock.Never, func(ctx context.Context) error {
		silent = a.allSilent(ctx, to)
		return nil
	})
	if !silent {
		return nil
	}
	cause := nixl.ErrUnavailable
	if ctx.Err() != nil {
		cause = fmt.Errorf("%w: %w", cause, context.Cause(ctx))
	}
	return nixl.Refuse(op, peer, cause, "no answer over TCP from %v in %v", to, a.clk.Now()-begin)
}

// allSilent connects to all addresses at once until one answers or ctx is done.
func (a *Agent) allSilent(ctx context.Context, to []netip.AddrPort) bool {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	limit := a.cfg.ConnectTimeout
	if limit == 0 {
		limit = connectTimeout
	}
	dialer := net.Dialer{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		return errors.Join(conn.Control(func(fd uintptr) { err = limitConnect(int(fd), limit) }), err)
	}}
	silent := make(chan bool, len(to))
	for _, t := range to {
		a.clk.Go("connect to "+t.String(), func() {
			conn, err := dialer.DialContext(ctx, "tcp", t.String())
			if err == nil {
				_ = conn.Close()
			}
			silent <- silence(err)
		})
	}
	all := true
	for range to {
		if !<-silent {
			all = false
			stop()
		}
	}
	return all
}

// silence reports whether an attempt to connect found nobody there.
func silence(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) ||
		errors.Is(err, syscall.ETIMEDOUT) || errors.Is(err, syscall.EHOSTUNREACH)
}
