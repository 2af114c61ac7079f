// Package memory has device and pinned buffers, a ring of pinned memory whose
// slots come back by fence, and the pool of block ids.
package memory
