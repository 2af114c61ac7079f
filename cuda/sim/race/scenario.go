package race

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
)

// Scenario is a small program with the verdict whether it races: see
// testdata/README.md for the form.
type Scenario struct {
	ID         string            `json:"id"`
	Streams    map[string]string `json:"streams"`
	Events     map[string]string `json:"events"`
	Buffers    map[string]Buffer `json:"buffers"`
	Steps      []Step            `json:"ops"`
	Race       bool              `json:"race"`
	Documented json.RawMessage   `json:"race_documented"`
}

// Buffer is memory that a scenario touches.
type Buffer struct {
	Bytes uint64 `json:"bytes"`
	Kind  string `json:"kind"` // device, managed, pinned, pageable
}

// Use is a buffer, or a range of it.
type Use struct {
	Buffer string
	Range  *[2]uint64 // offset and length
}

// UnmarshalJSON reads a name, or {"buf": name, "range": [offset, length]}.
func (u *Use) UnmarshalJSON(text []byte) error {
	if json.Unmarshal(text, &u.Buffer) == nil {
		return nil
	}
	var long struct {
		Buf   string     `json:"buf"`
		Range *[2]uint64 `json:"range"`
	}
	if err := json.Unmarshal(text, &long); err != nil {
		return err
	}
	u.Buffer, u.Range = long.Buf, long.Range
	return nil
}

// Rows are the ranges of a fill or copy of two dimensions.
type Rows struct {
	Height   uint64 `json:"height"`
	Width    uint64 `json:"width"`
	DstPitch uint64 `json:"dst_pitch"`
	SrcPitch uint64 `json:"src_pitch"`
}

// Step is an op of a scenario.
type Step struct {
	Op       string     `json:"op"`
	Stream   string     `json:"stream"`
	Event    string     `json:"event"`
	Device   int        `json:"device"`
	Reads    []Use      `json:"reads"`
	Writes   []Use      `json:"writes"`
	Buf      string     `json:"buf"`
	Range    *[2]uint64 `json:"range"`
	Rows     *Rows      `json:"rows"`
	Kind     string     `json:"kind"`
	Dst      string     `json:"dst"`
	Src      string     `json:"src"`
	DstRange *[2]uint64 `json:"dst_range"`
	SrcRange *[2]uint64 `json:"src_range"`
	Async    bool       `json:"async"`
	ID       string     `json:"id"`
	Dir      string     `json:"dir"`
	Body     []Step     `json:"body"`
}

// ReadScenarios reads a file of scenarios.
func ReadScenarios(r io.Reader) ([]Scenario, error) {
	var file struct {
		Scenarios []Scenario `json:"scenarios"`
	}
	if err := json.NewDecoder(r).Decode(&file); err != nil {
		return nil, err
	}
	if len(file.Scenarios) == 0 {
		return nil, errors.New("no scenarios")
	}
	return file.Scenarios, nil
}

// Expected returns the verdict that counts: "true", "false" or "unspecified".
func (s *Scenario) Expected() string {
	if d := strings.Trim(string(s.Documented), `"`); d != "" && d != "null" {
		return d
	}
	return strconv.FormatBool(s.Race)
}

// Judge runs the scenario and returns the races that there are.
func (s *Scenario) Judge() ([]Race, error) {
	p := &program{s: s, streams: map[string]*stream{}, events: map[string]*event{}, buffers: map[string]uint64{}, transfers: map[string]*Transfer{}}
	var races []Race
	p.c.Found = func(r Race) { races = append(races, r) }
	if err := p.declare(); err != nil {
		return nil, fmt.Errorf("%s: %w", s.ID, err)
	}
	for i := range s.Steps {
		if err := p.step(i, &s.Steps[i], nil); err != nil {
			return nil, fmt.Errorf("%s: op %d, %s: %w", s.ID, i, s.Steps[i].Op, err)
		}
	}
	return races, nil
}
