package trace_test

import (
	"fmt"

	"github.com/kvgate/kvgate/bench/trace"
)

// A made-up trace, cut down for a model with short sequences.
func ExampleGenerate() {
	t, err := trace.Generate(trace.GenerateOptions{Requests: 500, Seed: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	t, limited, err := t.Limit(8192, true)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(t.Requests), "requests,", limited.Prompts, "prompts shortened")
	fmt.Println(t.Stats().Input.Max <= 8192)
	// Output:
	// 500 requests, 246 prompts shortened
	// true
}
