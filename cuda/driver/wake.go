package driver

import "fmt"

// Wake is how a device tells that marks may have fired: see [Device.Watch].
// Whether one has is what its event says, always.
type Wake uint8

const (
	// WakeHelper: threads of the driver's own, one for a few streams, wait for
	// the marks by blocking synchronisation.
	WakeHelper Wake = iota + 1
	// WakeHostFunc: a host function behind each mark. It holds its stream until
	// it has run (about 100 us after the mark: velox, issue 6096), and is not
	// called after a device error.
	WakeHostFunc
	// WakeWord: the stream writes a word of mapped memory behind each mark, and
	// a thread looks at the words while marks are outstanding. A word counts its
	// stream's marks and wraps; one that falls makes [Watched.Poll] fail. After a
	// device error words stop.
	WakeWord
)

var wakeNames = [...]string{"", "helper thread", "host function", "word"}

func (w Wake) String() string {
	if w >= WakeHelper && w <= WakeWord {
		return wakeNames[w]
	}
	return fmt.Sprintf("wake %d", uint8(w))
}
