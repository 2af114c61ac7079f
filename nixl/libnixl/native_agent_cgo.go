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

func (n *native) pluginParams(agent handle, plugin string) (pluginInfo, status, error) {
	if err := both(n.need(C.KVG_SYM_get_plugin_params), n.needDescription()); err != nil {
		return pluginInfo{}, 0, err
	}
	var mems, params out
	defer mems.free()
	defer params.free()
	s := params.status(C.kvg_plugin_params(n.table, C.kvg_h(agent), zeroed(plugin), &mems.c, &params.c))
	return info(&mems, &params), s, nil
}

func (n *native) backendParams(agent, backend handle) (pluginInfo, status, error) {
	if err := both(n.need(C.KVG_SYM_get_backend_params), n.needDescription()); err != nil {
		return pluginInfo{}, 0, err
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
		C.uint64_t(c.progressDelay/time.Microsecond), &a)
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

func (n *native) register(agent handle, m nixl.MemoryType, regions []nixl.Descriptor) (status, error) {
	return n.memory(0, agent, m, regions)
}

func (n *native) deregister(agent handle, m nixl.MemoryType, regions []nixl.Descriptor) (status, error) {
	return n.memory(1, agent, m, regions)
}

func (n *native) memory(op C.int, agent handle, m nixl.MemoryType, regions []nixl.Descriptor) (status, error) {
	if err := both(n.needRegList(), n.need(C.KVG_SYM_register_mem, C.KVG_SYM_deregister_mem)); err != nil {
		return 0, err
	}
	return status(C.kvg_nixl_memory(n.table, C.kvg_h(agent), op, C.int(m), descs(regions), C.size_t(len(regions)))), nil
}
