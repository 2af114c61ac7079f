package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"strconv"

	checker "github.com/kvgate/kvgate/cuda/sim/race"
)

func flagGiven(f *flag.FlagSet, name string) (given bool) {
	f.Visit(func(x *flag.Flag) { given = given || x.Name == name })
	return given
}

// verdicts judges the scenarios of a file and returns the exit status.
func verdicts(file string, out, errs io.Writer) int {
	f, err := os.Open(file)
	if err != nil {
		fmt.Fprintln(errs, "race:", err)
		return 1
	}
	defer f.Close()
	scenarios, err := checker.ReadScenarios(f)
	if err != nil {
		fmt.Fprintf(errs, "race: %s: %v\n", file, err)
		return 1
	}
	status := 0
	fmt.Fprintf(out, "%-44s %-12s %s\n", "scenario", "expected", "found")
	for i := range scenarios {
		s := &scenarios[i]
		races, err := s.Judge()
		if err != nil {
			fmt.Fprintln(errs, "race:", err)
			status = 1
			continue
		}
		found, note := strconv.FormatBool(len(races) > 0), ""
		if e := s.Expected(); e != found && e != "unspecified" {
			status, note = 1, " differs"
		}
		fmt.Fprintf(out, "%-44s %-12s %s%s\n", s.ID, s.Expected(), found, note)
		for _, r := range races {
			if note != "" {
				fmt.Fprintf(out, "  %v\n", r)
			}
		}
	}
	return status
}
