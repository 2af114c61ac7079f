//go:build race

package main

// raceDetector: a run takes some fifteen times as long under it, so the longest
// are shorter there.
const raceDetector = true
