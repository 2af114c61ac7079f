// Command mkptx compiles the CUDA sources of package kernels to PTX with NVRTC.
//
//	mkptx -nvrtc libnvrtc.so.11.2 -out DIR [-define NAME=VALUE] zero_blocks.cu ...
//
// It writes NAME.ptx into DIR for each NAME.cu. The .cuh files beside a source
// are its headers. A warning is an error. The output depends on the sources and the compiler alone:
// the compiler's own header is replaced, and any other release of NVRTC than
// the pinned one is refused.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/kvgate/kvgate/cuda/nvrtc"
)

const (
	release = "11.8"       // of NVRTC
	isa     = "7.8"        // the PTX ISA that it writes; drivers from R520 take it
	target  = "compute_70" // the oldest that the kernels are for
)

func main() {
	library := flag.String("nvrtc", "", "path of libnvrtc.so of CUDA "+release)
	out := flag.String("out", ".", "folder for the PTX")
	define := flag.String("define", "", "a macro, as NAME=VALUE")
	flag.Parse()
	if err := run(*library, *out, *define, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "mkptx:", err)
		os.Exit(1)
	}
}

func run(library, out, define string, sources []string) error {
	if len(sources) == 0 {
		return errors.New("no sources given")
	}
	if library == "" {
		return errors.New("no -nvrtc given: ./build.sh deps fetches the wheel that has it")
	}
	c, err := nvrtc.Open(library)
	if err != nil {
		return err
	}
	defer c.Close()
	if major, minor := c.Version(); fmt.Sprintf("%d.%d", major, minor) != release {
		return fmt.Errorf("%s is NVRTC %d.%d; the committed PTX is made with %s", c.Path(), major, minor, release)
	}
	for _, path := range sources {
		ptx, err := compileFile(c, path, define)
		if err != nil {
			return err
		}
		name := strings.TrimSuffix(filepath.Base(path), ".cu") + ".ptx"
		if err := os.WriteFile(filepath.Join(out, name), ptx, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func compileFile(c *nvrtc.Library, path, define string) ([]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*.cuh"))
	if err != nil {
		return nil, err
	}
	p := nvrtc.Program{Name: filepath.Base(path), Text: string(text), Headers: map[string]string{},
		Options: []string{"--gpu-architecture=" + target, "--std=c++17"}}
	for _, n := range names {
		h, err := os.ReadFile(n)
		if err != nil {
			return nil, err
		}
		p.Headers[filepath.Base(n)] = string(h)
	}
	if define != "" {
		p.Options = append(p.Options, "-D"+define)
	}
	o, err := c.Compile(p)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if o.Log != "" {
		return nil, fmt.Errorf("%s: the compiler warns:\n%s", path, o.Log)
	}
	what := p.Name
	if define != "" {
		what += ", " + define + ","
	}
	return normalise(what, o.PTX)
}

// normalise puts a header of our own in the place of the compiler's, which
// names its build.
func normalise(name string, ptx []byte) ([]byte, error) {
	i := bytes.Index(ptx, []byte("\n.version "+isa+"\n"))
	if i < 0 {
		return nil, fmt.Errorf("%s: the compiler did not write PTX ISA %s", name, isa)
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, "// Made from %s with NVRTC %s for %s. Not edited by hand: ./build.sh ptx makes it anew.\n",
		name, release, target)
	for line := range bytes.Lines(ptx[i:]) {
		b.Write(bytes.TrimRight(line, " \t\n"))
		b.WriteByte('\n')
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n'), nil
}
