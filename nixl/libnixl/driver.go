package libnixl

import (
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/nixl"
)

// handle is an object of the library.
type handle = unsafe.Pointer

// status is what the functions of the C ABI return.
type status int32

// The codes of the C ABI. Several errors of the library arrive as
// statusBackend; see classify.
const (
	statusOK         status = 0
	statusInProgress status = 1
	statusInvalid    status = -1
	statusBackend    status = -2
	statusState      status = -3
	statusException  status = -4
	statusNotFound   status = -6
	statusNoMemory   status = -1000 // of this package
)

func (s status) String() string {
	switch s {
	case statusOK:
		return "ok"
	case statusInProgress:
		return "in progress"
	case statusInvalid:
		return "invalid parameter"
	case statusBackend:
		return "backend error"
	case statusState:
		return "invalid state"
	case statusException:
		return "exception"
	case statusNotFound:
		return "not found"
	case statusNoMemory:
		return "out of memory"
	}
	return "unknown status"
}

// driver is the library as the rest of this package calls it: one crossing a
// method. The error of a method is about the call itself, such as a missing
// symbol; what the library said is the status. Tests put one of their own
// behind it.
type driver interface {
	pluginParams(agent handle, plugin string) (pluginInfo, status, error)

	createAgent(name string, c *agentConfig) (handle, status, error)
	destroyAgent(agent handle) (status, error)
	createBackend(agent handle, plugin string, params map[string]string) (handle, status, error)
	backendParams(agent, backend handle) (pluginInfo, status, error)
	destroyBackend(backend handle) (status, error)

	register(agent handle, m nixl.MemoryType, regions []nixl.Descriptor) (status, error)
	deregister(agent handle, m nixl.MemoryType, regions []nixl.Descriptor) (status, error)

	metadata(agent handle) ([]byte, status, error)
	partialMetadata(agent handle, m nixl.MemoryType, regions []nixl.Descriptor) ([]byte, status, error)
	load(agent handle, blob []byte) (string, status, error)
	invalidate(agent handle, peer string) (status, error)
	check(agent handle, peer string, m nixl.MemoryType, regions []nixl.Descriptor) (status, error)
	connect(agent handle, peer string) (status, error)

	prepare(agent handle, peer string, m nixl.MemoryType, d []nixl.Descriptor) (handle, status, error)
	releaseList(agent, list handle) (status, error)
	make(agent handle, op nixl.Op, local handle, localIdx []int32, remote handle, remoteIdx []int32) (handle, status, error)
	// peer is the name of s.Peer with a zero byte behind it.
	create(agent handle, s *nixl.Spec, peer []byte) (handle, status, error)
	post(agent, req handle) (status, error)
	poll(agent, req handle) (status, error)
	release(agent, req handle) (status, error)
	backendOf(agent, req handle, backends []handle) (int, status, error)

	notify(agent handle, peer string, message []byte) (status, error)
	notifications(agent handle, dst []nixl.Notification) ([]nixl.Notification, status, error)

	// guard runs fn and puts signal handlers back that fn changed.
	guard(fn func()) (restored []int)
}

// agentConfig is the part of Config that the library gets.
type agentConfig struct {
	progress      bool
	sync          ThreadSync
	progressDelay time.Duration
}

// pluginInfo is what a plugin, or a backend made from it, says of itself.
type pluginInfo struct {
	memories []nixl.MemoryType // what it can transfer
	params   map[string]string // its parameters, with their values
}
