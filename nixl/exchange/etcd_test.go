package exchange

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/nixl"
)

func through(t *testing.T, servers string) *Etcd {
	t.Helper()
	e, err := NewEtcd(wall, servers, "")
	require.NoError(t, err)
	t.Cleanup(e.Close)
	return e
}

func coded(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

const prefillKey = "/nixl/agents//prefill/metadata"

// gateway asks etcd by its JSON gateway; keys and values are in base64 there.
func gateway(t *testing.T, url string, ask map[string]any) string {
	t.Helper()
	b, err := json.Marshal(ask)
	require.NoError(t, err)
	c := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	r, err := c.Post(url, "application/json", bytes.NewReader(b))
	require.NoError(t, err)
	defer func() { require.NoError(t, r.Body.Close()) }()
	require.Equal(t, http.StatusOK, r.StatusCode, url)
	answer, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	return string(answer)
}

// within tries with ever longer limits until the error says what it has to: under
// load a machine may need longer until there is a reason to give.
func within(want string, try func(d time.Duration) error) (err error) {
	for d := 50 * time.Millisecond; d < 2*long; d *= 4 {
		if err = try(d); err == nil || strings.Contains(err.Error(), want) {
			break
		}
	}
	return err
}

// Damaged values under the peer's key: each fetch ends at once and names the key
// and what is wrong; with the real one in place it succeeds.
func TestEtcd(t *testing.T) {
	server := testutil.Etcd(t)
	a, b, e := newFake("decode"), newFake("prefill"), through(t, server)
	fetch := func(patience time.Duration) error {
		_, err := e.Fetch(bg, a, "prefill", wall.Now()+patience)
		return err
	}
	err := within("nothing is published", fetch)
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, "nothing is published in etcd as "+prefillKey)
	for want, value := range map[string]string{
		"it is empty":              "",
		`no metadata: "damaged"`:   "damaged",
		`it is of agent "another"`: "of another",
	} {
		gateway(t, server+"/v3/kv/put", map[string]any{"key": coded(prefillKey), "value": coded(value)})
		err := fetch(long)
		require.ErrorIs(t, err, nixl.ErrInvalid)
		require.ErrorContains(t, err, "fetch peer prefill: etcd key "+prefillKey+": ")
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, e.Publish(bg, b))
	require.NoError(t, fetch(long))
	got := func(key string) string {
		return gateway(t, server+"/v3/kv/range", map[string]any{"key": coded(key)})
	}
	require.Contains(t, got(prefillKey), coded("of prefill"))
	require.Contains(t, got("/nixl/agents//prefill/"), `"kvs"`, "agents of the library watch the bare name")

	// Of two names of which one goes on behind a slash, each leaves alone.
	require.NoError(t, e.Publish(bg, newFake("prefill/0")))
	require.NoError(t, e.Withdraw(bg, "prefill"))
	require.NotContains(t, got(prefillKey), `"kvs"`)
	require.NotContains(t, got("/nixl/agents//prefill/"), `"kvs"`)
	require.Contains(t, got("/nixl/agents//prefill/0/metadata"), `"kvs"`)

	// Who has no password learns so.
	for _, step := range [][2]string{
		{"user/add", `{"name":"root","password":"x"}`}, {"role/add", `{"name":"root"}`},
		{"user/grant", `{"user":"root","role":"root"}`}, {"enable", `{}`},
	} {
		var ask map[string]any
		require.NoError(t, json.Unmarshal([]byte(step[1]), &ask))
		gateway(t, server+"/v3/auth/"+step[0], ask)
	}
	for _, err := range []error{e.Publish(bg, b), e.Withdraw(bg, "prefill")} {
		require.ErrorIs(t, err, nixl.ErrUnavailable)
		require.ErrorContains(t, err, "user name is empty")
	}
	require.ErrorContains(t, within("user name is empty", fetch), "user name is empty")
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
	away := "http://" + testutil.FreePort(t).String()
	soon := func(e *Etcd, want string) error {
		return within(want, func(d time.Duration) error {
			_, err := e.Fetch(bg, newFake("decode"), "prefill", wall.Now()+d)
			return err
		})
	}
	for name, c := range map[string]struct{ servers, publish, fetch string }{
		"away": {away, "connection refused", "connection refused"},
		"slow": {slow.URL, "canceled", "context deadline exceeded"},
	} {
		e := through(t, c.servers)
		err := soon(e, c.fetch)
		require.ErrorIs(t, err, nixl.ErrNoPeer)
		require.ErrorIs(t, err, context.DeadlineExceeded, name)
		require.ErrorContains(t, err, c.fetch, name)
		err = within(c.publish, func(d time.Duration) error {
			short, cancel := context.WithCancel(bg)
			defer cancel()
			wall.Go("cancel", func() {
				_ = wall.Sleep(short, d)
				cancel()
			})
			return e.Publish(short, newFake("decode"))
		})
		require.ErrorIs(t, err, nixl.ErrUnavailable)
		require.ErrorContains(t, err, c.publish, name)
	}
	e := through(t, away+","+slow.URL)
	for text, want := range map[string]string{
		"<html>": "answer: invalid character",
		`{"kvs":[{"key":"eA==","value":"eA=="}]}`:   "another key",
		`{"kvs":[{"key":"eA==","value":"!"}]}`:      "illegal base64",
		`{"header":{"revision":"7"},"count":"0"}`:   "nothing is published",
		fmt.Sprintf(`{"kvs":%q}`, "a longer value"): "answer: json",
	} {
		answer.Store(text)
		err := soon(e, want)
		require.ErrorIs(t, err, nixl.ErrNoPeer)
		require.ErrorContains(t, err, want)
	}
	answer.Store(strings.Repeat(" ", maxAnswer+2))
	_, err := through(t, slow.URL).Fetch(bg, newFake("other"), "prefill", wall.Now()+long)
	require.ErrorIs(t, err, nixl.ErrInvalid)
	require.ErrorContains(t, err, prefillKey+": more than 64 MiB")
}

