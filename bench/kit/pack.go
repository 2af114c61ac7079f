package main

import (
	"flag"

	"github.com/kvgate/kvgate/bench/kit/internal/pack"
)

// pack completes a kit: it looks at its files and writes the list of them.
func packKit(args []string) error {
	f := flag.NewFlagSet("pack", flag.ContinueOnError)
	if err := parse(f, args, 1); err != nil {
		return err
	}
	m, err := pack.Make(f.Arg(0))
	if err != nil {
		return err
	}
	return m.Write(f.Arg(0))
}
