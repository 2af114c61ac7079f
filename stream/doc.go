// Package stream has streams with their timelines, the adoption of streams and
// events that someone else made, and batches of work over several streams that
// go to the device in one call.
//
// No call of this package uses the legacy default stream, unless an engine has
// its work there and it was adopted ([cuda.Device.LegacyStream]). The per-thread
// default stream is refused: a goroutine meets many threads.
package stream
