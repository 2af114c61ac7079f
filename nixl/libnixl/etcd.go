package libnixl

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
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// The environment that says where the library, and this binding, exchange
// metadata through etcd. It is read when an agent is made.
const (
	EtcdVariable          = "NIXL_ETCD_ENDPOINTS" // servers, with commas between them
	EtcdNamespaceVariable = "NIXL_ETCD_NAMESPACE" // what keys begin with
)

const (
	// As the library has them (src/core/nixl_etcd_metadata_backend.cpp).
	etcdNamespace = "/nixl/agents/"
	wholeLabel    = "metadata" // of what describes a whole agent

	// maxMetadata bounds what is read from etcd or a socket. etcd itself takes
	// 1.5 MiB at most unless told otherwise, which is a few thousand regions.
	maxMetadata = 64 << 20
)

// etcdClient talks to etcd's JSON gateway (etcd 3.4 and later, under /v3). It is
// used in place of the library's own client, which hands values to UCX unread.
type etcdClient struct {
	servers []string
	space   string
	http    *http.Client
	first   atomic.Int64 // the server that answered last
}

// newEtcdClient returns nil where no servers are given.
func newEtcdClient(servers, namespace string) (*etcdClient, error) {
	if servers == "" {
		servers = os.Getenv(EtcdVariable)
	}
	if servers == "" {
		return nil, nil
	}
	if namespace == "" {
		namespace = os.Getenv(EtcdNamespaceVariable)
	}
	if namespace == "" {
		namespace = etcdNamespace
	}
	c := &etcdClient{space: namespace, http: &http.Client{Transport: &http.Transport{
		DialContext:     (&net.Dialer{Timeout: dialTimeout}).DialContext,
		IdleConnTimeout: time.Minute,
	}}}
	for _, s := range strings.FieldsFunc(servers, func(r rune) bool { return strings.ContainsRune(",; ", r) }) {
		if !strings.Contains(s, "://") {
			s = "http://" + s
		}
		u, err := url.Parse(s)
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || strings.Trim(u.Path, "/") != "" {
			return nil, fmt.Errorf("etcd server %q is not like http://host:2379", s)
		}
		c.servers = append(c.servers, u.Scheme+"://"+u.Host)
	}
	if len(c.servers) == 0 {
		return nil, fmt.Errorf("no etcd servers in %q", servers)
	}
	return c, nil
}

const dialTimeout = 3 * time.Second

func (c *etcdClient) key(agent, label string) string { return c.space + "/" + agent + "/" + label }

// owner is the inverse of key.
func (c *etcdClient) owner(key string) (agent, label string, ok bool) {
	rest, ok := strings.CutPrefix(key, c.space+"/")
	i := strings.LastIndexByte(rest, '/')
	if !ok || i < 0 {
		return "", "", false
	}
	return rest[:i], rest[i+1:], true
}

// after is the end of the range of keys that begin with prefix.
func after(prefix string) []byte {
	b := []byte(prefix)
	b[len(b)-1]++ // a slash, always
	return b
}

// Messages of the gateway: keys and values in base64, numbers as strings.
type (
	etcdRange struct {
		Key      []byte `json:"key"`
		RangeEnd []byte `json:"range_end,omitempty"`
		KeysOnly bool   `json:"keys_only,omitempty"`
	}
	etcdPut struct {
		Key   []byte `json:"key"`
		Value []byte `json:"value"`
	}
	etcdHeader struct {
		Revision int64 `json:"revision,string"`
	}
	etcdKV struct {
		Key     []byte `json:"key"`
		Value   []byte `json:"value"`
		Created int64  `json:"create_revision,string"`
		Changed int64  `json:"mod_revision,string"`
	}
)

// get returns what is at a key, nil where there is nothing, and the revision of
// the store.
func (c *etcdClient) get(ctx context.Context, key string, keysOnly bool) (*etcdKV, int64, error) {
	var r struct {
		Header etcdHeader `json:"header"`
		KVs    []etcdKV   `json:"kvs"`
	}
	if err := c.call(ctx, "kv/range", etcdRange{Key: []byte(key), KeysOnly: keysOnly}, &r); err != nil {
		return nil, 0, err
	}
	if len(r.KVs) == 0 {
		return nil, r.Header.Revision, nil
	}
	if string(r.KVs[0].Key) != key {
		return nil, 0, fmt.Errorf("etcd answers with another key, %q", r.KVs[0].Key)
	}
	return &r.KVs[0], r.Header.Revision, nil
}

// put stores what an agent publishes, and where it is not there yet the empty
// value under the bare name, which agents of the library watch.
func (c *etcdClient) put(ctx context.Context, agent, label string, value []byte) error {
	type compare struct {
		Result  string `json:"result"`
		Target  string `json:"target"`
		Key     []byte `json:"key"`
		Created int64  `json:"create_revision,string"`
	}
	type op struct {
		Put etcdPut `json:"request_put"`
	}
	name, store := []byte(c.key(agent, "")), op{etcdPut{[]byte(c.key(agent, label)), value}}
	return c.call(ctx, "kv/txn", struct {
		Compare []compare `json:"compare"`
		Success []op      `json:"success"`
		Failure []op      `json:"failure"`
	}{[]compare{{"EQUAL", "CREATE", name, 0}}, []op{{etcdPut{name, nil}}, store}, []op{store}}, &struct{}{})
}

// remove deletes everything of an agent: its keys are those with no further slash
// behind its name. Those of an agent whose name goes on behind a slash begin alike.
func (c *etcdClient) remove(ctx context.Context, agent string) error {
	prefix := c.key(agent, "")
	var all struct {
		KVs []etcdKV `json:"kvs"`
	}
	if err := c.call(ctx, "kv/range", etcdRange{Key: []byte(prefix), RangeEnd: after(prefix), KeysOnly: true}, &all); err != nil {
		return err
	}
	type op struct {
		Delete etcdRange `json:"request_delete_range"`
	}
	// What others look for goes first, and at once.
	ops := []op{{etcdRange{Key: []byte(c.key(agent, wholeLabel))}}, {etcdRange{Key: []byte(prefix)}}}
	for _, kv := range all.KVs {
		if owner, label, ok := c.owner(string(kv.Key)); ok && owner == agent && label != "" && label != wholeLabel {
			ops = append(ops, op{etcdRange{Key: kv.Key}})
		}
	}
	for some := range slices.Chunk(ops, maxTxnOps) {
		if err := c.call(ctx, "kv/txn", struct {
			Success []op `json:"success"`
		}{some}, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

// maxTxnOps is what etcd takes in one transaction unless told otherwise
// (--max-txn-ops).
const maxTxnOps = 128

// call asks each server until one answers.
func (c *etcdClient) call(ctx context.Context, method string, ask, answer any) error {
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

var errTooLong = fmt.Errorf("more than %d MiB", maxMetadata>>20)

// open returns the body of the answer of the first server that is there.
func (c *etcdClient) open(ctx context.Context, method string, ask any) (io.ReadCloser, error) {
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

func (c *etcdClient) close() { c.http.CloseIdleConnections() }
