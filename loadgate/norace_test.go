//go:build !race

package loadgate_test

const reuseOrders = 3
