package conformance

import "maps"

// driverAPI is where the vendor documents the driver.
const driverAPI = "https://docs.nvidia.com/cuda/cuda-driver-api/"

// Own is the page of behaviours that are this module's own: what cuda.Device
// promises beyond CUDA.
const Own = "package cuda, Device"

// pages says where each behaviour is stated.
var pages = map[string]string{
	"device: activity changes when an event fires":       Own,
	"device: is closed once, and dead afterwards":        Own,
	"device: its clock moves on":                         Own,
	"device: says what it is":                            driverAPI + "group__CUDA__DEVICE.html",
	"event: a chain of waits":                            driverAPI + "group__CUDA__STREAM.html",
	"event: a mark that asks for nothing":                Own,
	"event: a wait captures the state at its call":       driverAPI + "group__CUDA__STREAM.html",
	"event: a wait for one never recorded holds nothing": driverAPI + "group__CUDA__STREAM.html",
	"event: a wait holds back nothing before it":         driverAPI + "group__CUDA__STREAM.html",
	"event: a wait in the same stream":                   driverAPI + "group__CUDA__STREAM.html",
	"event: a wait orders two streams":                   driverAPI + "group__CUDA__STREAM.html",
	"event: a word in pinned memory as a mark":           driverAPI + "group__CUDA__MEMOP.html",
	"event: destroyed while pending":                     driverAPI + "group__CUDA__EVENT.html",
	"event: fires when the work before it is over":       driverAPI + "group__CUDA__EVENT.html",
	"event: many marks in one poll":                      driverAPI + "group__CUDA__EVENT.html",
	"event: never recorded counts as done":               driverAPI + "group__CUDA__EVENT.html",
	"event: pending, then fired":                         driverAPI + "group__CUDA__EVENT.html",
	"event: recorded again, the new record counts":       driverAPI + "group__CUDA__EVENT.html",
	"event: recorded in another stream, that one counts": driverAPI + "group__CUDA__EVENT.html",
	"event: recorded twice, the second one counts":       driverAPI + "group__CUDA__EVENT.html",
	"event: unknown handles":                             driverAPI + "group__CUDA__EVENT.html",
	"event: waits of many streams for one event":         driverAPI + "group__CUDA__STREAM.html",
	"ipc: a device is closed with memory open":           Own,
	"ipc: allocations alone are exported":                driverAPI + "group__CUDA__MEM.html",
	"ipc: another process copies, fills and launches":    driverAPI + "group__CUDA__MEM.html",
	"ipc: closing leaves the memory alone":               driverAPI + "group__CUDA__MEM.html",
	"ipc: exported again after being freed":              driverAPI + "group__CUDA__MEM.html",
	"ipc: not opened in the process that exports":        driverAPI + "group__CUDA__MEM.html",
	"ipc: opened twice, closed twice":                    driverAPI + "group__CUDA__MEM.html",
	"ipc: what is no handle":                             driverAPI + "group__CUDA__MEM.html",
	"ipc: what is open can only be closed":               driverAPI + "group__CUDA__MEM.html",
	"ipc: what was not opened is not closed":             driverAPI + "group__CUDA__MEM.html",
	"launch: a function keeps its handle":                driverAPI + "group__CUDA__MODULE.html",
	"launch: a kernel writes what it should":             driverAPI + "group__CUDA__EXEC.html",
	"launch: arguments are taken at the submission":      driverAPI + "group__CUDA__EXEC.html",
	"launch: geometry outside the limits":                driverAPI + "group__CUDA__EXEC.html",
	"launch: kernels of a stream run in order":           driverAPI + "group__CUDA__EXEC.html",
	"launch: more than a stream holds at once":           driverAPI + "group__CUDA__EXEC.html",
	"launch: reads and writes pinned memory":             driverAPI + "group__CUDA__EXEC.html",
	"launch: too few or too many arguments":              driverAPI + "group__CUDA__EXEC.html",
	"launch: unknown functions":                          driverAPI + "group__CUDA__EXEC.html",
	"managed: freeing waits for earlier work":            driverAPI + "group__CUDA__MEM.html",
	"managed: host and device reach it at one address":   driverAPI + "group__CUDA__UNIFIED.html",
	"managed: kernels see what the host wrote before":    driverAPI + "group__CUDA__MEM.html",
	"managed: nothing allocated for no bytes":            driverAPI + "group__CUDA__MEM.html",
	"managed: what is freed is what was allocated":       driverAPI + "group__CUDA__MEM.html",
	"memory: a source is read when the copy runs":        driverAPI + "api-sync-behavior.html",
	"memory: allocations are aligned and disjoint":       driverAPI + "group__CUDA__MEM.html",
	"memory: copies in every direction":                  driverAPI + "group__CUDA__MEM.html",
	"memory: fill with bytes, at any offset and size":    driverAPI + "group__CUDA__MEM.html",
	"memory: fill with half words":                       driverAPI + "group__CUDA__MEM.html",
	"memory: fill with words":                            driverAPI + "group__CUDA__MEM.html",
	"memory: freeing twice or in the middle":             driverAPI + "group__CUDA__MEM.html",
	"memory: freeing waits for earlier work":             driverAPI + "group__CUDA__MEM.html",
	"memory: more than there is":                         driverAPI + "group__CUDA__MEM.html",
	"memory: no bytes is no error":                       driverAPI + "group__CUDA__MEM.html",
	"memory: nothing allocated for no bytes":             driverAPI + "group__CUDA__MEM.html",
	"memory: pinned memory is the host's as well":        driverAPI + "group__CUDA__UNIFIED.html",
	"memory: read and write at any offset":               driverAPI + "group__CUDA__MEM.html",
	"memory: the range of an address":                    driverAPI + "group__CUDA__MEM.html",
	"module: a kernel that is not there":                 driverAPI + "group__CUDA__MODULE.html",
	"module: loaded twice, each has its own":             driverAPI + "group__CUDA__MODULE.html",
	"module: refused PTX":                                driverAPI + "group__CUDA__MODULE.html",
	"module: unloaded":                                   driverAPI + "group__CUDA__MODULE.html",
	"pageable: a copy in keeps its place in the stream":  driverAPI + "api-sync-behavior.html",
	"pageable: a copy out is over when it returns":       driverAPI + "api-sync-behavior.html",
	"pageable: a copy out keeps its place in the stream": driverAPI + "api-sync-behavior.html",
	"pageable: a large copy in, and out again":           driverAPI + "api-sync-behavior.html",
	"pageable: addresses outside of allocations":         driverAPI + "group__CUDA__MEM.html",
	"pageable: pinned memory is refused":                 Own,
	"pageable: the source may change after the copy in":  driverAPI + "api-sync-behavior.html",
	"pinned: a registered source is read late":           driverAPI + "api-sync-behavior.html",
	"pinned: each kind is let go of in its own way":      driverAPI + "group__CUDA__MEM.html",
	"pinned: registered memory is the device's as well":  driverAPI + "group__CUDA__MEM.html",
	"pinned: registered twice":                           driverAPI + "group__CUDA__MEM.html",
	"pinned: unregistered, it is nobody's":               driverAPI + "group__CUDA__MEM.html",
	"sticky: a wait under way is told":                   driverAPI + "group__CUDA__TYPES.html",
	"sticky: an illegal address kills the device":        driverAPI + "group__CUDA__TYPES.html",
	"sticky: work behind the fault never runs":           driverAPI + "group__CUDA__TYPES.html",
	"stream: a cancelled wait leaves the work alone":     Own,
	"stream: a zeroing before a copy stays before it":    driverAPI + "group__CUDA__STREAM.html",
	"stream: both priorities are accepted":               driverAPI + "group__CUDA__STREAM.html",
	"stream: commands run in order":                      driverAPI + "group__CUDA__STREAM.html",
	"stream: destroyed with work pending":                driverAPI + "group__CUDA__STREAM.html",
	"stream: no order without an event":                  driverAPI + "stream-sync-behavior.html",
	"stream: synchronising the device waits for all":     driverAPI + "group__CUDA__CTX.html",
	"stream: synchronising waits for all of it":          driverAPI + "group__CUDA__STREAM.html",
	"stream: unknown handles":                            driverAPI + "group__CUDA__STREAM.html",
	"submit: a batch can be used again at once":          driverAPI + "group__CUDA__EXEC.html",
	"submit: addresses outside of allocations":           driverAPI + "group__CUDA__MEM.html",
	"submit: an empty batch":                             Own,
	"submit: an error says how far each stream got":      Own,
	"submit: from several goroutines":                    driverAPI + "group__CUDA__EXEC.html",
	"submit: several streams in program order":           driverAPI + "group__CUDA__STREAM.html",
}

// Page returns the page that states a behaviour: the vendor's, or [Own].
func Page(name string) string { return allPages()[name] }

func allPages() map[string]string {
	all := map[string]string{}
	for _, table := range []map[string]string{pages, legacyPages, wordPages, signalPages, blockingPages, limitPages, capturedPages} {
		maps.Copy(all, table)
	}
	return all
}
