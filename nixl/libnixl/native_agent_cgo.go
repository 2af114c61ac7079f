//go:build cgo && linux

package libnixl

/*
#include <stdlib.h>
#include "shim.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"github.com/kvgate/kvgate/nixl"
)

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
	s := C.kvg_create_agent(n.table, zeroed(name), C.bool(c.progress), C.int(c.sync.code()),
		C.uint64_t(c.progressDelay/time.Microsecond), C.bool(c.telemetry), &a)
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
	if err != nil {
		return nil, 0, err
	}
	var opt C.kvg_h
	s := C.kvg_options(n.table, (*C.kvg_h)(unsafe.Pointer(unsafe.SliceData(o.backends))), C.size_t(len(o.backends)),
		cbool(o.notify), unsafe.Pointer(unsafe.SliceData(o.message)), C.size_t(len(o.message)),
		unsafe.Pointer(unsafe.SliceData(o.custom)), C.size_t(len(o.custom)), cbool(o.skipMerge), &opt)
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
	return status(C.kvg_nixl_memory(n.table, C.kvg_h(agent), op, C.int(m), descs(regions), C.size_t(len(regions)), all, lens, C.kvg_h(opt))), nil
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
	s := o.status(C.kvg_nixl_query(n.table, C.kvg_h(agent), C.int(m), descs(regions), C.size_t(len(regions)), all, lens, C.kvg_h(opt), &o.c))
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
