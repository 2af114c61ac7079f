package cuda

import (
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestErrorsMatchTheirCode(t *testing.T) {
	err := fmt.Errorf("gate: %w", &Error{Code: ErrNotReady, Op: "query", Detail: "event 3"})
	require.ErrorIs(t, err, ErrNotReady)
	require.NotErrorIs(t, err, ErrInvalidValue)
	require.Equal(t, "gate: cuda: query: event 3: CUDA_ERROR_NOT_READY", err.Error())
	require.Equal(t, "cuda: query: CUDA_ERROR_NOT_READY", (&Error{Code: ErrNotReady, Op: "query"}).Error())
	var c Code
	require.True(t, errors.As(err, &c))
	require.Equal(t, ErrNotReady, c)
}

func TestStickyErrors(t *testing.T) {
	apart := map[Code]bool{ErrECC: true, ErrNVLink: true, ErrContained: true, ErrTensorLeak: true, ErrMPSTerminated: true, ErrExternalDevice: true}
	alive := map[Code]bool{ErrLaunchResources: true, ErrHostRegistered: true, ErrHostNotRegistered: true,
		ErrPeerEnabled: true, ErrPeerNotEnabled: true}
	for c := range codeNames {
		want := apart[c] || c >= ErrIllegalAddress && c <= ErrLaunchFailed && !alive[c]
		require.Equal(t, want, c.Sticky(), c.String())
		require.Equal(t, want, Sticky(fmt.Errorf("x: %w", &Error{Code: c})), c.String())
	}
	require.False(t, Sticky(nil))
	require.False(t, Sticky(ErrClosed))
	require.Equal(t, "CUDA_ERROR(4711)", Code(4711).String())
}

func TestSubmitError(t *testing.T) {
	err := error(&SubmitError{Index: 4, Op: OpRecord, Done: []int{3, 1}, Err: &Error{Code: ErrInvalidHandle, Op: "record"}})
	require.ErrorIs(t, err, ErrInvalidHandle)
	require.Equal(t, "cuda: submit: command 4 (record): cuda: record: CUDA_ERROR_INVALID_HANDLE", err.Error())
}

func TestMemoryKinds(t *testing.T) {
	require.Equal(t, "device pinned managed pageable unknown kind of memory",
		fmt.Sprint(DeviceMemory, PinnedMemory, ManagedMemory, PageableMemory, MemoryKind(9)))
}
