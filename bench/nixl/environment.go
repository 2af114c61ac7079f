package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/kvgate/kvgate/bench/internal/wheel"
	"github.com/kvgate/kvgate/nixl/libnixl"
)

// environment is where everything lies that is compared.
type environment struct {
	root string // of the repository
	lib  *libnixl.Library
}

func find() (*environment, error) {
	root, err := wheel.Root()
	if err != nil {
		return nil, err
	}
	lib, err := wheel.Open()
	return &environment{root, lib}, err
}

func (e *environment) open(binding string) (measurer, error) {
	switch binding {
	case "c":
		return e.openC()
	case "c-kept":
		return e.openC("kept")
	case "python":
		return e.openPython()
	}
	return openGo(e.lib)
}

// program is a measurer in a process of its own: it reads a number of
// descriptors a line and answers with "phase ns" pairs.
type program struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd}
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.in, p.out = in, bufio.NewScanner(out)
	return p, cmd.Start()
}

func (p *program) measure(n int) (figures, error) {
	if _, err := fmt.Fprintln(p.in, n); err != nil {
		return nil, err
	}
	if !p.out.Scan() {
		return nil, fmt.Errorf("%s ended: %w", p.cmd.Path, errors.Join(p.out.Err(), io.ErrUnexpectedEOF))
	}
	words := strings.Fields(p.out.Text())
	f := figures{}
	for i := 0; i+1 < len(words); i += 2 {
		v, err := strconv.ParseFloat(words[i+1], 64)
		if err != nil {
			return nil, fmt.Errorf("%q: %w", p.out.Text(), err)
		}
		f[words[i]] = v
	}
	for _, x := range phases {
		if _, ok := f[x.name]; !ok {
			return nil, fmt.Errorf("%q: no %s", p.out.Text(), x.name)
		}
	}
	return f, nil
}

func (p *program) Close() error {
	return errors.Join(p.in.Close(), p.cmd.Wait())
}

// openC starts the C program that ./build.sh nixl-bench makes.
func (e *environment) openC(args ...string) (measurer, error) {
	const build = "run ./build.sh nixl-bench"
	exe := filepath.Join(e.root, ".cache", "nixl-bench", "c")
	made, err := os.Stat(exe)
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, build)
	}
	for _, source := range []string{"bench/nixl/testdata/bench.c", "nixl/libnixl/table.h"} {
		s, err := os.Stat(filepath.Join(e.root, source))
		if err != nil {
			return nil, err
		}
		if s.ModTime().After(made.ModTime()) {
			return nil, fmt.Errorf("%s is older than %s: %s", exe, source, build)
		}
	}
	return start(exec.Command(exe, append([]string{e.lib.Path()}, args...)...))
}

func (e *environment) openPython() (measurer, error) {
	dir := filepath.Dir(filepath.Dir(e.lib.Path()))
	found, err := filepath.Glob(filepath.Join(dir, "nixl_cu1?", "_bindings.cpython-311-*.so"))
	if err != nil {
		return nil, err
	}
	if len(found) != 1 {
		return nil, fmt.Errorf("no module for Python 3.11 in %s", dir)
	}
	for _, name := range []string{"python3.11", "python3"} {
		v, err := exec.Command(name, "-c", "import sys; print(sys.version_info[:2])").Output()
		if err == nil && strings.TrimSpace(string(v)) == "(3, 11)" {
			return start(exec.Command(name, filepath.Join(e.root, "bench", "nixl", "testdata", "bench.py"), found[0]))
		}
	}
	return nil, errors.New("no Python 3.11, which NVIDIA's module is for")
}
