//go:build cgo && linux

package libnixl

/*
#cgo CFLAGS: -O2 -Wall
#cgo noescape kvg_create
#cgo nocallback kvg_create
#cgo nocallback kvg_post
#cgo nocallback kvg_status
#cgo nocallback kvg_release
#include <stdlib.h>
#include "shim.h"

static int kvg_create_agent(kvg_table *t, const char *name, bool progress, bool listen, int port, int sync,
	uint64_t progress_us, uint64_t listen_us, bool telemetry, kvg_h *agent) {
	struct kvg_agent_config c = {progress, listen, port, sync, 1, progress_us, listen_us, telemetry};
	return KVG_CALL(t, create_configured_agent)(name, &c, agent);
}
static int kvg_destroy_agent(kvg_table *t, kvg_h a) { return KVG_CALL(t, destroy_agent)(a); }
static int kvg_destroy_backend(kvg_table *t, kvg_h b) { return KVG_CALL(t, destroy_backend)(b); }
static int kvg_free_options(kvg_table *t, kvg_h o) { return KVG_CALL(t, destroy_opt_args)(o); }
static int kvg_local_md(kvg_table *t, kvg_h a, void **p, size_t *n) { return KVG_CALL(t, get_local_md)(a, p, n); }
static int kvg_invalidate(kvg_table *t, kvg_h a, const char *p) { return KVG_CALL(t, invalidate_remote_md)(a, p); }
static int kvg_send(kvg_table *t, kvg_h a, kvg_h o) { return KVG_CALL(t, send_local_md)(a, o); }
static int kvg_fetch(kvg_table *t, kvg_h a, const char *p, kvg_h o) { return KVG_CALL(t, fetch_remote_md)(a, p, o); }
static int kvg_withdraw(kvg_table *t, kvg_h a, kvg_h o) { return KVG_CALL(t, invalidate_local_md)(a, o); }
static int kvg_connect(kvg_table *t, kvg_h a, const char *p, kvg_h o) { return KVG_CALL(t, agent_make_connection)(a, p, o); }
static int kvg_release_list(kvg_table *t, kvg_h a, kvg_h l) { return KVG_CALL(t, release_xfer_dlist_handle)(a, l); }
static int kvg_make(kvg_table *t, kvg_h a, int op, kvg_h l, const int *li, size_t ln, kvg_h r, const int *ri, size_t rn, kvg_h o, kvg_h *q) {
	return KVG_CALL(t, make_xfer_req)(a, op, l, li, ln, r, ri, rn, q, o);
}
static int kvg_cost(kvg_table *t, kvg_h a, kvg_h q, int64_t *d, int64_t *e) {
	int method = 0;
	return KVG_CALL(t, estimate_xfer_cost)(a, q, NULL, d, e, &method);
}
static int kvg_telemetry_of(kvg_table *t, kvg_h a, kvg_h q, struct kvg_telemetry *o) { return KVG_CALL(t, get_xfer_telemetry)(a, q, o); }
static int kvg_notify(kvg_table *t, kvg_h a, const char *p, const void *m, size_t n) { return KVG_CALL(t, gen_notif)(a, p, n ? m : "", n, NULL); }
static int kvg_release_view(kvg_table *t, kvg_h a, kvg_h v) { return KVG_CALL(t, release_mem_view)(a, v); }
*/
import "C"

import (
	"encoding/binary"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/internal/dl"
	"github.com/kvgate/kvgate/nixl"
)

// native is the loaded library. Each method resolves the symbols that it needs
// when it is first called.
type native struct {
	lib   *dl.Library
	table *C.kvg_table // in C memory, since shims keep nothing
	ready [C.KVG_SYMBOLS]atomic.Bool
}

// boundSymbols returns the names in the table of functions.
func boundSymbols() []string {
	names := make([]string, C.KVG_SYMBOLS)
	for i := range names {
		names[i] = C.GoString(C.kvg_symbol_name(C.int(i)))
	}
	return names
}

