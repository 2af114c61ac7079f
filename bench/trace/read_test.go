package trace

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/internal/testutil"
)

const (
	mooncakeGood = `{"timestamp": 12, "input_length": 513, "output_length": 7, "hash_ids": [3, 9]}`
	azureGood    = "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
		"2023-11-16 18:15:46.6805900,374,44\r\n2023-11-16 18:15:50.9951690,396,109\r\n"
)

type reading struct {
	text string
	line int // of the error
	want string
}

func checkErrors(t *testing.T, read func(string, io.Reader) (*Trace, error), cases map[string]reading) {
	t.Helper()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			tr, err := read("file", strings.NewReader(c.text))
			require.Nil(t, tr)
			require.ErrorIs(t, err, ErrTrace)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, "file", e.File)
			require.Equal(t, c.line, e.Line)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n")
			require.NotContains(t, err.Error(), "Go value")
			require.Less(t, len(err.Error()), 400)
		})
	}
}

func TestReadMooncake(t *testing.T) {
	tr, err := ReadMooncake("m", strings.NewReader(mooncakeGood+"\n"))
	require.NoError(t, err)
	require.Equal(t, &Trace{Name: "m", Prefixes: true, Requests: []Request{
		{Line: 1, Arrival: 12 * time.Millisecond, Input: 513, Output: 7, HashIDs: []uint64{3, 9}}}}, tr)

	with := func(old, new string) string { return mooncakeGood + "\n" + strings.Replace(mooncakeGood, old, new, 1) }
	checkErrors(t, ReadMooncake, map[string]reading{
		"empty":              {"", 0, "no requests"},
		"an empty line":      {mooncakeGood + "\n\n" + mooncakeGood, 2, "want a JSON object"},
		"not JSON":           {mooncakeGood + "\nhello", 2, "hello: want a JSON object"},
		"cut off":            {mooncakeGood + "\n" + mooncakeGood[:40], 2, "want a JSON object"},
		"two objects":        {mooncakeGood + mooncakeGood, 1, "want a JSON object"},
		"a list":             {"[1]", 1, "want a JSON object"},
		"null":               {"null", 1, "timestamp: missing"},
		"no timestamp":       {with(`"timestamp": 12, `, ""), 2, "timestamp: missing"},
		"no input":           {with(`"input_length": 513, `, ""), 2, "input_length: missing"},
		"no output":          {with(`"output_length": 7, `, ""), 2, "output_length: missing"},
		"no ids":             {with(`, "hash_ids": [3, 9]`, ""), 2, "hash_ids: missing"},
		"unknown field":      {with(`{`, `{"chat_id": 5, `), 2, "chat_id: 5: unknown field"},
		"other case":         {with(`timestamp`, `Timestamp`), 2, "Timestamp: 12: unknown field"},
		"negative time":      {with("12", "-12"), 2, "timestamp: -12: want 0 to"},
		"fractional time":    {with("12", "12.5"), 2, "timestamp: 12.5: want an integer"},
		"text for a time":    {with("12", `"12"`), 2, `timestamp: "12": want an integer`},
		"too late":           {with("12", "99999999999999"), 2, "timestamp: 99999999999999: want 0 to"},
		"back in time":       {with("12", "11"), 2, "timestamp: 11: earlier than the line before"},
		"no tokens":          {with("513", "0"), 2, "input_length: 0: want 1 to"},
		"negative tokens":    {with("513", "-1"), 2, "input_length: -1: want 1 to"},
		"too many tokens":    {with("513", "1073741825"), 2, "input_length: 1073741825: want 1 to"},
		"beyond 64 bits":     {with("513", "99999999999999999999"), 2, "input_length: 99999999999999999999: want 1 to"},
		"null tokens":        {with("513", "null"), 2, "input_length: null: want an integer"},
		"no answer":          {with(": 7", ": 0"), 2, "output_length: 0: want 1 to"},
		"an object of ids":   {with("[3, 9]", "{}"), 2, "hash_ids: {}: want a list of integers"},
		"null ids":           {with("[3, 9]", "null"), 2, "hash_ids: null: want a list of integers"},
		"too few ids":        {with("[3, 9]", "[3]"), 2, "hash_ids: 1 ids, want 2"},
		"too many ids":       {with("[3, 9]", "[3, 9, 10]"), 2, "hash_ids: 3 ids, want 2"},
		"a negative id":      {with("[3, 9]", "[3, -9]"), 2, "hash_ids[1]: -9: want 0 to"},
		"a fractional id":    {with("[3, 9]", "[3.5, 9]"), 2, "hash_ids[0]: 3.5: want an integer"},
		"a line without end": {mooncakeGood + "\n" + strings.Repeat(" ", maxLine+1), 2, "a line of more than"},
		"a long value":       {with("12", `"`+strings.Repeat("y", 1000)+`"`), 2, "timestamp: "},
	})
	_, err = ReadMooncake("m", iotest.ErrReader(errors.New("disk on fire")))
	require.ErrorContains(t, err, "m: disk on fire")
}

