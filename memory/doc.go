// Package memory has device and pinned buffers, and a ring of pinned memory
// whose slots come back by fence.
package memory
