//go:build race

package softnic_test

// The race detector makes everything some ten times slower.
const seeds = 30