func openDriver(file string) (d driver, path string, stub bool, err error) {
	lib, err := dl.Open(file)
	if err != nil {
		return nil, "", false, err
	}
	n := &native{lib: lib, table: (*C.kvg_table)(C.calloc(1, C.sizeof_kvg_table))}
	if err = n.need(C.KVG_SYM_is_stub); err == nil {
		stub = bool(C.kvg_is_stub(n.table))
	}
	if err != nil || stub {
		C.free(unsafe.Pointer(n.table))
		if e := lib.Close(); e != nil && err == nil {
			err = e
		}
		return nil, lib.Path(), stub, err
	}
	return n, lib.Path(), false, nil
}

// need resolves symbols. Two goroutines that do so at once write the same.
func (n *native) need(symbols ...int) error {
	for _, i := range symbols {
		if n.ready[i].Load() {
			continue
		}
		name := C.GoString(C.kvg_symbol_name(C.int(i)))
		p, err := n.lib.Symbol(name)
		if err != nil {
			return fmt.Errorf("%w: %w", nixl.ErrUnavailable, err)
		}
		atomic.StorePointer((*unsafe.Pointer)(&n.table.fn[i]), p)
		n.ready[i].Store(true)
	}
	return nil
}

func (n *native) needOptions() error {
	return n.need(C.KVG_SYM_create_opt_args, C.KVG_SYM_destroy_opt_args)
}

func (n *native) needRegList() error {
	return n.need(C.KVG_SYM_create_reg_dlist, C.KVG_SYM_destroy_reg_dlist, C.KVG_SYM_reg_dlist_add_desc)
}

func (n *native) needList() error {
	return n.need(C.KVG_SYM_create_xfer_dlist, C.KVG_SYM_destroy_xfer_dlist, C.KVG_SYM_xfer_dlist_add_desc)
}

func (n *native) needDescription() error {
	return n.need(C.KVG_SYM_destroy_mem_list, C.KVG_SYM_mem_list_size, C.KVG_SYM_mem_list_get, C.KVG_SYM_destroy_params,
		C.KVG_SYM_params_is_empty, C.KVG_SYM_params_create_iterator, C.KVG_SYM_params_iterator_next, C.KVG_SYM_params_destroy_iterator)
}

// out is a buffer that a shim fills.
type out struct{ c C.kvg_out }

func (o *out) free() { C.free(unsafe.Pointer(o.c.data)) }

// records returns what is in the buffer; it must not be used after free.
func (o *out) records() [][]byte {
	return splitRecords(unsafe.Slice((*byte)(unsafe.Pointer(o.c.data)), int(o.c.len)))
}

func splitRecords(b []byte) [][]byte {
	var r [][]byte
	for len(b) >= 8 {
		n := binary.NativeEndian.Uint64(b)
		r = append(r, b[8:8+n])
		b = b[8+n:]
	}
	return r
}

// status turns lost memory into a failure.
func (o *out) status(r C.int) status {
	if r == 0 && o.c.oom != 0 {
		return statusNoMemory
	}
	return status(r)
}

func pairs(r [][]byte) map[string]string {
	m := make(map[string]string, len(r)/2)
	for i := 0; i+1 < len(r); i += 2 {
		m[string(r[i])] = string(r[i+1])
	}
	return m
}

func info(mems, params *out) PluginInfo {
	p := PluginInfo{Params: pairs(params.records())}
	for _, m := range mems.records() {
		p.Memories = append(p.Memories, nixl.MemoryType(m[0]))
	}
	return p
}

// zeroed returns s with the zero byte that C wants behind it.
func zeroed(s string) *C.char {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return (*C.char)(unsafe.Pointer(&b[0]))
}

func descs(d []nixl.Descriptor) *C.kvg_desc {
	return (*C.kvg_desc)(unsafe.Pointer(unsafe.SliceData(d)))
}

