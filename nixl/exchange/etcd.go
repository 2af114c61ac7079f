package exchange

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
)

// The environment that says where agents exchange metadata through etcd, here and
// in the NIXL library.
const (
	EtcdVariable          = "NIXL_ETCD_ENDPOINTS" // servers, with commas between them
	EtcdNamespaceVariable = "NIXL_ETCD_NAMESPACE" // what keys begin with
)

// As the library has them (src/core/nixl_etcd_metadata_backend.cpp).
const (
	etcdNamespace = "/nixl/agents/"
	wholeLabel    = "metadata" // of what describes a whole agent
)

// Etcd exchanges metadata through etcd's JSON gateway (etcd 3.4 and later, under
// /v3).
type Etcd struct {
	clk     clock.Clock
	servers []string
	space   string
	http    *http.Client
	first   atomic.Int64 // the server that answered last

	mu sync.Mutex
	// dead are values whose agents can not be met, as one leaves them that was
	// killed, by key. A value is not tried again until another one is published.
	dead map[string]leftover
}

type leftover struct {
	changed int64 // the value's revision
	err     error
}

// NewEtcd returns a way through these servers, with commas between them; empty:
// those that [EtcdVariable] names. The namespace is what keys begin with; empty:
// that of [EtcdNamespaceVariable], or the library's own. It connects to nobody yet.
// Without servers, and with ones that are not like http://host:2379, the error is a
// [nixl.ErrInvalid].
func NewEtcd(clk clock.Clock, servers, namespace string) (*Etcd, error) {
	const op = "new etcd client"
	if servers == "" {
		servers = os.Getenv(EtcdVariable)
	}
	if namespace == "" {
		namespace = os.Getenv(EtcdNamespaceVariable)
	}
	if namespace == "" {
		namespace = etcdNamespace
	}
	c := &Etcd{clk: clk, space: namespace, dead: map[string]leftover{}, http: &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
		IdleConnTimeout: time.Minute,
	}}}
	for _, s := range strings.FieldsFunc(servers, func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
		if !strings.Contains(s, "://") {
			s = "http://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
			return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "etcd server %q is not like http://host:2379", s)
		}
		c.servers = append(c.servers, u.Scheme+"://"+u.Host)
	}
	if len(c.servers) == 0 {
		return nil, nixl.Refuse(op, "", nixl.ErrInvalid, "no etcd servers in %q (%s)", servers, EtcdVariable)
	}
	return c, nil
}

const dialTimeout = 3 * time.Second

func (c *Etcd) key(agent, label string) string { return c.space + "/" + agent + "/" + label }

// Publish makes the agent's metadata, as it is now, known to all who look into
// etcd. An agent of the library looks in the same way.
//
// Without an answer within five seconds it fails, as when etcd is away or says no,
// with [nixl.ErrUnavailable]; ctx ends it earlier.
func (c *Etcd) Publish(ctx context.Context, a nixl.Agent) error {
	metadata, err := a.Metadata()
	if err != nil {
		return err
	}
	return once(ctx, c.clk, "publish", func(ctx context.Context) error { return c.put(ctx, a.Name(), metadata) })
}

// Withdraw takes back what an agent of that name published, so that nobody finds
// it any more; agents of the library that have it forget it. Errors are as for
// Publish.
func (c *Etcd) Withdraw(ctx context.Context, name string) error {
	return once(ctx, c.clk, "withdraw", func(ctx context.Context) error { return c.remove(ctx, name) })
}

// Fetch makes a peer known to the agent by what it published: it looks until there
// is something, ctx is done or the deadline has come. Of an agent that was killed
// etcd keeps what it published: when it can not be met any more that is not the
// end, Fetch waits for what is published next. What it finds goes through the
// agent's AddPeer, whose errors it returns; of what is damaged,
// [nixl.ErrInvalid] with the key that it came from.
//
// When the wait is over the error is an [nixl.ErrNoPeer], and the end of ctx or
// a [context.DeadlineExceeded], too; it says why, where etcd was away.
func (c *Etcd) Fetch(ctx context.Context, a nixl.Agent, name string, deadline time.Duration) (nixl.Peer, error) {
	return fetch(ctx, c.clk, a, name, deadline, func(ctx context.Context, op string) (nixl.Peer, error) {
		return c.look(ctx, a, op, name)
	})
}

func (c *Etcd) look(ctx context.Context, a nixl.Agent, op, name string) (nixl.Peer, error) {
	key := c.key(name, wholeLabel)
	kv, err := c.get(ctx, key)
	switch {
	case errors.Is(err, errTooLong):
		return nixl.Peer{}, nixl.Refuse(op, name, nixl.ErrInvalid, "etcd key %s: %v", key, err)
	case err != nil:
		return nixl.Peer{}, notYet{err}
	case kv == nil:
		return nixl.Peer{}, notYet{fmt.Errorf("nothing is published in etcd as %s", key)}
	}
	c.mu.Lock()
	dead, tried := c.dead[key]
	c.mu.Unlock()
	if tried && dead.changed == kv.Changed {
		return nixl.Peer{}, notYet{dead.err}
	}
	p, err := take(ctx, a, op, name, "etcd key "+key, kv.Value)
	if unmet(err) && ctx.Err() == nil {
		if !errors.Is(err, nixl.ErrUnavailable) { // which may answer yet
			c.mu.Lock()
			c.dead[key] = leftover{kv.Changed, err}
			c.mu.Unlock()
		}
		return nixl.Peer{}, notYet{err}
	}
	return p, err
}

