package exchange_test

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/clock/vtime"
	"github.com/kvgate/kvgate/nixl/exchange"
	"github.com/kvgate/kvgate/nixl/softnic"
)

// Two agents meet over a socket: one listens, the other asks for its metadata and
// tells it its own. With agents of nixl/libnixl it is the same.
func ExampleListen() {
	world := vtime.NewReal(vtime.Options{}, 1)
	defer world.Close()
	fabric := softnic.New(world, softnic.Options{})
	defer fabric.Close()
	decode, err := fabric.NewAgent("decode")
	check(err)
	prefill, err := fabric.NewAgent("prefill")
	check(err)

	at, err := net.Listen("tcp", "127.0.0.1:0") // or a port that both sides know
	check(err)
	listener := exchange.Listen(world, prefill, at, nil)
	defer listener.Close()

	ctx := context.Background()
	socket := exchange.NewSocket(world, netip.MustParseAddrPort(at.Addr().String()))
	defer socket.Close()
	peer, err := socket.Fetch(ctx, decode, "prefill", world.Now()+time.Minute)
	check(err)
	fmt.Println("decode knows", peer.Name)
	check(socket.Publish(ctx, decode))
	back, _ := listener.Met("decode")
	fmt.Println("prefill knows", back.Name)
	// Output:
	// decode knows prefill
	// prefill knows decode
}

// Many nodes meet through etcd: each publishes itself and fetches those that it
// needs, also before they have come.
func ExampleEtcd() {
	world := vtime.NewReal(vtime.Options{}, 1)
	defer world.Close()
	fabric := softnic.New(world, softnic.Options{})
	defer fabric.Close()
	self, err := fabric.NewAgent("decode-0")
	check(err)

	etcd, err := exchange.NewEtcd(clock.Wall(), "http://etcd-0:2379,http://etcd-1:2379", "")
	check(err)
	defer etcd.Close()
	meet := func(ctx context.Context) error {
		if err := etcd.Publish(ctx, self); err != nil {
			return err
		}
		defer etcd.Withdraw(ctx, self.Name())
		peer, err := etcd.Fetch(ctx, self, "prefill-0", world.Now()+time.Minute)
		if err != nil {
			return err
		}
		fmt.Println("met", peer)
		return nil
	}
	_ = meet // where these servers are
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