// blobs returns the blobs one behind the other, and their lengths.
func joined(b [][]byte) (*C.char, *C.size_t) {
	if b == nil {
		return nil, nil
	}
	all, lens := []byte{0}[:0], make([]C.size_t, len(b))
	for i, x := range b {
		all, lens[i] = append(all, x...), C.size_t(len(x))
	}
	return (*C.char)(unsafe.Pointer(unsafe.SliceData(all))), unsafe.SliceData(lens)
}

func (n *native) plugins(agent handle) ([]string, status, error) {
	if err := n.need(C.KVG_SYM_get_available_plugins, C.KVG_SYM_destroy_string_list, C.KVG_SYM_string_list_size, C.KVG_SYM_string_list_get); err != nil {
		return nil, 0, err
	}
	var o out
	defer o.free()
	s := o.status(C.kvg_plugins(n.table, C.kvg_h(agent), &o.c))
	var names []string
	for _, r := range o.records() {
		names = append(names, string(r))
	}
	return names, s, nil
}

func (n *native) pluginParams(agent handle, plugin string) (PluginInfo, status, error) {
	if err := both(n.need(C.KVG_SYM_get_plugin_params), n.needDescription()); err != nil {
		return PluginInfo{}, 0, err
	}
	var mems, params out
	defer mems.free()
	defer params.free()
	s := params.status(C.kvg_plugin_params(n.table, C.kvg_h(agent), zeroed(plugin), &mems.c, &params.c))
	return info(&mems, &params), s, nil
}

func (n *native) backendParams(agent, backend handle) (PluginInfo, status, error) {
	if err := both(n.need(C.KVG_SYM_get_backend_params), n.needDescription()); err != nil {
		return PluginInfo{}, 0, err
	}
	var mems, params out
	defer mems.free()
	defer params.free()
	s := params.status(C.kvg_backend_params(n.table, C.kvg_h(agent), C.kvg_h(backend), &mems.c, &params.c))
	return info(&mems, &params), s, nil
}

func (n *native) createAgent(name string, c *agentConfig) (handle, status, error) {
	if err := n.need(C.KVG_SYM_create_configured_agent, C.KVG_SYM_destroy_agent); err != nil {
		return nil, 0, err
	}
	var a C.kvg_h
	s := C.kvg_create_agent(n.table, zeroed(name), C.bool(c.progress), C.bool(c.listen), C.int(c.port), C.int(c.sync.code()),
		C.uint64_t(c.progressDelay/time.Microsecond), C.uint64_t(c.listenDelay/time.Microsecond), C.bool(c.telemetry), &a)
	return handle(a), status(s), nil
}

func (n *native) destroyAgent(agent handle) (status, error) {
	return status(C.kvg_destroy_agent(n.table, C.kvg_h(agent))), nil
}

func (n *native) createBackend(agent handle, plugin string, params map[string]string) (handle, status, error) {
	if err := n.need(C.KVG_SYM_create_backend, C.KVG_SYM_destroy_backend, C.KVG_SYM_create_params, C.KVG_SYM_destroy_params, C.KVG_SYM_params_add); err != nil {
		return nil, 0, err
	}
	flat := []byte{}
	for k, v := range params {
		flat = append(append(append(append(flat, k...), 0), v...), 0)
	}
	flat = append(flat, 0)
	var b C.kvg_h
	s := C.kvg_create_backend(n.table, C.kvg_h(agent), zeroed(plugin), (*C.char)(unsafe.Pointer(&flat[0])), C.size_t(len(params)), &b)
	return handle(b), status(s), nil
}

func (n *native) destroyBackend(backend handle) (status, error) {
	return status(C.kvg_destroy_backend(n.table, C.kvg_h(backend))), nil
}

