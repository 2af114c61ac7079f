package race

import (
	"os"
	"strings"
	"testing"
)

// FuzzScenarios: any text is scenarios or an error, and each is judged or refused.
// Never a panic.
func FuzzScenarios(f *testing.F) {
	text, err := os.ReadFile("testdata/scenarios.json")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimRight(line, ",\n"); strings.HasPrefix(line, `{"id"`) {
			f.Add(`{"scenarios": [` + line + `]}`)
		}
	}
	f.Fuzz(func(t *testing.T, text string) {
		scenarios, err := ReadScenarios(strings.NewReader(text))
		if (err == nil) == (len(scenarios) == 0) {
			t.Fatalf("%d scenarios, error %v", len(scenarios), err)
		}
		for _, s := range scenarios {
			if races, err := s.Judge(); err != nil && races != nil {
				t.Fatalf("races %v and error %v", races, err)
			}
			_ = s.Expected()
		}
	})
}
