//go:build race

package kernels

// raceDetector: interpretation is some twenty times slower under it, so the
// tests of sheer size are cut down there.
const raceDetector = true
