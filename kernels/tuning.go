package kernels

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/kvgate/kvgate/cuda"
)

// TuningVersion is the version of a [Tuning] in JSON.
const TuningVersion = 1

var (
	// ErrTuning: a tuning that makes no sense, or of another version.
	ErrTuning = errors.New("bad tuning of the kernels")
	// ErrOtherDevice: a tuning was made on another kind of device.
	ErrOtherDevice = errors.New("tuning of another device")
)

// Store says what stores of pages do in the caches of the device.
type Store string

const (
	// Streaming stores are the first that a cache gives up again: zeroing does
	// not push the model's weights out of L2. It is the default.
	Streaming Store = "streaming"
	// WriteBack stores take their place in the caches like any other.
	WriteBack Store = "write-back"
)

// Variant is how the kernels that write pages are compiled. The zero Variant is
// the default, which is embedded; what else is embedded, [Variants] lists.
type Variant struct {
	Store  Store `json:"store,omitempty"`  // "": Streaming
	Unroll int   `json:"unroll,omitempty"` // 16-byte stores a lane issues in a row, 1 to 16; 0: 8
	// Arch is the virtual architecture to compile for at run time, such as
	// "compute_90"; "": the embedded PTX, or compute_70 where there is none.
	Arch string `json:"arch,omitempty"`
}

// filled returns v with its defaults spelled out.
func (v Variant) filled() Variant {
	if v.Store == "" {
		v.Store = Streaming
	}
	if v.Unroll == 0 {
		v.Unroll = defaultUnroll
	}
	return v
}

func (v Variant) String() string {
	v = v.filled()
	s := fmt.Sprintf("%s, unrolled %d times", v.Store, v.Unroll)
	if v.Arch != "" {
		s += ", " + v.Arch
	}
	return s
}

// Tuning is what suits a device best, as bench/tune finds it. Its zero value means
// the defaults, on any device. It is plain data with a JSON form.
type Tuning struct {
	// Version is TuningVersion.
	Version int `json:"version"`
	// Device is where it was found. Load refuses it on a device of another kind.
	Device TunedDevice `json:"device"`
	// Tile is how many bytes of a page a warp takes at a time: a multiple of 128,
	// up to 512 MiB. Large blocks get larger tiles whatever it says.
	Tile uint64 `json:"tile_bytes"`
	// BlocksPerSM is how many thread blocks of 256 threads a launch has for each SM
	// at most: 1 to 32.
	BlocksPerSM int `json:"blocks_per_sm"`
	// SMs is for how many SMs a launch has thread blocks at most: the budget
	// beside a decode step. 0: for all. The device places thread blocks as it likes:
	// the budget bounds how many are resident, not which SMs they are on.
	SMs     int     `json:"sms,omitempty"`
	Variant Variant `json:"variant"`
	// RankedBy says what the tuning was chosen by: "time", on the simulator
	// "instructions", and on the simulator behind the driver's interface "rehearsal".
	RankedBy string `json:"ranked_by,omitempty"`
}

// TunedDevice is the kind of device that a tuning holds for.
type TunedDevice struct {
	Name       string `json:"name"`
	Capability [2]int `json:"compute_capability"`
	SMs        int    `json:"sms"`
	Simulated  bool   `json:"simulated,omitempty"`
}

func (d TunedDevice) String() string {
	s := fmt.Sprintf("%s (compute capability %d.%d, %d SMs)", d.Name, d.Capability[0], d.Capability[1], d.SMs)
	if d.Simulated {
		s = "simulated " + s
	}
	return s
}

// Tuned returns the kind of a device.
func Tuned(i cuda.Info) TunedDevice {
	return TunedDevice{Name: i.Name, Capability: i.Capability, SMs: i.SMs, Simulated: i.Simulated}
}

// DefaultTuning returns the tuning of a set that is loaded without one.
func DefaultTuning() Tuning {
	return Tuning{Version: TuningVersion, Tile: tileBytes, BlocksPerSM: blocksPerSM, Variant: Variant{}.filled()}
}

// ParseTuning reads the JSON form. The error wraps [ErrTuning] and names the field.
func ParseTuning(text []byte) (*Tuning, error) {
	var t Tuning
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return nil, fmt.Errorf("kernels: tuning: %w: %w", err, ErrTuning)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("kernels: tuning: more than one value: %w", ErrTuning)
	}
	if err := t.Validate(); err != nil {
		return nil, err
	}
	return &t, nil
}

// Validate checks a tuning by itself. The error wraps [ErrTuning].
func (t *Tuning) Validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("kernels: tuning: %s: %w", fmt.Sprintf(format, args...), ErrTuning)
	}
	v := t.Variant.filled()
	switch {
	case t.Version != TuningVersion && *t != (Tuning{}):
		return bad("version %d, this library reads %d", t.Version, TuningVersion)
	case t.Tile%tileAlign != 0 || t.Tile > maxTileBytes:
		return bad("tile_bytes %d, want a multiple of %d up to %d", t.Tile, tileAlign, maxTileBytes)
	case t.BlocksPerSM < 0 || t.BlocksPerSM > maxBlocksPerSM:
		return bad("blocks_per_sm %d, want 1 to %d", t.BlocksPerSM, maxBlocksPerSM)
	case t.SMs < 0 || t.SMs > maxSMs:
		return bad("sms %d, want at most %d", t.SMs, maxSMs)
	case v.Store != Streaming && v.Store != WriteBack:
		return bad("store %q, want %q or %q", v.Store, Streaming, WriteBack)
	case v.Unroll < 1 || v.Unroll > maxUnroll:
		return bad("unroll %d, want 1 to %d", v.Unroll, maxUnroll)
	case v.Arch != "" && !isArch(v.Arch):
		return bad("arch %q, want compute_NN", v.Arch)
	}
	return nil
}

// maxSMs is far above what any GPU has, and keeps numbers of warps in 32 bits.
const maxSMs = 1 << 16

func isArch(s string) bool {
	const prefix = "compute_"
	if len(s) < len(prefix)+2 || len(s) > len(prefix)+4 || s[:len(prefix)] != prefix {
		return false
	}
	for _, c := range s[len(prefix):] {
		if (c < '0' || c > '9') && c != 'a' && c != 'f' {
			return false
		}
	}
	return true
}

// Check says whether a tuning holds for a device. The error wraps [ErrTuning] or
// [ErrOtherDevice] and names both devices. A tuning that names no device holds for
// all.
func (t *Tuning) Check(i cuda.Info) error {
	if err := t.Validate(); err != nil {
		return err
	}
	if here := Tuned(i); t.Device != (TunedDevice{}) && t.Device != here {
		return fmt.Errorf("kernels: tuning was found on a %v, this is a %v: %w", t.Device, here, ErrOtherDevice)
	}
	return nil
}
