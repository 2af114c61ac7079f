package layout

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the models of KVGATE_MODELS and the oracles of KVGATE_LAYOUT_ORACLES and KVGATE_SEGMENT_ORACLES into testdata")

// modelDirs returns the folders of KVGATE_MODELS, each with a folder for a
// model.
func modelDirs() []string {
	return slices.DeleteFunc(filepath.SplitList(os.Getenv("KVGATE_MODELS")), func(s string) bool { return s == "" })
}

// testModels are the models of testdata that the library does not have.
func testModels(t testing.TB) map[string]facts {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", "models.txt"))
	require.NoError(t, err)
	m, err := parseFacts("testdata/models.txt", string(data))
	require.NoError(t, err)
	return m
}

// loadModel returns a model by the name of its folder: from the folders of
// KVGATE_MODELS, else from the library, else from testdata.
func loadModel(t testing.TB, name string) *Model {
	t.Helper()
	for _, dir := range modelDirs() {
		path := filepath.Join(dir, name, "config.json")
		if _, err := os.Stat(path); err == nil {
			m, err := LoadConfig(path)
			require.NoError(t, err)
			require.Equal(t, name, m.Name)
			return m
		}
	}
	m, err := Named(name)
	if err != nil {
		require.ErrorIs(t, err, ErrUnknownModel)
		f, ok := testModels(t)[name]
		require.True(t, ok, "no model %q: not in KVGATE_MODELS, the library or testdata", name)
		m, err = f.model(name)
		require.NoError(t, err)
	}
	return m
}

