//go:build race

package loadgate_test

// The race detector makes the simulator's kernels some thirty times slower.
const reuseOrders = 1
