// Package kernels zeroes, fills, resets, copies and checksums the blocks of a pool
// on the device, gathers them into rows of memory outside the pool and scatters
// such rows back, and does what a whole step needs before it runs in as few
// launches as its conflicts allow ([Preparation]). The kernels are CUDA sources
// beside this file; their PTX is embedded, so building needs no toolkit, and runs on
// every GPU from compute capability 7.0 with a driver of CUDA 11.8 or later.
//
// A [Set] is the loaded kernels of a device, a [Table] a segment table in its
// memory. The launch methods add to a [cuda.Batch] and allocate nothing. A [Tuning],
// which bench/tune finds, says how pages are stored and how launches are shaped.
//
// All block kernels write (or read) the pages of the listed blocks and no other byte,
// whatever the alignment and size of pages and strides. Ids may be listed
// twice where a block is not copied. Ids that are negative, the null block, or not
// of the pool are skipped on the device, so that a bad list can't damage anyone's
// memory; [layout.Table.CheckIDs] tells the caller. A list of no ids adds no launch.
package kernels