// allModels returns the names that loadModel knows, sorted.
func allModels(t testing.TB) []string {
	t.Helper()
	names := map[string]bool{}
	for _, n := range Names() {
		names[n] = true
	}
	for n := range testModels(t) {
		require.False(t, names[n], "%s is in the library and in testdata", n)
		names[n] = true
	}
	for _, dir := range modelDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "*", "config.json"))
		require.NoError(t, err)
		for _, f := range files {
			names[filepath.Base(filepath.Dir(f))] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// factsOf returns the keys of a config.json that were read, in the form of
// parseFacts.
func factsOf(t testing.TB, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	c, err := parseConfig(path, bytes.NewReader(data))
	require.NoError(t, err)
	c.read = map[string]json.RawMessage{}
	if quant, err := os.ReadFile(filepath.Join(filepath.Dir(path), quantFile)); err == nil {
		c.quant, err = parseConfig(quantFile, bytes.NewReader(quant))
		require.NoError(t, err)
		c.quant.read, c.quant.err = map[string]json.RawMessage{}, c.err
	}
	m, err := c.model(&ConfigOptions{})
	require.NoError(t, err)
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s\n", filepath.Base(filepath.Dir(path)), m.Architecture)
	write := func(prefix string, read map[string]json.RawMessage) {
		for _, key := range slices.Sorted(maps.Keys(read)) {
			v := read[key]
			if key == "architectures" || v[0] == '{' || string(v) == "null" {
				continue
			}
			fmt.Fprintf(&b, "\t%s%s %s\n", prefix, key, factValue(t, v))
		}
	}
	write("", c.read)
	if c.quant != nil {
		write(besideKey, c.quant.read)
	}
	return b.String()
}

func factValue(t testing.TB, v json.RawMessage) string {
	t.Helper()
	if v[0] != '[' {
		return word(t, v)
	}
	var list []json.RawMessage
	require.NoError(t, json.Unmarshal(v, &list))
	words := make([]string, len(list))
	for i := range list {
		words[i] = word(t, list[i])
	}
	return "[" + shorten(words) + "]"
}

func word(t testing.TB, v json.RawMessage) string {
	t.Helper()
	var s string
	if json.Unmarshal(v, &s) != nil {
		return string(v)
	}
	require.NotContains(t, s, "\n")
	require.NotEmpty(t, s)
	return s
}

// shorten writes words with what repeats counted: the longest repetitions of up
// to eight words, greedily.
func shorten(words []string) string {
	var out []string
	for len(words) > 0 {
		bestLen, bestTimes := 1, 1
		for l := 1; l <= min(8, len(words)/2); l++ {
			times := 1
			for (times+1)*l <= len(words) && slices.Equal(words[:l], words[times*l:(times+1)*l]) {
				times++
			}
			if times > 1 && l*times > bestLen*bestTimes {
				bestLen, bestTimes = l, times
			}
		}
		switch unit := words[:bestLen]; {
		case bestTimes == 1:
			out = append(out, unit[0])
		case bestLen == 1:
			out = append(out, strconv.Itoa(bestTimes)+"*"+unit[0])
		default:
			out = append(out, strconv.Itoa(bestTimes)+"*["+shorten(unit)+"]")
		}
		words = words[bestLen*bestTimes:]
	}
	return strings.Join(out, " ")
}

// The models of the library and of testdata are what their published files say,
// where those are given. With -update models that are in neither are added to
// testdata.
func TestFacts(t *testing.T) {
	added := ""
	for _, dir := range modelDirs() {
		files, err := filepath.Glob(filepath.Join(dir, "*", "config.json"))
		require.NoError(t, err)
		require.NotEmpty(t, files, "no models in %s of KVGATE_MODELS", dir)
		for _, path := range files {
			name := filepath.Base(filepath.Dir(path))
			want, err := LoadConfig(path)
			require.NoError(t, err)
			f, ok := testModels(t)[name]
			if all, err := named(); !ok {
				require.NoError(t, err)
				f, ok = all[name]
			}
			if !ok {
				if *update {
					added += factsOf(t, path)
				}
				continue
			}
			got, err := f.model(name)
			require.NoError(t, err)
			require.Equal(t, want, got)
		}
	}
	if added != "" {
		out, err := os.OpenFile(filepath.Join("testdata", "models.txt"), os.O_APPEND|os.O_WRONLY, 0)
		require.NoError(t, err)
		defer out.Close()
		_, err = out.WriteString(added)
		require.NoError(t, err)
	}
}

func TestFactsForm(t *testing.T) {
	m, err := parseFacts("f", "# nothing\n\na X\n\tn 5\n\to.p word\n\to.q [1 2*x 2*[y 2*z]]\n\tquant:r true\nb Y\n")
	require.NoError(t, err)
	data, err := json.Marshal(m["a"].config)
	require.NoError(t, err)
	require.JSONEq(t, `{"architectures": ["X"], "n": 5, "o": {"p": "word", "q": [1, "x", "x", "y", "z", "z", "y", "z", "z"]}}`, string(data))
	data, err = json.Marshal(m["a"].quant)
	require.NoError(t, err)
	require.JSONEq(t, `{"r": true}`, string(data))
	require.Len(t, m, 2)
	require.Equal(t, "1 2*x 2*[y 2*z]", shorten([]string{"1", "x", "x", "y", "z", "z", "y", "z", "z"}))
	for text, want := range map[string]string{
		"a\n": "f:1:", "a X\na X": "f:2:", "\tx 5": "f:1:", "a X\n\tx": "f:2:", "a X\n\tx [1 ": "without an end", "a X\n\tx [1] 2": "behind",
		"a X\n\tx [0*1]": "times", "a X\n\tx [9999*1]": "times", "a X\n\tx [4096*[1 1]]": "more than", "a X\n\tx [[[[[1]]]]]": "lists in lists",
		"a X\n\tx [2* 1]": "in a list",
	} {
		_, err := parseFacts("f", text)
		require.ErrorContains(t, err, want, "%q", text)
	}
}

func TestNamed(t *testing.T) {
	require.NotEmpty(t, Names())
	for _, name := range Names() {
		m, err := Named(name)
		require.NoError(t, err)
		require.Equal(t, name, m.Name)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "config.json")
	require.NoError(t, os.WriteFile(path, []byte(strings.Replace(configs["llama"], "Llama", "NewThing", 1)), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, quantFile), []byte(`{"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8", "kv_cache_quant_algo": "FP8"}}`), 0o600))
	for _, p := range []string{dir, path} {
		m, err := Load(p, ConfigOptions{As: "gqa"})
		require.NoError(t, err)
		require.Equal(t, filepath.Base(dir), m.Name)
		require.Equal(t, FP8, m.KVDType)
	}
	m, err := Load(Names()[0], ConfigOptions{})
	require.NoError(t, err)
	require.Equal(t, Names()[0], m.Name)
	_, err = Load("nothing", ConfigOptions{})
	require.ErrorIs(t, err, ErrUnknownModel)
	require.ErrorContains(t, err, "nor is it a file")
	_, err = Load(filepath.Join(dir, "nothing"), ConfigOptions{})
	require.ErrorIs(t, err, os.ErrNotExist)

	_, err = Named("no such model")
	require.ErrorIs(t, err, ErrUnknownModel)
	require.ErrorContains(t, err, Names()[0])
}