func TestReadAzure(t *testing.T) {
	for _, text := range []string{azureGood, strings.ReplaceAll(azureGood, "\r\n", "\n"), strings.TrimSpace(azureGood)} {
		tr, err := ReadAzure("a", strings.NewReader(text))
		require.NoError(t, err)
		require.Equal(t, &Trace{Name: "a", Requests: []Request{
			{Line: 2, Input: 374, Output: 44},
			{Line: 3, Arrival: 4314579 * time.Microsecond, Input: 396, Output: 109}}}, tr)
	}
	with := func(old, new string) string { return strings.Replace(azureGood, old, new, 1) }
	checkErrors(t, ReadAzure, map[string]reading{
		"empty":             {"", 0, "no requests"},
		"only a header":     {"TIMESTAMP,ContextTokens,GeneratedTokens\r\n", 0, "no requests"},
		"no header":         {strings.SplitAfterN(azureGood, "\r\n", 2)[1], 1, "TIMESTAMP: 2023-11-16 18:15:46.6805900: want this column here"},
		"a column missing":  {with(",GeneratedTokens", ""), 1, "GeneratedTokens: missing"},
		"a column too many": {with("GeneratedTokens", "GeneratedTokens,Model"), 1, "Model: unknown column"},
		"columns swapped":   {with("ContextTokens,GeneratedTokens", "GeneratedTokens,ContextTokens"), 1, "ContextTokens: GeneratedTokens: want"},
		"a field missing":   {with(",109", ""), 3, "GeneratedTokens: missing"},
		"a field too many":  {with(",109", ",109,1"), 3, "more than 3 columns"},
		"an empty line":     {azureGood + "\r\n", 4, "ContextTokens: missing"},
		"an empty field":    {with("396", ""), 3, "ContextTokens: want an integer"},
		"quotes":            {with("396", `"396"`), 3, `ContextTokens: "396": want an integer`},
		"not a time":        {with("18:15:50.9951690", "25:15:50"), 3, "TIMESTAMP: 2023-11-16 25:15:50: want a time"},
		"back in time":      {with("18:15:50.9951690", "18:15:46.6805899"), 3, "earlier than the line before"},
		"years later":       {with("2023-11-16 18:15:50", "2025-11-16 18:15:50"), 3, "after the start"},
		"centuries later":   {with("2023-11-16 18:15:50", "9999-11-16 18:15:50"), 3, "after the start"},
		"negative":          {with("396", "-396"), 3, "ContextTokens: -396: want 1 to"},
		"zero":              {with("109", "0"), 3, "GeneratedTokens: 0: want 1 to"},
		"too large":         {with("109", "1073741825"), 3, "GeneratedTokens: 1073741825: want 1 to"},
		"a line too long":   {azureGood + strings.Repeat(",", maxLine+1), 4, "a line of more than"},
	})
	_, err := ReadAzure("a", iotest.ErrReader(errors.New("disk on fire")))
	require.ErrorContains(t, err, "a: disk on fire")
}

// checkRead is what the fuzz targets hold: a trace or an error, and a trace
// keeps what the types promise.
func checkRead(t *testing.T, tr *Trace, err error) {
	if err != nil {
		require.Nil(t, tr)
		require.ErrorIs(t, err, ErrTrace)
		return
	}
	require.NotEmpty(t, tr.Requests)
	before := time.Duration(0)
	for _, r := range tr.Requests {
		require.True(t, r.Arrival >= before && r.Arrival <= MaxSpan)
		require.True(t, r.Input >= 1 && r.Input <= MaxTokens && r.Output >= 1 && r.Output <= MaxTokens)
		require.Equal(t, tr.Prefixes, r.HashIDs != nil)
		if tr.Prefixes {
			require.Len(t, r.HashIDs, stretches(r.Input))
		}
		before = r.Arrival
	}
	tr.Stats()
	tr.Rotate(1)
	got, _, err := tr.Limit(1000, true)
	require.NoError(t, err)
	for _, r := range got.Requests {
		require.True(t, r.Input >= 1 && r.Output >= 1 && r.Input+r.Output <= 1000)
	}
}

// seeds adds the beginning of a recorded trace, if it is there.
func seeds(f *testing.F, name string, more ...string) {
	for _, s := range more {
		f.Add([]byte(s))
	}
	if data, err := os.ReadFile(testutil.Root(f) + "/../shared/traces/" + name); err == nil {
		f.Add(data[:2000])
	}
}

func FuzzReadMooncake(f *testing.F) {
	seeds(f, conversation, mooncakeGood, mooncakeGood+"\n"+mooncakeGood, `{"timestamp": 1e400}`, "")
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := ReadMooncake("fuzz", strings.NewReader(string(data)))
		checkRead(t, tr, err)
		if err != nil {
			return
		}
		var again strings.Builder
		require.NoError(t, WriteMooncake(&again, tr))
		back, err := ReadMooncake("fuzz", strings.NewReader(again.String()))
		require.NoError(t, err)
		require.Equal(t, tr, back)
	})
}

func FuzzReadAzure(f *testing.F) {
	seeds(f, "azure_llm_2023_conv_2000.csv", azureGood, "TIMESTAMP", "")
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := ReadAzure("fuzz", strings.NewReader(string(data)))
		checkRead(t, tr, err)
	})
}
