package kernels

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// The kernels come in variants: how they store pages is chosen when they are
// compiled (pages.cuh). Those that people need without a compiler are embedded as
// PTX for compute_70, the default beside its sources and others in folders. More
// can be compiled at run time from the sources, which are embedded too. Variants
// for later architectures get a folder here once they were seen on a GPU.

//go:embed *.ptx writeback/*.ptx
var embedded embed.FS

//go:embed *.cu *.cuh
var sources embed.FS

const (
	defaultUnroll = 8 // as pages.cuh has it
	maxUnroll     = 16
)

// folders are where the PTX of a variant is. Of a kernel that is not there, the
// variant is the default.
var folders = map[Variant]string{
	{Store: Streaming, Unroll: defaultUnroll}: ".",
	{Store: WriteBack, Unroll: defaultUnroll}: "writeback",
}

// Variants returns those that need no compiler, the default first.
func Variants() []Variant {
	all := []Variant{}
	for v := range folders {
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b Variant) int { return strings.Compare(folders[a], folders[b]) })
	return all
}

// Source is a program for a CUDA compiler, as NVRTC takes it.
type Source struct {
	Name    string
	Text    string
	Headers map[string]string // by the name of the #include
	Options []string
}

// Source returns the program of a kernel's file ("zero_blocks.cu") in a variant.
// The arguments of its kernels are the same in all variants.
func (v Variant) Source(file string) (Source, error) {
	v = v.filled()
	text, err := fs.ReadFile(sources, file)
	if err != nil {
		return Source{}, fmt.Errorf("kernels: no source %q: %w", file, ErrTuning)
	}
	streaming := 0
	if v.Store == Streaming {
		streaming = 1
	}
	arch := v.Arch
	if arch == "" {
		arch = "compute_70"
	}
	s := Source{Name: file, Text: string(text), Headers: map[string]string{}, Options: []string{
		"--gpu-architecture=" + arch, "--std=c++17",
		fmt.Sprintf("-DKVG_STREAMING=%d", streaming), fmt.Sprintf("-DKVG_UNROLL=%d", v.Unroll)}}
	headers, err := fs.Glob(sources, "*.cuh")
	if err != nil {
		return Source{}, err
	}
	for _, h := range headers {
		b, err := fs.ReadFile(sources, h)
		if err != nil {
			return Source{}, err
		}
		s.Headers[h] = string(b)
	}
	return s, nil
}

// image returns the PTX of a kernel in a variant: what is embedded, or what
// compile makes of it.
func (v Variant) image(k kernel, compile func(Source) ([]byte, error)) ([]byte, error) {
	v = v.filled()
	name := images[k].name
	folder, ok := folders[v]
	if ok {
		if ptx, err := embedded.ReadFile(folder + "/" + name + ".ptx"); err == nil && folder != "." {
			return ptx, nil
		}
		return embedded.ReadFile(name + ".ptx")
	}
	if compile == nil {
		return nil, fmt.Errorf("kernels: variant %v is not embedded, and LoadOptions has no compiler: %w", v, ErrTuning)
	}
	s, err := v.Source(name + ".cu")
	if err != nil {
		return nil, err
	}
	ptx, err := compile(s)
	if err != nil {
		return nil, fmt.Errorf("kernels: compile %s, %v: %w", s.Name, v, err)
	}
	return ptx, nil
}
