// Mkabi writes the files that come from the list of driver symbols. Run it from
// the module's root, with go run ./internal/abi/internal/mkabi.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/kvgate/kvgate/internal/abi"
	"github.com/kvgate/kvgate/internal/abi/clib"
)

func main() {
	if err := run(); err != nil {
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
