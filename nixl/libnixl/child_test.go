//go:build linux

package libnixl

import (
	"bytes"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/nixl"
	"github.com/kvgate/kvgate/nixl/exchange"
	"github.com/kvgate/kvgate/nixl/nixltest"
)

// Tests run what may crash, hang or has to be killed in a child: this very
// program with a role in its environment.
const (
	childVariable = "KVGATE_TEST_CHILD"
	pathVariable  = "KVGATE_TEST_LIBRARY"
	nameVariable  = "KVGATE_TEST_NAME"
)

// childMemory is where a child has the memory that it shares: where neither
// programs, libraries nor the race detector have anything.
const childMemory = 0x6000_0000_0000

// patience is how long tests wait for what has to come.
const patience = 20 * time.Second

// roles are what a child can be; each file of tests adds its own.
var roles = map[string]func() error{"serve": serve}

func runChild(role string) int {
	fn := roles[role]
	if fn == nil {
		fmt.Fprintln(os.Stderr, "no role", role)
		return 2
	}
	// A child never outlives its parent, nor a hang in the library.
	_ = unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
	if err := fn(); err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", role, err)
		return 1
	}
	return 0
}

// childLibrary opens the library in a child.
func childLibrary() (*Library, error) { return OpenWithOptions(Options{Path: os.Getenv(pathVariable)}) }

// command returns the command of a child. It is killed at the end of the test.
func command(t testing.TB, role string, env ...string) *exec.Cmd {
	exe, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(exe)
	c.Env = append(os.Environ(), append([]string{childVariable + "=" + role, pathVariable + "=" + library(t).Path()}, env...)...)
	t.Cleanup(func() {
		if c.Process != nil && c.ProcessState == nil {
			_ = c.Process.Kill()
			_ = c.Wait()
		}
	})
	return c
}

// finish runs a child to its end and returns what it printed and how it ended.
// One that takes longer than the limit is killed and fails the test.
func finish(t testing.TB, c *exec.Cmd, limit time.Duration) (string, error) {
	t.Helper()
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	err := reap(t, c, limit, &out)
	return out.String(), err
}

func reap(t testing.TB, c *exec.Cmd, limit time.Duration, out fmt.Stringer) error {
	t.Helper()
	ended := make(chan error, 1)
	go func() { ended <- c.Wait() }()
	clk := clock.Wall()
	done := clock.Func("child", func() bool { return len(ended) > 0 })
	if clk.WaitUntil(context.Background(), done, limit) != nil {
		_ = c.Process.Signal(syscall.SIGQUIT)
		_ = clk.WaitUntil(context.Background(), done, limit+2*time.Second)
		_ = c.Process.Kill()
		<-ended
		t.Fatalf("child %s did not end in %v:\n%s", c.Args, limit, out)
	}
	return <-ended
}

// request and reply are what parent and child say to each other.
type request struct {
	Op      string
	Memory  nixl.MemoryType
	Regions []nixl.Descriptor
	Blob    []byte
	Peer    nixl.Peer
	Spec    nixl.Spec
	ID      int
	Name    string
}

type reply struct {
	Err      *remoteError
	ID       int
	Blob     []byte
	Peer     nixl.Peer
	Messages []nixl.Notification
	Status   nixl.Status
	Poisoned []nixl.Region
}

// remoteError is an error of the binding on its way between processes.
type remoteError struct {
	Op, Peer, Detail string
	Cause            int // index in causes, or -1
	NeverHanded      bool
	Over             bool
}

var causes = []error{
	nixl.ErrUnavailable, nixl.ErrInvalid, nixl.ErrNotRegistered, nixl.ErrNoPeer, nixl.ErrStalePeer, nixl.ErrBusy,
	nixl.ErrPoisoned, nixl.ErrNotPosted, nixl.ErrDisconnected, nixl.ErrBackend, nixl.ErrCanceled, nixl.ErrClosed,
}

func packed(err error) *remoteError {
	if err == nil {
		return nil
	}
	r := &remoteError{Detail: err.Error(), Cause: slices.IndexFunc(causes, func(c error) bool { return errors.Is(err, c) })}
	if e := (*nixl.Error)(nil); errors.As(err, &e) {
		r.Op, r.Peer, r.Detail, r.NeverHanded, r.Over = e.Op, e.Peer, e.Detail, e.NeverHanded, e.Over
	}
	return r
}

func (r *remoteError) unpacked() error {
	switch {
	case r == nil:
		return nil
	case r.Cause < 0:
		return errors.New(r.Detail)
	}
	return &nixl.Error{Op: r.Op, Peer: r.Peer, Detail: r.Detail, Err: causes[r.Cause], NeverHanded: r.NeverHanded, Over: r.Over}
}

