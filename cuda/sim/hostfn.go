package sim

import (
	"fmt"
	"runtime"
	"sync/atomic"

	"github.com/kvgate/kvgate/cuda"
)

// hostFunc is a function that streams call on the host.
type hostFunc struct {
	name   string
	fn     func(arg uint64) // nil: a signal
	calls  atomic.Uint64
	called moment // of the last call, for who checks
}

// NewHostFunc makes fn what [cuda.Batch.Signal] calls. The name appears in
// reports. fn runs on a goroutine of the world's, with its OS thread to itself
// and the machine not locked, one function of the device after the other; its
// stream waits for it, and on virtual time so does everybody else.
//
// As in CUDA it must call neither the device, which refuses with
// [cuda.ErrNotPermitted], nor the world, nor wait for what a stream has still to
// do. It is not called once the device is dead or closed.
func (d *Device) NewHostFunc(name string, fn func(arg uint64)) (cuda.HostFunc, error) {
	const op = "make host function"
	if fn == nil {
		return 0, invalid(op, "%q is no function", name)
	}
	return d.addHostFunc(op, &hostFunc{name: fmt.Sprintf("host function %q", name), fn: fn})
}

// NewSignal returns a host function that counts its calls.
func (d *Device) NewSignal() (cuda.HostFunc, error) {
	return d.addHostFunc("make signal", &hostFunc{name: "signal"})
}

func (d *Device) addHostFunc(op string, f *hostFunc) (cuda.HostFunc, error) {
	if err := d.call(op, 0); err != nil {
		return 0, err
	}
	defer d.world.Exit()
	h := cuda.HostFunc(d.handle(kindHostFunc))
	d.hostFuncs[h] = f
	return h, nil
}

// SignalCount returns how often a host function has been called.
func (d *Device) SignalCount(h cuda.HostFunc) (uint64, error) {
	const op = "count signals"
	if err := d.permitted(op); err != nil {
		return 0, err
	}
	d.world.Enter(0)
	defer d.world.Exit()
	if d.closed {
		return 0, d.gone(op)
	}
	f := d.hostFuncs[h]
	if f == nil {
		return 0, badHandle(op, "host function", uint64(h))
	}
	d.seenByHost(&f.called)
	return f.calls.Load(), nil
}

// DestroyHostFunc makes the handle invalid. Calls that are in streams still
// come.
func (d *Device) DestroyHostFunc(h cuda.HostFunc) error {
	const op = "destroy host function"
	if err := d.call(op, 0); err != nil {
		return err
	}
	defer d.world.Exit()
	if d.hostFuncs[h] == nil {
		return badHandle(op, "host function", uint64(h))
	}
	delete(d.hostFuncs, h)
	return nil
}

func (d *Device) submitSignal(c *cuda.Command, s *stream) error {
	f := d.hostFuncs[cuda.HostFunc(c.A)]
	if f == nil {
		return badHandle(c.Op.String(), "host function", c.A)
	}
	n := s.push(c.Op)
	n.a, n.b, n.host = c.A, c.B, f
	s.advance()
	return nil
}

// callHost has the head's function called.
func (s *stream) callHost() {
	d := s.d
	if d.stopped() {
		return
	}
	d.toCall = append(d.toCall, s)
	if !d.calling {
		d.calling = true
		d.world.Start("host functions of "+d.name, d.callHostFuncs)
	}
}

// callHostFuncs calls what there is to call. Its goroutine keeps its OS thread,
// by which calls of the device from within a function are told.
func (d *Device) callHostFuncs() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		d.world.Enter(0)
		if d.stopped() || len(d.toCall) == 0 {
			d.calling = false
			d.world.Exit()
			return
		}
		s := d.toCall[0]
		d.toCall = append(d.toCall[:0], d.toCall[1:]...)
		f, arg := s.queue[s.head].host, s.queue[s.head].b
		d.world.Exit()

		if f.fn != nil {
			d.hostThread.Store(threadID())
			f.fn(arg)
			d.hostThread.Store(0)
		}
		f.calls.Add(1)

		d.world.Enter(0)
		if !d.stopped() {
			d.activity.Add(1)
			s.begins(&s.queue[s.head])
			if l := s.timeline(); l != nil {
				f.called.clock = l.Now()
			}
			s.complete()
		}
		d.world.Exit()
		d.world.Notify()
	}
}

// permitted refuses calls from within a host function.
func (d *Device) permitted(op string) error {
	if t := d.hostThread.Load(); t != 0 && t == threadID() {
		return &cuda.Error{Code: cuda.ErrNotPermitted, Op: op, Detail: "from within a host function"}
	}
	return nil
}
