// Package fifo is a first-in first-out list that reuses its memory.
package fifo

// Queue is such a list. The zero value is empty.
type Queue[T any] struct {
	items []T
	head  int
}

// Len returns the number of items.
func (q *Queue[T]) Len() int { return len(q.items) - q.head }

// At returns the i-th oldest item. The pointer is valid until the next Push or
// Pop.
func (q *Queue[T]) At(i int) *T { return &q.items[q.head+i] }

// Push adds an item behind the others.
func (q *Queue[T]) Push(v T) { q.items = append(q.items, v) }

// Pop drops the n oldest items. The memory in front is used again once it is
// half of the whole, so an item moves at most once for each that is dropped.
func (q *Queue[T]) Pop(n int) {
	clear(q.items[q.head : q.head+n])
	q.head += n
	if 2*q.head >= len(q.items) {
		n := copy(q.items, q.items[q.head:])
		clear(q.items[n:])
		q.items, q.head = q.items[:n], 0
	}
}

// Drop removes the newest item.
func (q *Queue[T]) Drop() {
	var zero T
	n := len(q.items) - 1
	q.items[n] = zero
	q.items = q.items[:n]
	if q.head == n {
		q.items, q.head = q.items[:0], 0
	}
}
