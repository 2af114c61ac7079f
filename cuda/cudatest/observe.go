package cudatest

import (
	"errors"
	"fmt"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/cuda"
)

// Observed begins each line in which a test says what hardware answered to a
// question that no page answers: "observation: WHAT: ANSWER". The answer is the
// name of a code, or a figure.
const Observed = "observation: "

// answers is for questions that only hardware can answer. A simulated device
// gives one of the answers that are wanted; of a real one the answer is written
// down, and none is wrong.
func (x *bench) answers(what string, err error, want ...cuda.Code) {
	x.t.Helper()
	if !x.simulated() {
		x.t.Logf("%s%s: %v", Observed, what, code(err))
		return
	}
	for _, w := range want {
		if errors.Is(err, w) {
			return
		}
	}
	if err == nil && len(want) == 0 {
		return
	}
	require.FailNow(x.t, "another answer", "%s: %v, want one of %v", what, err, want)
}

// shows is answers for what is no error: on a simulated device it has to hold.
func (x *bench) shows(what string, holds bool, format string, args ...any) {
	x.t.Helper()
	if x.simulated() {
		require.True(x.t, holds, "%s: %s", what, fmt.Sprintf(format, args...))
		return
	}
	x.t.Logf("%s%s: %t, %s", Observed, what, holds, fmt.Sprintf(format, args...))
}

// code returns what an error comes down to.
func code(err error) cuda.Code {
	if c, ok := errors.AsType[cuda.Code](err); ok || err == nil {
		return c
	}
	return cuda.ErrUnknown
}
