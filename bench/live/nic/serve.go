package nic

import (
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/kvgate/kvgate/clock"
	"github.com/kvgate/kvgate/cuda"
)

// OpenDevice opens the device that a process works with, on the wall clock: a
// simulated one so many times as slow as its model.
type OpenDevice func(slow float64) (cuda.Device, error)

// server is the other end, in a process of its own.
type server struct {
	hello
	open    OpenDevice
	store   store
	engine  *engine        // IPC
	target  cuda.DevicePtr // IPC: the memory to write to, as it is here
	dev     cuda.Device
	clk     clock.Clock
	closers []func() error

	mu  sync.Mutex
	enc *gob.Encoder
}

// answers is the file that the other process inherits to answer on.
const answers = 3

// Serve is the other end of a NIC, in a program for which [Asked] holds: it does
// what is asked for until nobody asks any more.
func Serve(open OpenDevice) error {
	out := os.NewFile(answers, "answers")
	return errors.Join(serve(os.Stdin, out, open), out.Close())
}

func serve(in io.Reader, out io.Writer, open OpenDevice) (err error) {
	s := &server{open: open, clk: clock.Wall(), enc: gob.NewEncoder(out)}
	dec := gob.NewDecoder(in)
	if err := dec.Decode(&s.hello); err != nil {
		return fmt.Errorf("hello: %w", err)
	}
	defer func() { err = errors.Join(err, s.close()) }()
	var a answer
	switch s.Kind {
	case NIXL:
		a, err = s.serveNIXL()
	case IPC:
		a, err = s.serveIPC()
	default:
		err = fmt.Errorf("no kind %q", s.Kind)
	}
	if err != nil {
		return s.enc.Encode(answer{Err: err.Error()})
	}
	a.Addr = s.store.addr()
	if err := s.enc.Encode(a); err != nil {
		return err
	}
	return s.serve(dec)
}

// serve does orders, beside each other, until there are no more.
func (s *server) serve(dec *gob.Decoder) error {
	var under sync.WaitGroup
	defer under.Wait()
	for {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("order: %w", err)
		}
		// Copies are in the stream in the order in which they were asked for.
		wait, err := s.begin(o)
		under.Add(1)
		s.clk.Go("order", func() {
			defer under.Done()
			if err == nil {
				err = wait()
			}
			s.report(o.ID, err)
		})
	}
}

// begin starts what is ordered; what it returns waits for the end.
func (s *server) begin(o order) (wait func() error, err error) {
	if o.Prepare {
		return func() error { return s.store.prepare(o.Slot, o.Request) }, nil
	}
	return s.beginCopies(o.Runs)
}

// report tells what became of an order. That nobody listens is told by the end of
// the orders.
func (s *server) report(id uint64, err error) {
	r := report{ID: id}
	if err != nil {
		r.Err = err.Error()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_ = s.enc.Encode(r)
}

func (s *server) close() error {
	var errs []error
	for i := len(s.closers) - 1; i >= 0; i-- {
		errs = append(errs, s.closers[i]())
	}
	return errors.Join(errs...)
}

func (s *server) onClose(fn func() error) { s.closers = append(s.closers, fn) }

// openDevice opens a device for the server to work with.
func (s *server) openDevice() (err error) {
	if s.dev, err = s.open(s.Slow); err != nil {
		return fmt.Errorf("its own device: %w", err)
	}
	s.onClose(s.dev.Close)
	s.clk = s.dev.Clock()
	return nil
}

// keep has prompts in memory of the device.
func (s *server) keep(pinned bool) error {
	d, err := newOnDevice(s.dev, s.Prompts, pinned)
	if err != nil {
		return err
	}
	s.store = d
	s.onClose(d.close)
	return nil
}
