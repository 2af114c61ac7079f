//go:build !cgo || !linux

package libnixl

import "github.com/kvgate/kvgate/internal/dl"

// openDriver fails with the loader's reason: a program built without cgo can
// call no C library.
func openDriver(file string) (d driver, path string, stub bool, err error) {
	_, err = dl.Open(file)
	return nil, "", false, err
}

func guardSignals(fn func()) (restored []int) {
	fn()
	return nil
}
