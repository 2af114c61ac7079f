package libnixl

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

func coded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

const prefillKey = "/nixl/agents//prefill/metadata"

func putValue(t *testing.T, server, key string, value []byte) {
	t.Helper()
	gateway(t, server+"/v3/kv/put", map[string]any{"key": coded(key), "value": coded(string(value))})
}

// Damaged values under the peer's key: each fetch ends at once and names the key
// and what is wrong; with the real one in place it succeeds.
func TestGarbageInEtcd(t *testing.T) {
	server := etcd(t)
	a, b := agent(t, "decode", Config{Etcd: server}), agent(t, "prefill", Config{Etcd: server})
	buf := pages(t, 4096)
	_, err := b.Register(nixl.DRAM, all(buf))
	require.NoError(t, err)
	ctx := context.Background()
	fetch := func(patience time.Duration) error {
		_, err := a.FetchPeer(ctx, "prefill", netip.AddrPort{}, a.Clock().Now()+patience)
		return err
	}
	err = fetch(time.Second)
	quiet(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "nothing is published in etcd as "+prefillKey)

	sealed, err := b.Metadata()
	require.NoError(t, err)
	plain, _, err := b.d.metadata(b.h)
	require.NoError(t, err)
	changed := func(blob []byte, fn func(m *Metadata)) []byte {
		blob = bytes.Clone(blob)
		m, err := ParseMetadata(blob)
		require.NoError(t, err)
		fn(m) // its parts lie in the blob
		return blob
	}
	for want, value := range map[string][]byte{
		"it is empty":                          nil,
		`no "nixlSerDes|"`:                     []byte("no metadata at all"),
		"more than there are":                  plain[:len(plain)/2],
		"metadata: the checksum does not hold": sealed[:len(sealed)/2],
		"the checksum does not hold":           changed(sealed, func(m *Metadata) { m.Connections[0].Info[20]++ }),
		"UCX address of version":               changed(plain, func(m *Metadata) { m.Connections[0].Info[0]++ }),
		"transport of an unknown name":         changed(plain, func(m *Metadata) { m.Connections[0].Info[11]++ }),
		"UCX key, byte":                        changed(plain, func(m *Metadata) { m.Regions[0].Key[8] = 0xee }),
		`it is of agent "somebody"`:            renamed(plain, "somebody"),
		`no "Agent" where it has to be`:        append([]byte("nixlSerDes|"), make([]byte, 1<<20)...),
		"has 72057594037927936 bytes":          append([]byte("nixlSerDes|Agent\x00\x00\x00\x00\x00\x00\x00\x01"), make([]byte, 100)...),
	} {
		putValue(t, server, prefillKey, value)
		err := fetch(patience)
		quiet(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "fetch peer prefill: etcd key "+prefillKey+": ")
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, b.Publish(ctx, netip.AddrPort{}))
	require.NoError(t, fetch(patience))
	got := gateway(t, server+"/v3/kv/range", map[string]any{"key": coded(prefillKey)})
	require.Contains(t, got, coded(string(sealed)))

	// Who has no password learns so.
	for _, step := range [][2]string{
		{"user/add", `{"name":"root","password":"x"}`}, {"role/add", `{"name":"root"}`},
		{"user/grant", `{"user":"root","role":"root"}`}, {"enable", `{}`},
	} {
		r, err := http.Post(server+"/v3/auth/"+step[0], "application/json", strings.NewReader(step[1]))
		require.NoError(t, err)
		require.Equal(t, http.StatusOK, r.StatusCode, step)
		require.NoError(t, r.Body.Close())
	}
	for _, err := range []error{b.Publish(ctx, netip.AddrPort{}), b.Withdraw(ctx, netip.AddrPort{})} {
		quiet(t, err, nixl.ErrUnavailable)
		require.ErrorContains(t, err, "user name is empty")
	}
	require.ErrorContains(t, fetch(time.Second), "user name is empty")
}