// unmet reports whether an error of AddPeer is of well-formed metadata of an agent
// that is gone, or does not answer.
func unmet(err error) bool {
	for _, cause := range []error{nixl.ErrStalePeer, nixl.ErrBackend, nixl.ErrDisconnected, nixl.ErrUnavailable} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}

// Messages of the gateway: keys and values in base64, numbers as strings.
type (
	etcdRange struct {
		Key []byte `json:"key"`
	}
	etcdPut struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	etcdKV struct {
		Key     []byte `json:"key"`
		Value   []byte `json:"value"`
		Changed int64  `json:"mod_revision,string"`
	}
)

// get returns what is at a key, nil where there is nothing.
func (c *Etcd) get(ctx context.Context, key string) (*etcdKV, error) {
	var r struct {
		KVs []etcdKV `json:"kvs"`
	}
	if err := c.call(ctx, "kv/range", etcdRange{Key: []byte(key)}, &r); err != nil {
		return nil, err
	}
	if len(r.KVs) == 0 {
		return nil, nil
	}
	if string(r.KVs[0].Key) != key {
		return nil, fmt.Errorf("etcd answers with another key, %q", r.KVs[0].Key)
	}
	return &r.KVs[0], nil
}

// put stores what an agent publishes, and where it is not there yet the empty
// value under the bare name, which agents of the library watch.
func (c *Etcd) put(ctx context.Context, agent string, value []byte) error {
	type compare struct {
		Result  string `json:"result"`
		Target  string `json:"target"`
		Key     []byte `json:"key"`
		Created int64  `json:"create_revision,string"`
	}
	type op struct {
		Put etcdPut `json:"request_put"`
	}
	name, store := []byte(c.key(agent, "")), op{etcdPut{[]byte(c.key(agent, wholeLabel)), value}}
	return c.call(ctx, "kv/txn", struct {
		Compare []compare `json:"compare"`
		Success []op      `json:"success"`
		Failure []op      `json:"failure"`
	}{[]compare{{"EQUAL", "CREATE", name, 0}}, []op{{etcdPut{name, nil}}, store}, []op{store}}, &struct{}{})
}

// remove deletes what put stored. What others look for goes first.
func (c *Etcd) remove(ctx context.Context, agent string) error {
	type op struct {
		Delete etcdRange `json:"request_delete_range"`
	}
	return c.call(ctx, "kv/txn", struct {
		Success []op `json:"success"`
	}{[]op{{etcdRange{[]byte(c.key(agent, wholeLabel))}}, {etcdRange{[]byte(c.key(agent, ""))}}}}, &struct{}{})
}

// call asks each server until one answers.
func (c *Etcd) call(ctx context.Context, method string, ask, answer any) error {
	r, err := c.open(ctx, method, ask)
	if err != nil {
		return err
	}
	defer r.Close()
	b, err := io.ReadAll(io.LimitReader(r, maxAnswer+1))
	switch {
	case err != nil:
		return fmt.Errorf("etcd %s: %w", method, err)
	case len(b) > maxAnswer:
		return errTooLong
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return fmt.Errorf("etcd %s: answer: %w", method, err)
	}
	return nil
}

// maxAnswer is an answer with one value of maxMetadata in base64.
const maxAnswer = maxMetadata/3*4 + 1<<16

// open returns the body of the answer of the first server that is there.
func (c *Etcd) open(ctx context.Context, method string, ask any) (io.ReadCloser, error) {
	body, err := json.Marshal(ask)
	if err != nil {
		return nil, err
	}
	var away []error
	first := int(c.first.Load())
	for i := range c.servers {
		k := (first + i) % len(c.servers)
		q, err := http.NewRequestWithContext(ctx, http.MethodPost, c.servers[k]+"/v3/"+method, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		q.Header.Set("Content-Type", "application/json")
		r, err := c.http.Do(q)
		if err == nil && r.StatusCode == http.StatusOK {
			c.first.Store(int64(k))
			return r.Body, nil
		}
		if err == nil {
			err = refusedBy(r)
			if r.StatusCode < 500 {
				return nil, fmt.Errorf("etcd %s: %w", method, err)
			}
		}
		if ctx.Err() != nil {
			return nil, fmt.Errorf("etcd %s: %w", method, context.Cause(ctx))
		}
		away = append(away, err)
	}
	return nil, fmt.Errorf("etcd %s: %w", method, errors.Join(away...))
}

// refusedBy is what a server said in place of an answer.
func refusedBy(r *http.Response) error {
	defer r.Body.Close()
	var m struct {
		Error, Message string
	}
	b, _ := io.ReadAll(io.LimitReader(r.Body, 1<<12)) // what there is of it
	if json.Unmarshal(b, &m) == nil && m.Error+m.Message != "" {
		if m.Message == "" {
			m.Message = m.Error
		}
		return fmt.Errorf("%s: %s", r.Status, m.Message)
	}
	return errors.New(r.Status)
}

// Close lets go of the connections to etcd. It does not withdraw anything.
func (c *Etcd) Close() { c.http.CloseIdleConnections() }
