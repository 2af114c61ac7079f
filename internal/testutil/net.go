package testutil

import (
	"bytes"
	"context"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
)

// FreePort returns an address on the loopback that nobody listens at.
func FreePort(t testing.TB) netip.AddrPort {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// Etcd starts a server of the test's own and returns its address.
func Etcd(t testing.TB) string {
	t.Helper()
	exe, err := exec.LookPath("etcd")
	if err != nil {
		SkipOrFail(t, "no etcd (Debian: etcd-server): %v", err)
	}
	client, peers := "http://"+FreePort(t).String(), "http://"+FreePort(t).String()
	c := exec.Command(exe, "--name=one", "--data-dir="+t.TempDir(), "--listen-client-urls="+client, "--advertise-client-urls="+client,
		"--listen-peer-urls="+peers, "--initial-advertise-peer-urls="+peers, "--initial-cluster=one="+peers)
	c.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH="+runtime.GOARCH)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
		if t.Failed() {
			t.Log(out.String())
		}
	})
	clk := clock.Wall()
	for {
		conn, err := net.Dial("tcp", client[len("http://"):])
		if err == nil {
			require.NoError(t, conn.Close())
			return client
		}
		require.Less(t, clk.Now(), time.Minute, "etcd does not answer")
		require.NoError(t, clk.Sleep(context.Background(), 20*time.Millisecond))
	}
}