func (n *native) options(o *callOptions) (handle, status, error) {
	if o.none() {
		return nil, statusOK, nil
	}
	err := n.needOptions()
	if len(o.backends) > 0 {
		err = both(err, n.need(C.KVG_SYM_opt_args_add_backend))
	}
	if o.notify {
		err = both(err, n.need(C.KVG_SYM_opt_args_set_notif_msg, C.KVG_SYM_opt_args_set_has_notif))
	}
	if len(o.custom) > 0 {
		err = both(err, n.need(C.KVG_SYM_opt_args_set_custom_param))
	}
	if o.skipMerge {
		err = both(err, n.need(C.KVG_SYM_opt_args_set_skip_desc_merge))
	}
	var ip *C.char
	if o.ip != "" {
		err, ip = both(err, n.need(C.KVG_SYM_opt_args_set_ip_addr)), zeroed(o.ip)
	}
	if o.port != 0 {
		err = both(err, n.need(C.KVG_SYM_opt_args_set_port))
	}
	if err != nil {
		return nil, 0, err
	}
	var opt C.kvg_h
	s := C.kvg_options(n.table, (*C.kvg_h)(unsafe.Pointer(unsafe.SliceData(o.backends))), C.size_t(len(o.backends)),
		cbool(o.notify), unsafe.Pointer(unsafe.SliceData(o.message)), C.size_t(len(o.message)),
		unsafe.Pointer(unsafe.SliceData(o.custom)), C.size_t(len(o.custom)), cbool(o.skipMerge), ip, C.int(o.port), &opt)
	return handle(opt), status(s), nil
}

func cbool(b bool) C.int {
	if b {
		return 1
	}
	return 0
}

func (n *native) freeOptions(opt handle) {
	if opt != nil {
		C.kvg_free_options(n.table, C.kvg_h(opt))
	}
}

func (n *native) register(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) (status, error) {
	return n.memory(0, agent, m, regions, blobs, opt)
}

func (n *native) deregister(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) (status, error) {
	return n.memory(1, agent, m, regions, blobs, opt)
}

func (n *native) memory(op C.int, agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) (status, error) {
	if err := both(n.needRegList(), n.need(C.KVG_SYM_register_mem, C.KVG_SYM_deregister_mem)); err != nil {
		return 0, err
	}
	all, lens := joined(blobs)
	return status(C.kvg_memory(n.table, C.kvg_h(agent), op, C.int(m), descs(regions), C.size_t(len(regions)), all, lens, C.kvg_h(opt))), nil
}

func (n *native) query(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, blobs [][]byte, opt handle) ([]map[string]string, status, error) {
	err := both(n.needRegList(), n.needDescription())
	err = both(err, n.need(C.KVG_SYM_query_mem, C.KVG_SYM_create_query_resp_list, C.KVG_SYM_destroy_query_resp_list,
		C.KVG_SYM_query_resp_list_size, C.KVG_SYM_query_resp_list_has_value, C.KVG_SYM_query_resp_list_get_params))
	if err != nil {
		return nil, 0, err
	}
	var o out
	defer o.free()
	all, lens := joined(blobs)
	s := o.status(C.kvg_query(n.table, C.kvg_h(agent), C.int(m), descs(regions), C.size_t(len(regions)), all, lens, C.kvg_h(opt), &o.c))
	var answers []map[string]string
	for r := o.records(); len(r) > 0; r = r[1:] {
		if r[0][0] == 0 {
			answers = append(answers, nil)
			continue
		}
		answers = append(answers, pairs(splitRecords(r[1])))
		r = r[1:]
	}
	return answers, s, nil
}

func (n *native) metadata(agent handle) ([]byte, status, error) {
	if err := n.need(C.KVG_SYM_get_local_md); err != nil {
		return nil, 0, err
	}
	var p unsafe.Pointer
	var size C.size_t
	s := C.kvg_local_md(n.table, C.kvg_h(agent), &p, &size)
	return taken(s, p, size), status(s), nil
}

