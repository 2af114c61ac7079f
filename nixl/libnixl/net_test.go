package libnixl

import (
	"net"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

// freePort returns an address on the loopback that nobody listens at.
func freePort(t testing.TB) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}
