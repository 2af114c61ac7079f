package libnixl

import (
	"context"
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
)

// The one who is told of a refusal may end the agent.
func TestCloseWhileToldOfARefusal(t *testing.T) {
	port := freePort(t)
	l := library(t)
	closed := make(chan error, 1)
	var a *Agent
	ready := make(chan struct{})
	a, err := l.NewAgent(context.Background(), "decode", Config{Listen: true, ListenPort: port.Port(), Refused: func(netip.AddrPort, error) {
		<-ready
		closed <- a.Close()
	}})
	close(ready)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, a.Close()) })
	b := agent(t, "prefill", Config{})
	sent := make(chan error, 1)
	b.Clock().Go("garbage", func() { sent <- b.tell(context.Background(), "publish", port, loadCommand, []byte("garbage")) })
	end, clk := error(nil), clock.Wall()
	for over := false; !over; {
		select {
		case end = <-closed:
			over = true
		default:
			require.Less(t, clk.Now(), patience, "Close hangs")
			require.NoError(t, clk.Sleep(context.Background(), lookAgain))
		}
	}
	require.NoError(t, end)
	<-sent
}
