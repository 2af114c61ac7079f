// Capture and graphs.
#ifndef KVG_GRAPH_H
#define KVG_GRAPH_H

#include "driver.h"

kvg_result kvg_begin_capture(kvg_device *d, uint64_t stream, int mode);
kvg_result kvg_end_capture(kvg_device *d, uint64_t stream, uint64_t *graph);
kvg_result kvg_capture_status(kvg_device *d, uint64_t stream, int *status);
kvg_result kvg_graph_size(kvg_device *d, uint64_t graph, uint64_t *n);
kvg_result kvg_instantiate(kvg_device *d, uint64_t graph, uint64_t *exec);
// Ends a capture that is left over, if there is one that can be ended here.
void kvg_abandon_capture(kvg_device *d, uint64_t stream);
kvg_result kvg_free_graph(kvg_device *d, uint64_t graph);
kvg_result kvg_free_exec(kvg_device *d, uint64_t exec);

#endif