func TestBadServers(t *testing.T) {
	t.Setenv(EtcdVariable, "")
	for _, bad := range []string{"", "ftp://x:1", "http://", "http://x:1/path", ",", "http://%zz"} {
		_, err := NewEtcd(wall, bad, "")
		require.ErrorIs(t, err, nixl.ErrInvalid, "%q", bad)
	}
	t.Setenv(EtcdVariable, "one:2379, two:2379")
	t.Setenv(EtcdNamespaceVariable, "/mine")
	e, err := NewEtcd(wall, "", "")
	require.NoError(t, err)
	require.Equal(t, []string{"http://one:2379", "http://two:2379"}, e.servers)
	require.Equal(t, "/mine/a/metadata", e.key("a", wholeLabel))
}

// What a killed agent left in etcd does not end a fetch: the next one's is what it
// waits for, or the deadline, with the reason.
func TestFetchWaitsOutWhatAKilledAgentLeft(t *testing.T) {
	a, b, e := newFake("decode"), newFake("prefill"), through(t, testutil.Etcd(t))
	require.NoError(t, e.Publish(bg, b))
	a.refuse(nixl.ErrBackend) // as where nobody listens any more
	err := within(prefillKey, func(d time.Duration) error {
		_, err := e.Fetch(bg, a, "prefill", wall.Now()+d)
		return err
	})
	require.ErrorIs(t, err, nixl.ErrNoPeer)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.ErrorContains(t, err, prefillKey)
	require.Equal(t, 1, a.tried(), "it is tried once")

	a.refuse(nixl.ErrUnavailable) // it may answer yet
	tried := a.tried()
	e = through(t, strings.Join(e.servers, ","))
	got := make(chan error, 1)
	wall.Go("fetch", func() {
		_, err := e.Fetch(bg, a, "prefill", soon())
		got <- err
	})
	until(t, "it is tried again", func() bool { return a.tried() > tried+1 })
	require.Empty(t, got, "it waits")
	a.refuse(nil)
	require.NoError(t, <-got)

	// Left behind for good, until another one is published.
	a.refuse(nixl.ErrStalePeer)
	tried = a.tried()
	wall.Go("fetch", func() {
		_, err := e.Fetch(bg, a, "prefill", soon())
		got <- err
	})
	until(t, "the leftover is tried", func() bool { return a.tried() > tried })
	require.Empty(t, got, "it waits")
	a.refuse(nil)
	b.metadata = " anew"
	require.NoError(t, e.Publish(bg, b))
	require.NoError(t, <-got)
}