// serve is a child with one agent, which does what it is asked.
func serve() error {
	l, err := childLibrary()
	if err != nil {
		return err
	}
	a, err := l.NewAgent(context.Background(), os.Getenv(nameVariable), Config{})
	if err != nil {
		return err
	}
	st := unix.Stat_t{}
	if err := unix.Fstat(3, &st); err != nil {
		return err
	}
	// At one address in every life, so that a restart changes nothing of it.
	at, err := unix.MmapPtr(3, 0, unsafe.Add(nil, childMemory), uintptr(st.Size), unix.PROT_READ|unix.PROT_WRITE,
		unix.MAP_SHARED|unix.MAP_FIXED_NOREPLACE)
	if err != nil {
		return err
	}
	s := &server{a: a, mem: bufferOf(unsafe.Slice((*byte)(at), int(st.Size))), registrations: map[int]nixl.Registration{}, transfers: map[int]nixl.Transfer{}}
	in, out := gob.NewDecoder(os.Stdin), gob.NewEncoder(os.Stdout)
	for {
		var q request
		if err := in.Decode(&q); err == io.EOF {
			return nil
		} else if err != nil {
			return err
		}
		var r reply
		r.Err = packed(s.answer(&q, &r))
		if err := out.Encode(&r); err != nil {
			return err
		}
	}
}

type server struct {
	a             *Agent
	mem           nixltest.Buffer
	registrations map[int]nixl.Registration
	transfers     map[int]nixl.Transfer
	next          int
}

func (s *server) answer(q *request, r *reply) (err error) {
	switch q.Op {
	case "hello":
	case "register":
		var reg nixl.Registration
		if reg, err = s.a.Register(q.Memory, q.Regions); err == nil {
			s.next++
			r.ID = s.next
			s.registrations[r.ID] = reg
		}
	case "deregister":
		err = s.registrations[q.ID].Close()
	case "metadata":
		r.Blob, err = s.a.Metadata()
	case "add":
		r.Peer, err = s.a.AddPeer(q.Blob)
	case "remove":
		err = s.a.RemovePeer(q.Peer)
	case "notify":
		err = s.a.Notify(q.Peer, q.Blob)
	case "notifications":
		r.Messages, err = s.a.Notifications(nil)
	case "transfer":
		var x nixl.Transfer
		if x, err = s.a.NewTransfer(q.Spec); err == nil {
			s.next++
			r.ID = s.next
			s.transfers[r.ID] = x
		}
	case "post":
		err = s.transfers[q.ID].Post()
	case "post short of memory":
		err = shortOfMemory(s.transfers[q.ID].Post)
	case "poisoned":
		r.Poisoned = s.a.Poisoned()
	case "recover":
		err = s.a.Recover(q.Peer)
	case "status":
		r.Status, err = s.transfers[q.ID].Status()
	case "cancel":
		s.transfers[q.ID].Cancel()
	case "release":
		err = s.transfers[q.ID].Close()
	case "publish", "withdraw", "fetch":
		var e *exchange.Etcd
		if e, err = exchange.NewEtcd(s.a.Clock(), "", ""); err != nil {
			return err
		}
		defer e.Close()
		switch ctx := context.Background(); q.Op {
		case "publish":
			err = e.Publish(ctx, s.a)
		case "withdraw":
			err = e.Withdraw(ctx, s.a.Name())
		default:
			r.Peer, err = e.Fetch(ctx, s.a, q.Name, s.a.Clock().Now()+patience/2)
		}
	case "close":
		err = s.a.Close()
	default:
		err = fmt.Errorf("no operation %q", q.Op)
	}
	return err
}

// peer is an agent in a child, as the parent sees it.
type peer struct {
	t    testing.TB
	name string
	file *os.File
	env  []string
	clk  clock.Clock
	// paused: the child runs only while it is asked something.
	paused bool

	mu         sync.Mutex
	cmd        *exec.Cmd
	out        *gob.Encoder
	in         *gob.Decoder
	registered []request
	dead       bool // the child was killed
}

var _ nixl.Agent = (*peer)(nil)

// newPeer starts a child with an agent that shares the memory in file, which it
// has at childMemory.
func newPeer(t testing.TB, name string, file *os.File, env ...string) *peer {
	t.Helper()
	p := &peer{t: t, name: name, file: file, env: append(env, nameVariable+"="+name), clk: clock.Wall()}
	p.start()
	return p
}

func (p *peer) start() {
	p.t.Helper()
	p.cmd = command(p.t, "serve", p.env...)
	p.cmd.Stderr = os.Stderr
	p.cmd.ExtraFiles = []*os.File{p.file}
	stdin, err := p.cmd.StdinPipe()
	require.NoError(p.t, err)
	stdout, err := p.cmd.StdoutPipe()
	require.NoError(p.t, err)
	require.NoError(p.t, p.cmd.Start())
	p.out, p.in, p.dead = gob.NewEncoder(stdin), gob.NewDecoder(stdout), false
	_, err = p.ask(&request{Op: "hello"})
	require.NoError(p.t, err)
}

// again starts the next life of a child that was killed, with the same memory
// registered; it runs freely.
func (p *peer) again() {
	p.t.Helper()
	p.paused = false
	p.start()
	for _, q := range p.registered {
		_, err := p.ask(&q)
		require.NoError(p.t, err)
	}
}

