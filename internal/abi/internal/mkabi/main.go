// Mkabi writes the files that come from the list of driver symbols. Run it from
// the module's root, with go run ./internal/abi/internal/mkabi.
//
// With -lib it makes a libcuda.so.1 in a folder instead whose functions do
// nothing, and libcuda.so beside it: to link against where there is no driver,
// and to measure what is on this side of one.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/abi/clib"
)

func main() {
	lib := flag.String("lib", "", "the folder to make a library in, which does nothing")
	flag.Parse()
	make := run
	if *lib != "" {
		make = func() error { return library(*lib) }
	}
	if err := make(); err != nil {
		fmt.Fprintln(os.Stderr, "mkabi:", err)
		os.Exit(1)
	}
}

func run() error {
	if _, err := os.Stat("go.mod"); err != nil {
		return fmt.Errorf("run it from the module's root: %w", err)
	}
	files, err := abi.Generate(clib.ByHand())
	if err != nil {
		return err
	}
	for name, content := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(name, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func library(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	path, err := clib.BuildNamed(dir, clib.NoOp)
	if err != nil {
		return err
	}
	link := filepath.Join(dir, "libcuda.so")
	if err := os.Remove(link); err != nil && !os.IsNotExist(err) {
		return err
	}
	return os.Symlink(filepath.Base(path), link)
}