func (n *native) partialMetadata(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, opt handle) ([]byte, status, error) {
	if err := both(n.needRegList(), n.need(C.KVG_SYM_get_local_partial_md)); err != nil {
		return nil, 0, err
	}
	var p unsafe.Pointer
	var size C.size_t
	s := C.kvg_partial_md(n.table, C.kvg_h(agent), C.int(m), descs(regions), C.size_t(len(regions)), C.kvg_h(opt), &p, &size)
	return taken(s, p, size), status(s), nil
}

// taken copies what the library allocated for us, and frees it.
func taken(s C.int, p unsafe.Pointer, n C.size_t) []byte {
	if s != 0 {
		return nil
	}
	defer C.free(p)
	return append([]byte{}, unsafe.Slice((*byte)(p), int(n))...)
}

func (n *native) load(agent handle, blob []byte) (string, status, error) {
	if err := n.need(C.KVG_SYM_load_remote_md); err != nil {
		return "", 0, err
	}
	var o out
	defer o.free()
	s := o.status(C.kvg_load_md(n.table, C.kvg_h(agent), unsafe.Pointer(unsafe.SliceData(blob)), C.size_t(len(blob)), &o.c))
	if r := o.records(); len(r) == 1 {
		return string(r[0]), s, nil
	}
	return "", s, nil
}

func (n *native) invalidate(agent handle, peer string) (status, error) {
	if err := n.need(C.KVG_SYM_invalidate_remote_md); err != nil {
		return 0, err
	}
	return status(C.kvg_invalidate(n.table, C.kvg_h(agent), zeroed(peer))), nil
}

func (n *native) check(agent handle, peer string, m nixl.MemoryType, regions []nixl.Descriptor) (status, error) {
	if err := both(n.needList(), n.need(C.KVG_SYM_check_remote_md)); err != nil {
		return 0, err
	}
	return status(C.kvg_check_md(n.table, C.kvg_h(agent), zeroed(peer), C.int(m), descs(regions), C.size_t(len(regions)))), nil
}

func (n *native) send(agent handle, opt handle) (status, error) {
	if err := n.need(C.KVG_SYM_send_local_md); err != nil {
		return 0, err
	}
	return status(C.kvg_send(n.table, C.kvg_h(agent), C.kvg_h(opt))), nil
}

func (n *native) sendPartial(agent handle, m nixl.MemoryType, regions []nixl.Descriptor, opt handle) (status, error) {
	if err := both(n.needRegList(), n.need(C.KVG_SYM_send_local_partial_md)); err != nil {
		return 0, err
	}
	return status(C.kvg_send_partial_md(n.table, C.kvg_h(agent), C.int(m), descs(regions), C.size_t(len(regions)), C.kvg_h(opt))), nil
}

func (n *native) fetch(agent handle, peer string, opt handle) (status, error) {
	if err := n.need(C.KVG_SYM_fetch_remote_md); err != nil {
		return 0, err
	}
	return status(C.kvg_fetch(n.table, C.kvg_h(agent), zeroed(peer), C.kvg_h(opt))), nil
}

func (n *native) withdraw(agent handle, opt handle) (status, error) {
	if err := n.need(C.KVG_SYM_invalidate_local_md); err != nil {
		return 0, err
	}
	return status(C.kvg_withdraw(n.table, C.kvg_h(agent), C.kvg_h(opt))), nil
}

func (n *native) connect(agent handle, peer string, opt handle) (status, error) {
	if err := n.need(C.KVG_SYM_agent_make_connection); err != nil {
		return 0, err
	}
	return status(C.kvg_connect(n.table, C.kvg_h(agent), zeroed(peer), C.kvg_h(opt))), nil
}

func (n *native) prepare(agent handle, peer string, m nixl.MemoryType, d []nixl.Descriptor, opt handle) (handle, status, error) {
	if err := both(n.needList(), n.need(C.KVG_SYM_prep_xfer_dlist, C.KVG_SYM_release_xfer_dlist_handle)); err != nil {
		return nil, 0, err
	}
	var h C.kvg_h
	s := C.kvg_prepare(n.table, C.kvg_h(agent), zeroed(peer), C.int(m), descs(d), C.size_t(len(d)), C.kvg_h(opt), &h)
	return handle(h), status(s), nil
}

