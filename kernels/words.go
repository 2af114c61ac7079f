package kernels

import (
	"fmt"
	"unsafe"

	"github.com/kvgate/kvgate/cuda"
)

// Run is a run of 32-bit words of a table: word At + i gets Value + i*Step, for i
// from 0 to Count-1.
type Run struct {
	At    uint32
	Value int32
	Count uint16
	Step  uint16
}

const (
	fewRuns  = 20
	manyRuns = 340
)

// wordsArgs are the parameters of write_words.
type wordsArgs[L any] struct {
	wordsHead
	Runs L
}

type wordsHead struct {
	Table cuda.DevicePtr
	Words uint32
	Count uint32
}

const wordsName = "write_words"

// wordsEntries are the kernels of write_words, which knows no blocks and so has no
// variants.
var wordsEntries = [...]struct {
	name string
	runs int
	size int
}{
	{"write_words_20", fewRuns, int(unsafe.Sizeof(wordsArgs[[fewRuns]Run]{}))},
	{"write_words_340", manyRuns, int(unsafe.Sizeof(wordsArgs[[manyRuns]Run]{}))},
}

// loadWords loads write_words.
func (s *Set) loadWords() error {
	ptx, err := embedded.ReadFile(wordsName + ".ptx")
	if err != nil {
		return err
	}
	m, err := s.dev.LoadModule(ptx)
	if err != nil {
		return fmt.Errorf("kernels: load %s: %w", wordsName, err)
	}
	s.modules = append(s.modules, m)
	for i, e := range wordsEntries {
		if s.words[i], err = s.dev.Function(m, e.name); err != nil {
			return fmt.Errorf("kernels: %s: %s: %w", wordsName, e.name, err)
		}
	}
	return nil
}

// WriteWords adds writes of runs of words into the table of so many words at an
// address that is a multiple of 4. The runs travel in the launch arguments, at
// most 340 in each launch; runs is not kept. They are written at the same time:
// no word may be in two of them.
//
// It fails, and adds nothing, when a run leaves the table.
func (s *Set) WriteWords(b *cuda.Batch, stream cuda.Stream, table cuda.DevicePtr, words uint32, runs []Run) error {
	if s.modules == nil {
		return fmt.Errorf("kernels: set: %w", cuda.ErrClosed)
	}
	if table == 0 || table%4 != 0 {
		return fmt.Errorf("kernels: table of words at %#x, want a multiple of 4: %w", uint64(table), cuda.ErrInvalidValue)
	}
	for i, r := range runs {
		if uint64(r.At)+uint64(r.Count) > uint64(words) {
			return fmt.Errorf("kernels: run %d: %d words from %d on, of a table of %d: %w", i, r.Count, r.At, words, cuda.ErrInvalidValue)
		}
	}
	for len(runs) > 0 {
		part := runs[:min(len(runs), manyRuns)]
		s.writeWords(b, stream, table, words, part)
		runs = runs[len(part):]
	}
	return nil
}

func (s *Set) writeWords(b *cuda.Batch, stream cuda.Stream, table cuda.DevicePtr, words uint32, runs []Run) {
	v := 0
	if len(runs) > fewRuns {
		v = 1
	}
	head := wordsHead{Table: table, Words: words, Count: uint32(len(runs))}
	args := b.Launch(stream, s.words[v], geometry(uint64(max(len(runs), 1)), s.sms, s.tuning.BlocksPerSM), wordsEntries[v].size)
	n := copy(args, bytesOf(&head))
	copy(args[n:], unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(runs))), len(runs)*int(unsafe.Sizeof(Run{}))))
}
