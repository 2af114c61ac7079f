package kernels

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

var (
	//go:embed zero_blocks.ptx
	zeroPTX []byte
	//go:embed reset_state.ptx
	resetPTX []byte
	//go:embed checksum_blocks.ptx
	checksumPTX []byte
)

// kernel is one of the kernels, variant where its ids are.
type (
	kernel  uint8
	variant uint8
)

const (
	zeroBlocks kernel = iota
	resetState
	checksumBlocks
	kernelEnd
)

const (
	inMemory variant = iota
	inFew
	inMany
	variantEnd
)

var images = [kernelEnd]struct {
	file    string
	ptx     []byte
	entries [variantEnd]string
	size    [variantEnd]int // of the parameters
}{
	zeroBlocks: {"zero_blocks.ptx", zeroPTX,
		[variantEnd]string{"zero_blocks", "zero_blocks_56", "zero_blocks_1012"},
		[variantEnd]int{int(unsafe.Sizeof(zeroArgs[memoryArgs]{})), int(unsafe.Sizeof(zeroArgs[few]{})),
			int(unsafe.Sizeof(zeroArgs[many]{}))}},
	resetState: {"reset_state.ptx", resetPTX,
		[variantEnd]string{"reset_state", "reset_state_56", "reset_state_1012"},
		[variantEnd]int{int(unsafe.Sizeof(resetArgs[memoryArgs]{})), int(unsafe.Sizeof(resetArgs[few]{})),
			int(unsafe.Sizeof(resetArgs[many]{}))}},
	checksumBlocks: {"checksum_blocks.ptx", checksumPTX,
		[variantEnd]string{"checksum_blocks", "checksum_blocks_56", "checksum_blocks_1012"},
		[variantEnd]int{int(unsafe.Sizeof(checksumArgs[memoryArgs]{})), int(unsafe.Sizeof(checksumArgs[few]{})),
			int(unsafe.Sizeof(checksumArgs[many]{}))}},
}

// Set is the kernels of one device, loaded. It is immutable but for Close, and
// safe for use by several goroutines.
type Set struct {
	dev       cuda.Device
	sms       int
	modules   []cuda.Module
	functions [kernelEnd][variantEnd]cuda.Function
}

// Load loads all kernels into a device and launches each once with an empty
// list, so that nothing is left to be loaded when a request comes. It waits for
// those launches on a stream of its own.
func Load(dev cuda.Device) (*Set, error) {
	s := &Set{dev: dev, sms: dev.Info().SMs}
	if err := s.load(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Set) load() error {
	for k, img := range images {
		m, err := s.dev.LoadModule(img.ptx)
		if err != nil {
			return fmt.Errorf("kernels: load %s: %w", img.file, err)
		}
		s.modules = append(s.modules, m)
		for v, entry := range img.entries {
			if s.functions[k][v], err = s.dev.Function(m, entry); err != nil {
				return fmt.Errorf("kernels: %s: %s: %w", img.file, entry, err)
			}
		}
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
			head := headArgs{TileCount: 1}
			copy(b.Launch(stream, s.functions[k][v], geometry(1, s.sms), images[k].size[v]), bytesOf(&head))
		}
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