func (n *native) releaseList(agent, list handle) (status, error) {
	return status(C.kvg_release_list(n.table, C.kvg_h(agent), C.kvg_h(list))), nil
}

func (n *native) needRequest() error {
	return n.need(C.KVG_SYM_post_xfer_req, C.KVG_SYM_get_xfer_status, C.KVG_SYM_release_xfer_req, C.KVG_SYM_destroy_xfer_req)
}

func (n *native) make(agent handle, op nixl.Op, local handle, li []int32, remote handle, ri []int32, opt handle) (handle, status, error) {
	if err := both(n.needRequest(), n.need(C.KVG_SYM_make_xfer_req)); err != nil {
		return nil, 0, err
	}
	var q C.kvg_h
	s := C.kvg_make(n.table, C.kvg_h(agent), C.int(op),
		C.kvg_h(local), (*C.int)(unsafe.Pointer(unsafe.SliceData(li))), C.size_t(len(li)),
		C.kvg_h(remote), (*C.int)(unsafe.Pointer(unsafe.SliceData(ri))), C.size_t(len(ri)), C.kvg_h(opt), &q)
	return handle(q), status(s), nil
}

func (n *native) create(agent handle, s *nixl.Spec, peer []byte, opt handle) (handle, status, error) {
	if !n.ready[C.KVG_SYM_create_xfer_req].Load() {
		err := both(n.needRequest(), n.needList())
		if err = both(err, n.need(C.KVG_SYM_create_xfer_req)); err != nil {
			return nil, 0, err
		}
	}
	made := C.kvg_create(n.address(), number(agent), C.int(s.Op), C.int(s.LocalMemory), descs(s.Local),
		C.int(s.RemoteMemory), descs(s.Remote), C.size_t(len(s.Local)), (*C.char)(unsafe.Pointer(&peer[0])), number(opt))
	return handle(made.req), status(made.status), nil
}

func (n *native) address() C.uintptr_t { return C.uintptr_t(uintptr(unsafe.Pointer(n.table))) }
func number(h handle) C.uintptr_t      { return C.uintptr_t(uintptr(h)) }

// The symbols of these were resolved when the request was made.

func (n *native) post(agent, req handle) (status, error) {
	return status(C.kvg_post(n.address(), number(agent), number(req))), nil
}

func (n *native) poll(agent, req handle) (status, error) {
	return status(C.kvg_status(n.address(), number(agent), number(req))), nil
}

func (n *native) release(agent, req handle) (status, error) {
	return status(C.kvg_release(n.address(), number(agent), number(req))), nil
}

func (n *native) cost(agent, req handle) (Cost, status, error) {
	if err := n.need(C.KVG_SYM_estimate_xfer_cost); err != nil {
		return Cost{}, 0, err
	}
	var d, e C.int64_t
	s := C.kvg_cost(n.table, C.kvg_h(agent), C.kvg_h(req), &d, &e)
	return Cost{time.Duration(d) * time.Microsecond, time.Duration(e) * time.Microsecond}, status(s), nil
}

func (n *native) telemetry(agent, req handle) (Telemetry, status, error) {
	if err := n.need(C.KVG_SYM_get_xfer_telemetry); err != nil {
		return Telemetry{}, 0, err
	}
	var t C.struct_kvg_telemetry
	s := C.kvg_telemetry_of(n.table, C.kvg_h(agent), C.kvg_h(req), &t)
	us := func(v C.uint64_t) time.Duration { return time.Duration(v) * time.Microsecond }
	return Telemetry{us(t.start_us), us(t.post_us), us(t.transfer_us), uint64(t.bytes), int(t.descriptors)}, status(s), nil
}

