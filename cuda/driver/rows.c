//go:build cgo && linux

#include "driver_internal.h"

// The rows have been checked against each other; here it is looked up that they
// are the driver's memory, since the driver takes other addresses for the host's.
kvg_result kvg_fill_rows(kvg_device *d, uint64_t stream_handle, uint64_t dst, uint64_t pitch, uint32_t value,
	uint64_t width, uint64_t rows) {
	if (!d->t.cuMemsetD2D32Async) return kvg_refuse(KVG_MISSING);
	WITHIN(d, {
		kvg_entry *s = kvg_find(d, KVG_STREAM, stream_handle);
		int status = 0;
		uint64_t n = (rows - 1) * pitch + 4 * width;
		if (!s) r = kvg_refuse(KVG_BAD_STREAM);
		else if (s->flags & KVG_FOREIGN) r = kvg_from(d->t.cuStreamIsCapturing(s->raw, &status));
		if (r.why == KVG_OK && status) r = kvg_refuse(KVG_CAPTURING);
		if (r.why == KVG_OK) r = kvg_covered(d, dst, n, KVG_BAD_DESTINATION);
		if (r.why == KVG_OK) r = kvg_from(d->t.cuMemsetD2D32Async(dst, pitch, value, width, rows, s->raw));
	});
}
