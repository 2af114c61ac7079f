package core

// list is a chain of tickets that wait for the same thing, oldest first. The
// links are in the tickets, so that any of them leaves in constant time.
// Indices are one more than the ticket's, so that the zero list is empty.
type list struct{ head, tail int32 }

func (l list) empty() bool { return l.head == 0 }

func (c *Core) push(l *list, t int32) {
	tk := &c.tickets[t]
	tk.prev, tk.next = l.tail, 0
	if l.tail != 0 {
		c.tickets[l.tail-1].next = t + 1
	} else {
		l.head = t + 1
	}
	l.tail = t + 1
}

func (c *Core) unlink(l *list, t int32) {
	tk := &c.tickets[t]
	if tk.prev != 0 {
		c.tickets[tk.prev-1].next = tk.next
	} else {
		l.head = tk.next
	}
	if tk.next != 0 {
		c.tickets[tk.next-1].prev = tk.prev
	} else {
		l.tail = tk.prev
	}
	tk.prev, tk.next = 0, 0
}

// concat moves the tickets of m behind those of l.
func (c *Core) concat(l *list, m list) {
	switch {
	case m.empty():
	case l.empty():
		*l = m
	default:
		c.tickets[l.tail-1].next = m.head
		c.tickets[m.head-1].prev = l.tail
		l.tail = m.tail
	}
}

// deque is a queue of lists, one for each mark of a timeline that has not fired.
type deque struct {
	ring  []list // length is a power of two
	first int
	n     int
}

func (d *deque) len() int { return d.n }

func (d *deque) pop() list {
	l := d.ring[d.first]
	d.ring[d.first] = list{}
	d.first = (d.first + 1) & (len(d.ring) - 1)
	d.n--
	return l
}

// at returns the i-th list, making the queue long enough.
func (d *deque) at(i int) *list {
	if i >= len(d.ring) {
		size := max(16, len(d.ring))
		for size <= i {
			size *= 2
		}
		ring := make([]list, size)
		for k := range d.n {
			ring[k] = d.ring[(d.first+k)&(len(d.ring)-1)]
		}
		d.ring, d.first = ring, 0
	}
	d.n = max(d.n, i+1)
	return &d.ring[(d.first+i)&(len(d.ring)-1)]
}
