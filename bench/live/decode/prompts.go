package decode

import (
	"context"
	"sync"

	"github.com/kvgate/kvgate/clock"
)

// prompt is the KV of a request, ready at the NIC's other end.
type prompt struct {
	slot    int
	request uint32
}

// feeder has prompts prepared, ahead of the engine and beside it.
type feeder struct {
	m    *Machine
	stop chan struct{}
	done chan struct{}

	mu    sync.Mutex
	free  []int
	ready []prompt
	err   error
	more  chan struct{} // of capacity 1: a slot is free
}

// newFeeder starts a feeder; ctx ends the wait for a prompt.
func newFeeder(ctx context.Context, m *Machine) *feeder {
	f := &feeder{m: m, stop: make(chan struct{}), done: make(chan struct{}), more: make(chan struct{}, 1)}
	for i := range slots {
		f.free = append(f.free, i)
	}
	m.wall.Go("prompts", func() { f.run(ctx) })
	return f
}

func (f *feeder) run(ctx context.Context) {
	defer close(f.done)
	for {
		select {
		case <-f.stop:
			return
		default:
		}
		slot, ok := f.takeSlot()
		if !ok {
			select {
			case <-f.more:
			case <-f.stop:
			}
			continue
		}
		id, err := f.m.nextRequest()
		if err == nil {
			err = f.m.nic.Prepare(ctx, slot, id)
		}
		f.mu.Lock()
		f.ready, f.err = append(f.ready, prompt{slot, id}), err
		f.mu.Unlock()
		f.m.wall.Notify()
		if err != nil {
			return
		}
	}
}

func (f *feeder) takeSlot() (int, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.free) == 0 {
		return 0, false
	}
	s := f.free[0]
	f.free = append(f.free[:0], f.free[1:]...)
	return s, true
}

// take returns a prompt that is ready. ok is false where none is.
func (f *feeder) take() (p prompt, ok bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil || len(f.ready) == 0 {
		return p, false, f.err
	}
	p = f.ready[0]
	f.ready = append(f.ready[:0], f.ready[1:]...)
	return p, true, nil
}

// any is done when a prompt is ready, or none will be.
func (f *feeder) any() clock.Cond {
	return clock.Func("a prompt to be ready", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return len(f.ready) > 0 || f.err != nil
	})
}

// giveBack gives a slot back that no transfer reads any more.
func (f *feeder) giveBack(slot int) {
	f.mu.Lock()
	f.free = append(f.free, slot)
	f.mu.Unlock()
	select {
	case f.more <- struct{}{}:
	default:
	}
}

// close ends the feeder. No prompt is being prepared any more, unless ctx ended.
func (f *feeder) close() {
	close(f.stop)
	<-f.done
}
