package libnixl

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/kvgate/kvgate/nixl"
)

// withdrawals watches etcd for peers that leave, which an agent shows by
// deleting its keys. It runs from the first fetch to the end of the agent.
type withdrawals struct {
	a    *Agent
	etcd *etcdClient

	mu      sync.Mutex
	fetched map[string]fetchedPeer
	stop    context.CancelFunc // nil: not running
	restart context.CancelFunc // ends the stream
	ended   bool
}

// fetchedPeer is a peer as it was when its metadata was read.
type fetchedPeer struct {
	peer     nixl.Peer
	revision int64 // of the store
}

// met notes a peer whose metadata was read at a revision, and makes sure that
// the watch sees it leave from then on.
func (w *withdrawals) met(ctx context.Context, p nixl.Peer, revision int64) {
	w.mu.Lock()
	w.fetched[p.Name] = fetchedPeer{p, revision}
	running := w.stop != nil || w.a.isClosed()
	if !running {
		var ctx context.Context
		ctx, w.stop = context.WithCancel(context.Background())
		w.ended = false
		w.a.clk.Go("watch etcd for "+w.a.name, func() { w.run(ctx) })
	}
	w.mu.Unlock()
	if !running {
		return // it looks at every peer when it begins
	}
	// A watch that ran may have passed the moment already.
	if err := w.look(ctx, p.Name); err != nil {
		w.mu.Lock()
		if w.restart != nil {
			w.restart()
		}
		w.mu.Unlock()
	}
}

// look finds out whether a peer has left since its metadata was read.
func (w *withdrawals) look(ctx context.Context, name string) error {
	kv, at, err := w.etcd.get(ctx, w.etcd.key(name, wholeLabel), true)
	if err != nil {
		return err
	}
	w.mu.Lock()
	f, ok := w.fetched[name]
	w.mu.Unlock()
	if ok && (kv == nil && at >= f.revision || kv != nil && kv.Created > f.revision) {
		w.left(name, at)
	}
	return nil
}

// left makes a peer unknown that left at a revision, unless it was fetched
// again since.
func (w *withdrawals) left(name string, revision int64) {
	w.mu.Lock()
	f, ok := w.fetched[name]
	if !ok || f.revision >= revision {
		w.mu.Unlock()
		return
	}
	delete(w.fetched, name)
	w.mu.Unlock()
	w.a.lost(f.peer)
}

func (w *withdrawals) run(ctx context.Context) {
	for pause := watchSoon; ctx.Err() == nil; pause = min(2*pause, watchLater) {
		one, cancel := context.WithCancel(ctx)
		w.mu.Lock()
		w.restart = cancel
		w.mu.Unlock()
		if w.stream(one) { // until etcd is away; the next one looks up what was missed
			pause = watchSoon
		}
		cancel()
		_ = w.a.clk.Sleep(ctx, pause)
	}
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.a.clk.Notify()
}

const (
	watchSoon  = 50 * time.Millisecond
	watchLater = 2 * time.Second
)

// stream watches for deletions until that fails, and reports whether it had
// begun.
func (w *withdrawals) stream(ctx context.Context) (began bool) {
	_, now, err := w.etcd.get(ctx, w.etcd.key(w.a.name, wholeLabel), true)
	if err != nil {
		return false
	}
	prefix := w.etcd.space + "/"
	type create struct {
		etcdRange
		Start   int64    `json:"start_revision,string"`
		Filters []string `json:"filters"`
	}
	body, err := w.etcd.open(ctx, "watch", struct {
		Create create `json:"create_request"`
	}{create{etcdRange{Key: []byte(prefix), RangeEnd: after(prefix)}, now + 1, []string{"NOPUT"}}})
	if err != nil {
		return false
	}
	defer body.Close()
	w.mu.Lock()
	names := make([]string, 0, len(w.fetched))
	for n := range w.fetched {
		names = append(names, n)
	}
	w.mu.Unlock()
	for _, n := range names {
		if w.look(ctx, n) != nil {
			return false
		}
	}
	for d := json.NewDecoder(body); ; {
		var m struct {
			Result struct {
				Canceled bool `json:"canceled"`
				Events   []struct {
					Type string `json:"type"`
					KV   etcdKV `json:"kv"`
				} `json:"events"`
			} `json:"result"`
			Error json.RawMessage `json:"error"`
		}
		if d.Decode(&m) != nil || m.Result.Canceled || m.Error != nil {
			return began
		}
		began = true
		for _, e := range m.Result.Events {
			name, label, ok := w.etcd.owner(string(e.KV.Key))
			if e.Type == "DELETE" && ok && (label == "" || label == wholeLabel) {
				w.left(name, e.KV.Changed)
			}
		}
	}
}

// close ends the watch and waits for it.
func (w *withdrawals) close() {
	w.mu.Lock()
	stop := w.stop
	w.mu.Unlock()
	if stop == nil {
		return
	}
	stop()
	_ = w.a.clk.WaitUntil(context.Background(), watchEnded{w}, never)
}

type watchEnded struct{ *withdrawals }

func (w watchEnded) Done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.ended
}

func (w watchEnded) String() string { return "the end of the watch of etcd" }
