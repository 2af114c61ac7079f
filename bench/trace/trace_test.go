package trace

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
)

const conversation = "mooncake_conversation_2000.jsonl"

func loadShared(t testing.TB, name string) *Trace {
	t.Helper()
	tr, err := Load(testutil.Shared(t, "traces", name))
	require.NoError(t, err)
	return tr
}

// What the recorded traces are known to be.
func TestRecorded(t *testing.T) {
	for name, want := range map[string]struct {
		requests            int
		span                time.Duration
		inMean              float64
		inMedian, inMax     int
		outMean             float64
		outMedian, outMax   int
		stretches, distinct int
		prefixShare         float64
	}{
		conversation:                    {2000, 669 * time.Second, 13721, 7967, 123192, 352, 363, 2000, 54559, 38788, .289},
		"mooncake_synthetic_1000.jsonl": {1000, 272700 * time.Millisecond, 11852, 2926, 134773, 196, 171, 842, 23787, 19780, .168},
		"azure_llm_2023_code_2000.csv":  {2000, 853100 * time.Millisecond, 1987, 1339, 7437, 30, 13, 1899, 0, 0, 0},
		"azure_llm_2023_conv_2000.csv":  {2000, 424300 * time.Millisecond, 1105, 1032, 7930, 265, 239, 1000, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			tr := loadShared(t, name)
			s := tr.Stats()
			require.Equal(t, want.requests, s.Requests)
			require.InDelta(t, want.span.Seconds(), s.Span.Seconds(), 0.1)
			require.InDelta(t, want.inMean, s.Input.Mean, 0.5)
			require.Equal(t, want.inMedian, s.Input.P50)
			require.Equal(t, want.inMax, s.Input.Max)
			require.InDelta(t, want.outMean, s.Output.Mean, 0.5)
			require.Equal(t, want.outMedian, s.Output.P50)
			require.Equal(t, want.outMax, s.Output.Max)
			require.InDelta(t, want.prefixShare, s.PrefixShare, 0.0005)
			require.Equal(t, want.stretches > 0, tr.Prefixes)
			ids, all := map[uint64]bool{}, 0
			for i := range tr.Requests {
				require.Equal(t, i+1, tr.Requests[i].Line-map[bool]int{false: 1}[tr.Prefixes]) // CSV has a header
				for _, id := range tr.Requests[i].HashIDs {
					ids[id] = true
					all++
				}
			}
			require.Equal(t, want.stretches, all)
			require.Equal(t, want.distinct, len(ids))
		})
	}
}

// What is written is what was read, to the byte.
func TestWriteMooncake(t *testing.T) {
	want, err := os.ReadFile(testutil.Shared(t, "traces", conversation))
	require.NoError(t, err)
	var got bytes.Buffer
	require.NoError(t, WriteMooncake(&got, loadShared(t, conversation)))
	require.True(t, bytes.Equal(bytes.TrimSpace(want), bytes.TrimSpace(got.Bytes())))

	azure, err := ReadAzure("a.csv", strings.NewReader(azureGood))
	require.NoError(t, err)
	require.ErrorIs(t, WriteMooncake(&got, azure), ErrTrace)
}

func TestLoadNamesTheFile(t *testing.T) {
	_, err := Load("trace.txt")
	require.ErrorIs(t, err, ErrTrace)
	require.ErrorContains(t, err, `trace.txt: is a file of ".txt"`)
	_, err = Load(filepath.Join(t.TempDir(), "none.csv"))
	require.ErrorIs(t, err, os.ErrNotExist)
	path := filepath.Join(t.TempDir(), "bad.jsonl")
	require.NoError(t, os.WriteFile(path, []byte("\n"), 0o600))
	_, err = Load(path)
	require.ErrorContains(t, err, "bad.jsonl:1: ")
}

func mooncake(t testing.TB, lines ...string) *Trace {
	t.Helper()
	tr, err := ReadMooncake("m.jsonl", strings.NewReader(strings.Join(lines, "\n")))
	require.NoError(t, err)
	return tr
}

func TestLimit(t *testing.T) {
	tr := mooncake(t,
		`{"timestamp": 0, "input_length": 1000, "output_length": 10, "hash_ids": [1, 2]}`,
		`{"timestamp": 0, "input_length": 2000, "output_length": 100, "hash_ids": [1, 2, 3, 4]}`,
		`{"timestamp": 0, "input_length": 2048, "output_length": 3000, "hash_ids": [1, 2, 3, 5]}`,
		`{"timestamp": 0, "input_length": 9000, "output_length": 40, "hash_ids": [1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]}`)
	before := tr.Stats()

	_, _, err := tr.Limit(2048, false)
	require.ErrorIs(t, err, ErrTrace)
	require.EqualError(t, err, "trace: m.jsonl:3: input_length: 2048: the model's sequences have at most 2048 tokens, prompt and answer together")

	got, n, err := tr.Limit(2048, true)
	require.NoError(t, err)
	require.Equal(t, Limited{Prompts: 2, Outputs: 2}, n)
	var sizes [][3]int
	for _, r := range got.Requests {
		sizes = append(sizes, [3]int{r.Input, r.Output, len(r.HashIDs)})
	}
	require.Equal(t, [][3]int{{1000, 10, 2}, {2000, 48, 4}, {1024, 1024, 2}, {2008, 40, 4}}, sizes)
	require.Equal(t, before, tr.Stats(), "the trace itself stays as it was")

	got, n, err = tr.Limit(1<<20, false)
	require.NoError(t, err)
	require.Zero(t, n)
	require.Equal(t, tr, got)

	got, _, err = tr.Limit(2, true)
	require.NoError(t, err)
	for _, r := range got.Requests {
		require.Equal(t, [2]int{1, 1}, [2]int{r.Input, r.Output})
	}
	_, _, err = tr.Limit(1, true)
	require.Error(t, err)

	azure, err := ReadAzure("a.csv", strings.NewReader(azureGood))
	require.NoError(t, err)
	_, _, err = azure.Limit(396, false)
	require.ErrorContains(t, err, "a.csv:3: ContextTokens: 396")
}

func TestRotate(t *testing.T) {
	tr := mooncake(t,
		`{"timestamp": 0, "input_length": 1, "output_length": 1, "hash_ids": [1]}`,
		`{"timestamp": 1000, "input_length": 2, "output_length": 1, "hash_ids": [1]}`,
		`{"timestamp": 4000, "input_length": 3, "output_length": 1, "hash_ids": [1]}`)
	for k, want := range map[int][]time.Duration{0: {0, 1, 4}, 1: {0, 3, 5}, 2: {0, 2, 3}, 3: {0, 1, 4}, -1: {0, 2, 3}} {
		got := tr.Rotate(k)
		for i, r := range got.Requests {
			require.Equal(t, want[i]*time.Second, r.Arrival, "rotated by %d: request %d", k, i)
			require.Equal(t, 1+(i+k+3)%3, r.Input)
		}
	}
	require.EqualValues(t, 0, tr.Requests[0].Arrival)
	require.Len(t, mooncake(t, `{"timestamp": 5, "input_length": 1, "output_length": 1, "hash_ids": [1]}`).Rotate(7).Requests, 1)
}
