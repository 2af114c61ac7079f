package nixltest

import (
	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/nixl"
)

// connectInside is connect, with a region inside A's and one inside B's that
// begins where B's does.
func (r *rig) connectInside() (innerA, innerB nixl.Registration) {
	r.Helper()
	r.regA, r.regB = r.register(r.A, r.BufferA), r.register(r.B, r.BufferB)
	innerA, err := r.A.Register(r.Memory, []nixl.Descriptor{r.BufferA.at(Size/4, Size/4)})
	require.NoError(r, err)
	innerB, err = r.B.Register(r.Memory, []nixl.Descriptor{r.BufferB.at(0, Size/2)})
	require.NoError(r, err)
	r.peer = r.add(r.A, r.B)
	fill(r.BufferB.Data, 1)
	return innerA, innerB
}

func testContained(r *rig) {
	innerA, innerB := r.connectInside()
	// All of the outer one is there: before the inner one, in it, across its
	// ends and behind it.
	for off := uint64(0); off < Size; off += Size / 8 {
		r.run(r.spec(nixl.Read, off, Size/8))
	}
	r.run(r.spec(nixl.Read, 0, Size))
	r.onlyCopied(0, Size)
	// The inner one outlives the outer one, which is closed all the same.
	was := r.transfer(r.spec(nixl.Read, 0, 64))
	require.NoError(r, r.regA.Close())
	r.refused(was.Post(), nixl.ErrNotRegistered)
	_, err := r.A.NewTransfer(r.spec(nixl.Read, Size/4-1, 64))
	r.refused(err, nixl.ErrNotRegistered)
	r.run(r.spec(nixl.Read, Size/4, Size/4))
	// So does the outer one that comes back.
	r.regA = r.register(r.A, r.BufferA)
	require.NoError(r, innerA.Close())
	require.NoError(r, innerB.Close())
	r.peer = r.add(r.A, r.B)
	r.run(r.spec(nixl.Read, 0, Size))
	require.NoError(r, r.regA.Close())
	_, err = r.A.NewTransfer(r.spec(nixl.Read, Size/4, 64))
	r.refused(err, nixl.ErrNotRegistered)
}

func testContainedBusy(r *rig) {
	innerA, _ := r.connectInside()
	t := r.transfer(r.spec(nixl.Read, Size/4, Size/4))
	require.NoError(r, t.Post())
	require.ErrorIs(r, r.regA.Close(), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	require.NoError(r, r.regA.Close())
	t = r.transfer(r.spec(nixl.Read, Size/4, Size/4))
	require.NoError(r, t.Post())
	require.ErrorIs(r, innerA.Close(), nixl.ErrBusy)
	require.NoError(r, r.wait(t))
	r.onlyCopied(Size/4, Size/4)
	require.NoError(r, innerA.Close())
}

func testPartialOverlap(r *rig) {
	middle, err := r.A.Register(r.Memory, []nixl.Descriptor{r.BufferA.at(Size/4, Size/2)})
	require.NoError(r, err)
	r.register(r.B, r.BufferB)
	r.peer = r.add(r.A, r.B)
	fill(r.BufferB.Data, 1)
	for _, d := range []nixl.Descriptor{
		r.BufferA.at(0, Size/4+1),      // its begin
		r.BufferA.at(3*Size/4-1, 4096), // its end
		r.BufferA.at(Size/4, Size/2+1), // around it, from the same begin
		r.BufferA.at(Size/4-1, Size/2+1),
		r.BufferA.all()[0],
	} {
		_, err := r.A.Register(r.Memory, []nixl.Descriptor{r.BufferA.at(0, 4096), d})
		r.refused(err, nixl.ErrOverlap)
	}
	// Nothing of a refused list stayed.
	_, err = r.A.NewTransfer(r.spec(nixl.Read, 0, 64))
	r.refused(err, nixl.ErrNotRegistered)
	r.run(r.spec(nixl.Read, Size/4, Size/2))
	r.onlyCopied(Size/4, Size/2)
	// What only touches it is none.
	_, err = r.A.Register(r.Memory, []nixl.Descriptor{r.BufferA.at(0, Size/4), r.BufferA.at(3*Size/4, 4096)})
	require.NoError(r, err)
	require.NoError(r, middle.Close())
}