// Servers that are away, never answer or answer nonsense: typed errors, in time.
func TestEtcdAway(t *testing.T) {
	hang := make(chan struct{})
	var answer atomic.Value
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s := answer.Load(); s != nil {
			_, _ = io.WriteString(w, s.(string))
			return
		}
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(slow.Close)
	t.Cleanup(func() { close(hang) })
	away := "http://" + freePort(t).String()
	ctx := context.Background()
	// A machine under load may need longer until the first answer, which is the
	// reason to be given.
	within := func(want string, try func(d time.Duration) error) (err error) {
		for d := 50 * time.Millisecond; d < 2*patience; d *= 4 {
			if err = try(d); err == nil || strings.Contains(err.Error(), want) {
				break
			}
		}
		return err
	}
	soon := func(a *Agent, want string) error {
		return within(want, func(d time.Duration) error {
			_, err := a.FetchPeer(ctx, "prefill", netip.AddrPort{}, a.Clock().Now()+d)
			return err
		})
	}
	for name, c := range map[string]struct{ servers, publish, fetch string }{
		"away": {away, "connection refused", "connection refused"},
		"slow": {slow.URL, "canceled", "context deadline exceeded"},
	} {
		a := agent(t, "decode", Config{Etcd: c.servers})
		err := soon(a, c.fetch)
		quiet(t, err, nixl.ErrNoPeer)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorContains(t, err, c.fetch, name)
		err = within(c.publish, func(d time.Duration) error {
			short, cancel := context.WithCancel(ctx)
			defer cancel()
			a.Clock().Go("cancel", func() {
				_ = a.Clock().Sleep(short, d)
				cancel()
			})
			return a.Publish(short, netip.AddrPort{})
		})
		quiet(t, err, nixl.ErrUnavailable)
		require.ErrorContains(t, err, c.publish, name)
	}
	a := agent(t, "decode", Config{Etcd: away + "," + slow.URL})
	for text, want := range map[string]string{
		"<html>": "answer: invalid character",
		`{"kvs":[{"key":"eA==","value":"eA=="}]}`:   "another key",
		`{"kvs":[{"key":"eA==","value":"!"}]}`:      "illegal base64",
		`{"header":{"revision":"7"},"count":"0"}`:   "nothing is published",
		`{"header":{"revision":true}}`:              "answer: json",
		fmt.Sprintf(`{"kvs":%q}`, "a longer value"): "answer: json",
	} {
		answer.Store(text)
		err := soon(a, want)
		quiet(t, err, nixl.ErrNoPeer)
		require.ErrorContains(t, err, want)
	}
	answer.Store(strings.Repeat(" ", maxAnswer+2))
	other := agent(t, "other", Config{Etcd: slow.URL})
	_, err := other.FetchPeer(ctx, "prefill", netip.AddrPort{}, other.Clock().Now()+patience)
	quiet(t, err, nixl.ErrInvalid)
	require.ErrorContains(t, err, prefillKey+": more than 64 MiB")

	for _, bad := range []string{"ftp://x:1", "http://", "http://x:1/path", ",", "http://%zz"} {
		_, err := library(t).NewAgent(ctx, "decode", Config{Etcd: bad})
		quiet(t, err, nixl.ErrInvalid)
	}
}

// A peer that leaves while etcd can not be reached is missed no longer than that.
func TestWithdrawnWhileEtcdIsAway(t *testing.T) {
	server := etcd(t)
	target, err := url.Parse(server)
	require.NoError(t, err)
	var cut atomic.Bool
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		FlushInterval: -1,
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut.Load() {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close) // after the agents, whose watches keep it open
	a, b := agent(t, "decode", Config{Etcd: front.URL}), agent(t, "prefill", Config{Etcd: server})
	ctx := context.Background()
	meet := func() nixl.Peer {
		require.NoError(t, b.Publish(ctx, netip.AddrPort{}))
		p, err := a.FetchPeer(ctx, "prefill", netip.AddrPort{}, a.Clock().Now()+patience)
		require.NoError(t, err)
		return p
	}
	gone := func(p nixl.Peer) {
		t.Helper()
		clk := clock.Wall()
		for {
			known, err := a.Known(p)
			require.NoError(t, err)
			if !known {
				return
			}
			require.Less(t, clk.Now(), patience)
			require.NoError(t, clk.Sleep(ctx, 10*time.Millisecond))
		}
	}
	p := meet()
	require.NoError(t, b.Withdraw(ctx, netip.AddrPort{}))
	gone(p)
	p = meet()
	require.Equal(t, uint32(2), p.Generation)
	cut.Store(true)
	front.CloseClientConnections()
	require.NoError(t, b.Withdraw(ctx, netip.AddrPort{}))
	cut.Store(false)
	gone(p)
	// It leaves and is back before anybody looks.
	p = meet()
	cut.Store(true)
	front.CloseClientConnections()
	require.NoError(t, b.Withdraw(ctx, netip.AddrPort{}))
	require.NoError(t, b.Publish(ctx, netip.AddrPort{}))
	cut.Store(false)
	gone(p)
	// What is published again without having left keeps the peer.
	p = meet()
	require.Equal(t, p, meet())
	known, err := a.Known(p)
	require.NoError(t, err)
	require.True(t, known)
}
