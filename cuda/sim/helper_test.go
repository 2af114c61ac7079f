package sim

import (
	"encoding/binary"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// rig is a device with short forms of what tests do most.
type rig struct {
	*Device
	t testing.TB
	b cuda.Batch
}

func newRig(t testing.TB, o Options) *rig {
	t.Helper()
	d, err := New(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return &rig{Device: d, t: t}
}

func (r *rig) alloc(name string, size uint64) cuda.DevicePtr {
	r.t.Helper()
	return r.allocScaled(name, size, 1)
}

func (r *rig) allocScaled(name string, size uint64, scale uint32) cuda.DevicePtr {
	r.t.Helper()
	p, err := r.Alloc(size, cuda.AllocOptions{Name: name, CostScale: scale})
	require.NoError(r.t, err)
	return p
}

func (r *rig) pinned(name string, size uint64) cuda.PinnedBuffer {
	r.t.Helper()
	p, err := r.AllocPinned(size, cuda.AllocOptions{Name: name})
	require.NoError(r.t, err)
	return p
}

func (r *rig) stream(name string) cuda.Stream { r.t.Helper(); return r.streamOf(name, false) }

func (r *rig) streamOf(name string, high bool) cuda.Stream {
	r.t.Helper()
	s, err := r.NewStream(cuda.StreamOptions{Name: name, HighPriority: high})
	require.NoError(r.t, err)
	return s
}

func (r *rig) event() cuda.Event {
	r.t.Helper()
	e, err := r.NewEvent()
	require.NoError(r.t, err)
	return e
}

func (r *rig) submit(build func(b *cuda.Batch)) {
	r.t.Helper()
	r.b.Reset()
	build(&r.b)
	require.NoError(r.t, r.Submit(&r.b))
}

// took returns how long what build submits takes from the start of Submit to
// the end of the work, on the machine's clock.
func (r *rig) took(build func(b *cuda.Batch)) time.Duration {
	r.t.Helper()
	require.NoError(r.t, r.Sync(bg))
	begin := r.world.Now()
	r.submit(build)
	require.NoError(r.t, r.Sync(bg))
	return r.world.Now() - begin - r.costs.Wake
}

func (r *rig) read(p cuda.DevicePtr, n int) []byte {
	r.t.Helper()
	b := make([]byte, n)
	require.NoError(r.t, r.Read(b, p))
	return b
}

// peek reads without letting time pass.
func (r *rig) peek(p cuda.DevicePtr, n int) []byte {
	r.t.Helper()
	r.world.Enter(0)
	defer r.world.Exit()
	b := make([]byte, n)
	require.NoError(r.t, r.mem.Read(uint64(p), b))
	return b
}

var one = cuda.Geometry{Grid: [3]uint32{1, 1, 1}, Block: [3]uint16{1, 1, 1}}

// model registers fn under the test's name and returns its function.
func (r *rig) model(fn ModelFunc) cuda.Function {
	r.t.Helper()
	RegisterModel(r.t.Name(), fn)
	f, err := r.Model(r.t.Name())
	require.NoError(r.t, err)
	return f
}

const storePTX = `.version 7.8
.target sm_70
.address_size 64
// store(p, step): thread block i writes 1 to the word at p + i * step.
.visible .entry store(.param .u64 store_p, .param .u64 store_step)
{
	.reg .b32	%r<3>;
	.reg .b64	%rd<6>;
	ld.param.u64	%rd1, [store_p];
	ld.param.u64	%rd2, [store_step];
	mov.u32	%r1, %ctaid.x;
	cvt.u64.u32	%rd3, %r1;
	mad.lo.s64	%rd4, %rd3, %rd2, %rd1;
	cvta.to.global.u64	%rd5, %rd4;
	mov.u32	%r2, 1;
	st.global.u32	[%rd5], %r2;
	ret;
}
`

func (r *rig) storeKernel() cuda.Function {
	r.t.Helper()
	m, err := r.LoadModule([]byte(storePTX))
	require.NoError(r.t, err)
	f, err := r.Function(m, "store")
	require.NoError(r.t, err)
	return f
}

func store(b *cuda.Batch, s cuda.Stream, f cuda.Function, p cuda.DevicePtr, step uint64, blocks uint32) {
	g := one
	g.Grid[0] = blocks
	a := b.Launch(s, f, g, 16)
	binary.LittleEndian.PutUint64(a, uint64(p))
	binary.LittleEndian.PutUint64(a[8:], step)
}
