//go:build !race

package softnic_test

const seeds = 200