func (n *native) backendOf(agent, req handle, backends []handle) (int, status, error) {
	if err := n.need(C.KVG_SYM_query_xfer_backend, C.KVG_SYM_destroy_backend); err != nil {
		return 0, 0, err
	}
	var i C.int
	s := C.kvg_request_backend(n.table, C.kvg_h(agent), C.kvg_h(req), (*C.kvg_h)(unsafe.Pointer(unsafe.SliceData(backends))), C.size_t(len(backends)), &i)
	return int(i), status(s), nil
}

func (n *native) notify(agent handle, peer string, message []byte) (status, error) {
	if err := n.need(C.KVG_SYM_gen_notif); err != nil {
		return 0, err
	}
	return status(C.kvg_notify(n.table, C.kvg_h(agent), zeroed(peer), unsafe.Pointer(unsafe.SliceData(message)), C.size_t(len(message)))), nil
}

func (n *native) notifications(agent handle, dst []nixl.Notification) ([]nixl.Notification, status, error) {
	err := n.need(C.KVG_SYM_get_notifs, C.KVG_SYM_create_notif_map, C.KVG_SYM_destroy_notif_map, C.KVG_SYM_notif_map_size,
		C.KVG_SYM_notif_map_get_agent_at, C.KVG_SYM_notif_map_get_notifs_size, C.KVG_SYM_notif_map_get_notif)
	if err != nil {
		return dst, 0, err
	}
	var o out
	defer o.free()
	s := o.status(C.kvg_notifs(n.table, C.kvg_h(agent), &o.c))
	for r := o.records(); len(r) > 1; r = r[2:] {
		dst = append(dst, nixl.Notification{From: string(r[0]), Message: append([]byte{}, r[1]...)})
	}
	return dst, s, nil
}

func (n *native) viewLocal(agent handle, m nixl.MemoryType, d []nixl.Descriptor, opt handle) (handle, status, error) {
	if err := both(n.needList(), n.need(C.KVG_SYM_prep_mem_view_local, C.KVG_SYM_release_mem_view)); err != nil {
		return nil, 0, err
	}
	var v C.kvg_h
	s := C.kvg_view_local(n.table, C.kvg_h(agent), C.int(m), descs(d), C.size_t(len(d)), C.kvg_h(opt), &v)
	return handle(v), status(s), nil
}

func (n *native) viewRemote(agent handle, m nixl.MemoryType, d []RemoteDescriptor, opt handle) (handle, status, error) {
	if err := n.need(C.KVG_SYM_prep_mem_view_remote, C.KVG_SYM_release_mem_view, C.KVG_SYM_create_remote_dlist,
		C.KVG_SYM_destroy_remote_dlist, C.KVG_SYM_remote_dlist_add_desc); err != nil {
		return nil, 0, err
	}
	plain, names := make([]nixl.Descriptor, len(d)), []byte{}
	for i, x := range d {
		plain[i] = x.Descriptor
		names = append(append(names, x.Peer...), 0)
	}
	names = append(names, 0)
	var v C.kvg_h
	s := C.kvg_view_remote(n.table, C.kvg_h(agent), C.int(m), descs(plain), C.size_t(len(plain)), (*C.char)(unsafe.Pointer(&names[0])), C.kvg_h(opt), &v)
	return handle(v), status(s), nil
}

func (n *native) releaseView(agent, view handle) (status, error) {
	return status(C.kvg_release_view(n.table, C.kvg_h(agent), C.kvg_h(view))), nil
}

func (n *native) guard(fn func()) []int {
	return guardSignals(fn)
}

// guardSignals runs fn and then puts back the signal handlers that fn replaced.
// Go's runtime needs its own: they run on the alternate stack, and faults of Go
// code come to it as signals.
func guardSignals(fn func()) (restored []int) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	saved := C.kvg_signals_save()
	defer func() {
		var which C.uint64_t
		C.kvg_signals_restore(saved, &which)
		for i := range 64 {
			if which>>i&1 != 0 {
				restored = append(restored, i+1)
			}
		}
	}()
	fn()
	return nil
}