// memory is shared with children. It returns the parent's view of it.
func memory(t testing.TB, n int) (*os.File, []byte) {
	fd, err := unix.MemfdCreate("kvgate-test", 0)
	require.NoError(t, err)
	f := os.NewFile(uintptr(fd), "memfd")
	require.NoError(t, f.Truncate(int64(n)))
	b, err := unix.Mmap(fd, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, unix.Munmap(b))
		require.NoError(t, f.Close())
	})
	return f, b
}

func (p *peer) ask(q *request) (*reply, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil, nixl.Refuse(q.Op, p.name, nixl.ErrClosed, "the process was killed")
	}
	p.signal(syscall.SIGCONT)
	type answer struct {
		r   reply
		err error
	}
	got := make(chan answer, 1)
	go func() {
		var a answer
		if a.err = p.out.Encode(q); a.err == nil {
			a.err = p.in.Decode(&a.r)
		}
		got <- a
	}()
	done := clock.Func("answer", func() bool { return len(got) > 0 })
	if p.clk.WaitUntil(context.Background(), done, p.clk.Now()+patience) != nil {
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
		runtime.Gosched()
		<-got
		return nil, fmt.Errorf("child %s did not answer %q", p.name, q.Op)
	}
	a := <-got
	p.signal(syscall.SIGSTOP)
	if a.err != nil {
		return nil, fmt.Errorf("child %s: %q: %w", p.name, q.Op, a.err)
	}
	return &a.r, a.r.Err.unpacked()
}

func (p *peer) signal(s syscall.Signal) {
	if p.paused {
		_ = p.cmd.Process.Signal(s)
	}
}

// halt stops the child and returns when all of its threads stand still.
func (p *peer) halt() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGSTOP))
	require.NoError(p.t, unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED, nil))
}

func (p *peer) goOn() {
	p.t.Helper()
	require.NoError(p.t, p.cmd.Process.Signal(syscall.SIGCONT))
}

// kill ends the child as a crash would.
func (p *peer) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.dead = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

func (p *peer) Name() string     { return p.name }
func (p *peer) Activity() uint64 { return uint64(p.clk.Now() / time.Millisecond) }

func (p *peer) Register(m nixl.MemoryType, regions []nixl.Descriptor) (nixl.Registration, error) {
	q := request{Op: "register", Memory: m, Regions: regions}
	r, err := p.ask(&q)
	if err != nil {
		return nil, err
	}
	p.registered = append(p.registered, q)
	return &peerRegistration{p, r.ID, slices.Clone(regions)}, nil
}

type peerRegistration struct {
	p       *peer
	id      int
	regions []nixl.Descriptor
}

func (r *peerRegistration) Regions() []nixl.Descriptor { return r.regions }
func (r *peerRegistration) Close() error {
	_, err := r.p.ask(&request{Op: "deregister", ID: r.id})
	return err
}

func (p *peer) Metadata() ([]byte, error) {
	r, err := p.ask(&request{Op: "metadata"})
	if err != nil {
		return nil, err
	}
	return r.Blob, nil
}

func (p *peer) AddPeer(metadata []byte) (nixl.Peer, error) {
	r, err := p.ask(&request{Op: "add", Blob: metadata})
	if err != nil {
		return nixl.Peer{}, err
	}
	return r.Peer, nil
}

func (p *peer) RemovePeer(q nixl.Peer) error {
	_, err := p.ask(&request{Op: "remove", Peer: q})
	return err
}

func (p *peer) Notify(q nixl.Peer, message []byte) error {
	_, err := p.ask(&request{Op: "notify", Peer: q, Blob: message})
	return err
}

func (p *peer) Notifications(dst []nixl.Notification) ([]nixl.Notification, error) {
	r, err := p.ask(&request{Op: "notifications"})
	if err != nil {
		return dst, err
	}
	return append(dst, r.Messages...), nil
}

func (p *peer) NewTransfer(s nixl.Spec) (nixl.Transfer, error) {
	r, err := p.ask(&request{Op: "transfer", Spec: s})
	if err != nil {
		return nil, err
	}
	return &peerTransfer{p, r.ID, s.Clone()}, nil
}

type peerTransfer struct {
	p    *peer
	id   int
	spec nixl.Spec
}

func (t *peerTransfer) Spec() *nixl.Spec { return &t.spec }
func (t *peerTransfer) Post() error {
	_, err := t.p.ask(&request{Op: "post", ID: t.id})
	return err
}

func (t *peerTransfer) Status() (nixl.Status, error) {
	r, err := t.p.ask(&request{Op: "status", ID: t.id})
	if r == nil {
		return nixl.Failed, err
	}
	return r.Status, err
}

func (t *peerTransfer) Cancel() {
	if _, err := t.p.ask(&request{Op: "cancel", ID: t.id}); err != nil {
		t.p.t.Error(err)
	}
}

func (t *peerTransfer) Close() error {
	_, err := t.p.ask(&request{Op: "release", ID: t.id})
	return err
}

func (p *peer) Close() error {
	if p.dead {
		return nil
	}
	_, err := p.ask(&request{Op: "close"})
	return err
}
