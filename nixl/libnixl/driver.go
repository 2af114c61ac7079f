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
	statusOK          status = 0
	statusInProgress  status = 1
	statusInvalid     status = -1
	statusBackend     status = -2
	statusState       status = -3
	statusException   status = -4
	statusNoTelemetry status = -5
	statusNotFound    status = -6
	statusNoMemory    status = -1000 // of this package
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
	case statusNoTelemetry:
		return "no telemetry"
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
	plugins(agent handle) ([]string, status, error)
	pluginParams(agent handle, plugin string) (PluginInfo, status, error)

	createAgent(name string, c *agentConfig) (handle, status, error)
	destroyAgent(agent handle) (status, error)
	createBackend(agent handle, plugin string, params map[string]string) (handle, status, error)
	backendParams(agent, backend handle) (PluginInfo, status, error)
	destroyBackend(backend handle) (status, error)

	options(o *callOptions) (handle, status, error)
	freeOptions(opt handle)

	register(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) (status, error)
	deregister(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) (status, error)
	query(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) ([]map[string]string, status, error)

	metadata(agent handle) ([]byte, status, error)
	partialMetadata(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, opt handle) ([]byte, status, error)
	load(agent handle, blob []byte) (string, status, error)
	invalidate(agent handle, peer string) (status, error)
	check(agent handle, peer string, m nixl.MemoryType, regions []nixl.Descriptor) (status, error)
	connect(agent handle, peer string, opt handle) (status, error)

	prepare(agent handle, peer string, m nixl.MemoryType, d []nixl.Descriptor, opt handle) (handle, status, error)
	releaseList(agent, list handle) (status, error)
	make(agent handle, op nixl.Op, local handle, localIdx []int32, remote handle, remoteIdx []int32, opt handle) (handle, status, error)
	// peer is the name of s.Peer with a zero byte behind it.
	create(agent handle, s *nixl.Spec, peer []byte, opt handle) (handle, status, error)
	post(agent, req handle) (status, error)
	poll(agent, req handle) (status, error)
	release(agent, req handle) (status, error)
	cost(agent, req handle) (Cost, status, error)
	telemetry(agent, req handle) (Telemetry, status, error)
	backendOf(agent, req handle, backends []handle) (int, status, error)

	notify(agent handle, peer string, message []byte) (status, error)
	notifications(agent handle, dst []nixl.Notification) ([]nixl.Notification, status, error)

	viewLocal(agent handle, m nixl.MemoryType, d []nixl.Descriptor, opt handle) (handle, status, error)
	viewRemote(agent handle, m nixl.MemoryType, d []RemoteDescriptor, opt handle) (handle, status, error)
	releaseView(agent, view handle) (status, error)

	// guard runs fn and puts signal handlers back that fn changed.
	guard(fn func()) (restored []int)
}

// agentConfig is the part of Config that the library gets.
type agentConfig struct {
	progress, telemetry bool
	sync                ThreadSync
	progressDelay       time.Duration
}

// callOptions are the options of one call; the zero value means none.
type callOptions struct {
	backends  []handle
	notify    bool
	message   []byte
	custom    []byte
	skipMerge bool
}

func (o *callOptions) none() bool {
	return len(o.backends) == 0 && !o.notify && len(o.custom) == 0 && !o.skipMerge
}

// PluginInfo is what a plugin, or a backend made from it, says of itself.
type PluginInfo struct {
	Memories []nixl.MemoryType // what it can transfer
	Params   map[string]string // its parameters, with their values
}

// Cost is an estimate of how long a transfer takes.
type Cost struct {
	Duration, Margin time.Duration
}

// Telemetry is what the library measured of a transfer that is done. Start is
// an instant of its steady clock.
type Telemetry struct {
	Start, Post, Transfer time.Duration
	Bytes                 uint64
	Descriptors           int
}

// RemoteDescriptor is memory of a peer, for a remote [View]. Without a peer it
// stands for a place that is left out.
type RemoteDescriptor struct {
	nixl.Descriptor
	Peer string
}
