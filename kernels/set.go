package kernels

import (
	"context"
	"errors"
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// kernel is one of the kernels, variant where its ids are.
type (
	kernel  uint8
	variant uint8
)

const (
	zeroBlocks kernel = iota
	fillBlocks
	resetState
	checksumBlocks
	copyBlocks
	prepareStep
	kernelEnd
)

const (
	inMemory variant = iota
	inFew
	inMany
	variantEnd
)

var images = [kernelEnd]struct {
	name    string // of the source and the PTX, without an extension
	entries [variantEnd]string
	size    [variantEnd]int // of the parameters
}{
	zeroBlocks: {"zero_blocks", [variantEnd]string{"zero_blocks", "zero_blocks_56", "zero_blocks_1012"},
		sizes[zeroArgs[memoryArgs], zeroArgs[few], zeroArgs[many]]()},
	fillBlocks: {"fill_blocks", [variantEnd]string{"fill_blocks", "fill_blocks_56", "fill_blocks_1012"},
		sizes[ownArgs[memoryArgs], ownArgs[few], ownArgs[many]]()},
	resetState: {"reset_state", [variantEnd]string{"reset_state", "reset_state_56", "reset_state_1012"},
		sizes[ownArgs[memoryArgs], ownArgs[few], ownArgs[many]]()},
	checksumBlocks: {"checksum_blocks", [variantEnd]string{"checksum_blocks", "checksum_blocks_56", "checksum_blocks_1012"},
		sizes[ownArgs[memoryArgs], ownArgs[few], ownArgs[many]]()},
	copyBlocks: {"copy_blocks", [variantEnd]string{"copy_blocks", "copy_blocks_28", "copy_blocks_504"},
		sizes[copyArgs[memoryArgs], copyArgs[fewCopies], copyArgs[manyCopies]]()},
	prepareStep: {"prepare_step", [variantEnd]string{"prepare_step", "prepare_step_54", "prepare_step_439"},
		sizes[cuda.DevicePtr, stepArgs[fewSteps], stepArgs[manySteps]]()},
}

func sizes[A, B, C any]() [variantEnd]int {
	var a A
	var b B
	var c C
	return [variantEnd]int{int(unsafe.Sizeof(a)), int(unsafe.Sizeof(b)), int(unsafe.Sizeof(c))}
}

// Set is the kernels of one device, loaded. It is immutable but for Close, and
// safe for use by several goroutines.
type Set struct {
	*loaded
	tuning Tuning // with nothing left to a default
	sms    int    // that launches may have thread blocks for
}

// loaded is what sets share that differ in their budget of SMs.
type loaded struct {
	dev       cuda.Device
	modules   []cuda.Module
	functions [kernelEnd][variantEnd]cuda.Function
	words     [len(wordsEntries)]cuda.Function
}

// LoadOptions are the options of [LoadWithOptions]. The zero value is what [Load]
// takes.
type LoadOptions struct {
	// Tuning is what bench/tune found for this device: see [ParseTuning]. nil:
	// [DefaultTuning].
	Tuning *Tuning
	// Compile makes PTX, or a cubin, of a program. It is called where the tuning's
	// variant is not embedded. Package cuda/nvrtc has a compiler.
	Compile func(Source) ([]byte, error)
}

// Load loads all kernels into a device and launches each once with an empty
// list, so that nothing is left to be loaded when a request comes. It waits for
// those launches on a stream of its own.
func Load(dev cuda.Device) (*Set, error) { return LoadWithOptions(dev, LoadOptions{}) }

// LoadWithOptions is [Load] with options. It fails with [ErrOtherDevice] where the
// tuning is of another kind of device, and with [ErrTuning] where it makes no
// sense.
func LoadWithOptions(dev cuda.Device, o LoadOptions) (*Set, error) {
	s := &Set{loaded: &loaded{dev: dev}, tuning: DefaultTuning()}
	if t := o.Tuning; t != nil {
		if err := t.Check(dev.Info()); err != nil {
			return nil, err
		}
		if s.tuning.SMs, s.tuning.Variant = t.SMs, t.Variant.filled(); t.Tile > 0 {
			s.tuning.Tile = t.Tile
		}
		if t.BlocksPerSM > 0 {
			s.tuning.BlocksPerSM = t.BlocksPerSM
		}
	}
	s.bound()
	if err := s.load(o.Compile); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Device returns the device that the kernels were loaded into.
func (s *Set) Device() cuda.Device { return s.dev }

// Shape is how launches are cut. See [Tuning], which has the same fields. A field of
// 0 stays what it was.
type Shape struct {
	Tile        uint64
	BlocksPerSM int
	SMs         int // negative: all
}

// WithShape returns the same kernels with launches of another shape, such as a
// budget of SMs beside a decode step. Tables keep the tiles that they were made with.
// Both are closed by closing either. A shape that makes no sense is [ErrTuning].
func (s *Set) WithShape(h Shape) (*Set, error) {
	c := *s
	if h.Tile > 0 {
		c.tuning.Tile = h.Tile
	}
	if h.BlocksPerSM != 0 {
		c.tuning.BlocksPerSM = h.BlocksPerSM
	}
	if h.SMs != 0 {
		c.tuning.SMs = max(h.SMs, 0)
	}
	if err := c.tuning.Validate(); err != nil {
		return nil, err
	}
	c.bound()
	return &c, nil
}

// bound sets how many SMs launches may have thread blocks for.
func (s *Set) bound() {
	s.sms = s.dev.Info().SMs
	if n := s.tuning.SMs; n > 0 && (s.sms <= 0 || n < s.sms) {
		s.sms = n
	}
}

func (s *Set) load(compile func(Source) ([]byte, error)) error {
	for k, img := range images {
		ptx, err := s.tuning.Variant.image(kernel(k), compile)
		if err != nil {
			return err
		}
		m, err := s.dev.LoadModule(ptx)
		if err != nil {
			return fmt.Errorf("kernels: load %s: %w", img.name, err)
		}
		s.modules = append(s.modules, m)
		for v, entry := range img.entries {
			if s.functions[k][v], err = s.dev.Function(m, entry); err != nil {
				return fmt.Errorf("kernels: %s: %s: %w", img.name, entry, err)
			}
		}
	}
	if err := s.loadWords(); err != nil {
		return err
	}
	return s.warmUp()
}

func (s *Set) warmUp() error {
	stream, err := s.dev.NewStream(cuda.StreamOptions{Name: "kernels warm-up"})
	if err != nil {
		return fmt.Errorf("kernels: warm-up: %w", err)
	}
	var b cuda.Batch
	for k := range kernelEnd {
		for v := range variantEnd {
			args := s.launchItems(&b, stream, k, v, 1)
			switch k {
			case prepareStep: // no step, or one of no sections
			case copyBlocks:
				head := copyHead{TileCount: 1}
				copy(args, bytesOf(&head))
			default:
				head := headArgs{TileCount: 1}
				copy(args, bytesOf(&head))
			}
		}
	}
	for _, e := range wordsEntries {
		s.writeWords(&b, stream, 0, 0, make([]Run, e.runs)) // runs of no words
	}
	err = s.dev.Submit(&b)
	if err == nil {
		err = s.dev.SyncStream(context.Background(), stream)
	}
	if err := errors.Join(err, s.dev.DestroyStream(stream)); err != nil {
		return fmt.Errorf("kernels: warm-up: %w", err)
	}
	return nil
}

// Close unloads the kernels. No launch of theirs may be pending. A second Close
// does nothing.
func (s *Set) Close() error {
	var errs []error
	for _, m := range s.modules {
		errs = append(errs, s.dev.UnloadModule(m))
	}
	s.modules = nil
	return errors.Join(errs...)
}
