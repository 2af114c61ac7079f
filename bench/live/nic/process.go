package nic

import (
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kvgate/kvgate/clock"
)

// Limits of how long the other process may take.
const (
	startLimit = 60 * time.Second // to start, a device of its own included
	endLimit   = 10 * time.Second
	// prepareLimit is for one prompt.
	prepareLimit = 30 * time.Second
)

// process is the process at the other end.
type process struct {
	wall     clock.Clock
	patience time.Duration // how long it may take to end
	clk      clock.Clock   // the device's: its waits are told of news
	cmd      *exec.Cmd
	in       io.WriteCloser
	news     atomic.Uint64

	first chan answer
	ended chan struct{} // closed when cause is set

	mu      sync.Mutex
	enc     *gob.Encoder
	orderID uint64
	orders  map[uint64]*sent
	cause   error
}

// sent is an order that was given.
type sent struct {
	done chan struct{} // closed when err is set
	err  error
}

// startProcess starts this program anew as the other end, and waits for its
// answer.
func startProcess(ctx context.Context, clk clock.Clock, h hello) (*process, answer, error) {
	p := &process{wall: clock.Wall(), patience: endLimit, clk: clk, first: make(chan answer, 1), ended: make(chan struct{}), orders: map[uint64]*sent{}}
	exe, err := os.Executable()
	if err != nil {
		return nil, answer{}, err
	}
	p.cmd = exec.Command(exe)
	p.cmd.Env = append(os.Environ(), Variable+"=1")
	p.cmd.Stdout, p.cmd.Stderr = os.Stderr, os.Stderr // libraries print there
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, answer{}, err
	}
	out, theirs, err := os.Pipe()
	if err != nil {
		return nil, answer{}, err
	}
	p.cmd.ExtraFiles = []*os.File{theirs}
	if err := errors.Join(p.cmd.Start(), theirs.Close()); err != nil {
		return nil, answer{}, errors.Join(err, out.Close())
	}
	p.enc = gob.NewEncoder(p.in)
	p.wall.Go("reports of the NIC's process", func() { p.read(out) })
	var a answer
	err = p.enc.Encode(h)
	if err == nil {
		err = p.wait(ctx, "start", startLimit, func() bool { return len(p.first) > 0 })
	}
	if err == nil && len(p.first) > 0 {
		if a = <-p.first; a.Err == "" {
			return p, a, nil
		}
		err = errors.New(a.Err)
	}
	// Why it ended says more than that nobody reads the pipe.
	return nil, a, errors.Join(err, p.close())
}

// wait waits until over or the process has ended.
func (p *process) wait(ctx context.Context, what string, limit time.Duration, over func() bool) error {
	name := what + " of the NIC's process"
	c := clock.Func(name, func() bool { return over() || p.err() != nil })
	if err := p.wall.WaitUntil(ctx, c, p.wall.Now()+limit); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("%s: took longer than %v", name, limit)
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// read takes in what the process says, to its end.
func (p *process) read(out *os.File) {
	dec := gob.NewDecoder(out)
	var a answer
	err := dec.Decode(&a)
	if err == nil {
		p.first <- a
		for err == nil {
			var r report
			if err = dec.Decode(&r); err == nil {
				p.reported(r)
			}
		}
	}
	wait := p.cmd.Wait()
	p.over(err, errors.Join(wait, out.Close()))
}

func (p *process) reported(r report) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.orders[r.ID]
	if s == nil {
		return
	}
	delete(p.orders, r.ID)
	if r.Err != "" {
		s.err = errors.New(r.Err)
	}
	close(s.done)
	p.news.Add(1)
	p.clk.Notify()
	p.wall.Notify()
}

// over notes why the process is at its end, and fails what is under way.
func (p *process) over(read, wait error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what := "it ended"
	if wait != nil {
		what = wait.Error()
	} else if read != nil && !errors.Is(read, io.EOF) {
		what = read.Error()
	}
	p.cause = fmt.Errorf("process %d: %s", p.cmd.Process.Pid, what)
	for id, s := range p.orders {
		s.err = p.cause
		close(s.done)
		delete(p.orders, id)
	}
	close(p.ended)
	p.news.Add(1)
	p.clk.Notify()
	p.wall.Notify()
}

// err returns why the process is at its end, or nil.
func (p *process) err() error {
	select {
	case <-p.ended:
		return p.cause
	default:
		return nil
	}
}

// order gives an order.
func (p *process) order(o order) (*sent, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cause != nil {
		return nil, p.cause
	}
	p.orderID++
	o.ID = p.orderID
	s := &sent{done: make(chan struct{})}
	p.orders[o.ID] = s
	if err := p.enc.Encode(o); err != nil {
		delete(p.orders, o.ID)
		return nil, err
	}
	return s, nil
}

// prepare has a prompt prepared, and waits for it.
func (p *process) prepare(ctx context.Context, slot int, request uint32) error {
	s, err := p.order(order{Prepare: true, Slot: slot, Request: request})
	if err != nil {
		return err
	}
	over := clock.Func("a prompt", func() bool {
		select {
		case <-s.done:
			return true
		default:
			return false
		}
	})
	err = p.wall.WaitUntil(ctx, over, p.wall.Now()+prepareLimit)
	switch {
	case err == nil:
		return s.err
	case ctx.Err() == nil:
		return fmt.Errorf("took longer than %v", prepareLimit)
	}
	return err
}

// close ends the process, and kills it where it does not end by itself.
func (p *process) close() error {
	if cause := p.err(); cause != nil { // before its time
		return errors.Join(cause, p.in.Close())
	}
	err := p.in.Close()
	if late := p.wait(context.Background(), "end", p.patience, func() bool { return false }); late != nil {
		err = errors.Join(late, p.cmd.Process.Kill())
		<-p.ended
		return err
	}
	if !p.cmd.ProcessState.Success() {
		return p.cause
	}
	return err
}
