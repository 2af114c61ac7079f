package layout

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
)

//go:embed models.txt
var modelFacts string

// named are the models that come with the library.
var named = sync.OnceValues(func() (map[string]facts, error) { return parseFacts("models.txt", modelFacts) })

// ErrUnknownModel: no model of that name comes with the library.
var ErrUnknownModel = errors.New("unknown model")

// Named returns a model that comes with the library: of its published
// configuration the keys that shape the cache. The error wraps
// [ErrUnknownModel].
func Named(name string) (*Model, error) {
	all, err := named()
	if err != nil {
		return nil, err
	}
	f, ok := all[name]
	if !ok {
		return nil, fmt.Errorf("layout: %w %q: the names are %s", ErrUnknownModel, name, strings.Join(Names(), ", "))
	}
	return f.model(name)
}

// Names returns the names that [Named] takes, sorted.
func Names() []string {
	all, _ := named()
	return slices.Sorted(maps.Keys(all))
}

// Load returns a model by what a user says: a name that [Named] takes, a
// config.json, or the folder that holds one. The options are for files.
func Load(nameOrPath string, o ConfigOptions) (*Model, error) {
	m, unknown := Named(nameOrPath)
	if unknown == nil {
		return m, nil
	}
	path := nameOrPath
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		path = filepath.Join(path, "config.json")
	}
	m, err := LoadConfigWithOptions(path, o)
	if errors.Is(err, os.ErrNotExist) && filepath.Base(nameOrPath) == nameOrPath {
		return nil, fmt.Errorf("%w; nor is it a file", unknown)
	}
	return m, err
}

// ReadModels reads models in the form in which the library holds its own: the
// keys of each configuration that shape the cache, one a line. file names the
// text in errors.
func ReadModels(file, text string) ([]*Model, error) {
	all, err := parseFacts(file, text)
	if err != nil {
		return nil, err
	}
	var models []*Model
	for _, name := range slices.Sorted(maps.Keys(all)) {
		f := all[name]
		m, err := f.model(name)
		if err != nil {
			return nil, err
		}
		models = append(models, m)
	}
	return models, nil
}

// facts are the keys of a model's config.json that shape its cache, and of the
// hf_quant_config.json beside it.
type facts struct{ config, quant map[string]any }

func (f *facts) model(name string) (*Model, error) {
	config, err := json.Marshal(f.config)
	if err != nil {
		return nil, fmt.Errorf("layout: %s: %w", name, err)
	}
	var o ConfigOptions
	if len(f.quant) > 0 {
		quant, err := json.Marshal(f.quant)
		if err != nil {
			return nil, fmt.Errorf("layout: %s: %w", name, err)
		}
		o.Quantization = bytes.NewReader(quant)
	}
	return ReadConfigWithOptions(name, bytes.NewReader(config), o)
}

// besideKey marks keys of hf_quant_config.json.
const besideKey = "quant:"

// parseFacts reads models in a form of its own: a line with the name and the
// architecture, and for each key a line that begins with a tab and has the
// key's path and its value. A value is a JSON number, true or false, a word, or
// a list in brackets, in which n*x stands for n times x and n*[...] for n times
// what is in the brackets. Lines that begin with # are comments.
func parseFacts(file, text string) (map[string]facts, error) {
	models := map[string]facts{}
	var f facts
	for i, line := range strings.Split(text, "\n") {
		fail := func(format string, args ...any) error {
			return fmt.Errorf("layout: %s:%d: %s", file, i+1, fmt.Sprintf(format, args...))
		}
		switch {
		case line == "" || line[0] == '#':
		case line[0] != '\t':
			name, class, ok := strings.Cut(line, " ")
			if _, twice := models[name]; !ok || twice {
				return nil, fail("%q: want a new name and its architecture", line)
			}
			f = facts{map[string]any{"architectures": []any{class}}, map[string]any{}}
			models[name] = f
		default:
			key, value, ok := strings.Cut(line[1:], " ")
			if !ok || f.config == nil {
				return nil, fail("%q: want a key and its value, of a model", line)
			}
			v, err := parseValue(value)
			if err != nil {
				return nil, fail("%s: %v", key, err)
			}
			in := f.config
			if k, ok := strings.CutPrefix(key, besideKey); ok {
				in, key = f.quant, k
			}
			path := strings.Split(key, ".")
			for _, p := range path[:len(path)-1] {
				next, ok := in[p].(map[string]any)
				if !ok {
					next = map[string]any{}
					in[p] = next
				}
				in = next
			}
			in[path[len(path)-1]] = v
		}
	}
	return models, nil
}

func parseValue(s string) (any, error) {
	if !strings.HasPrefix(s, "[") {
		return scalar(s), nil
	}
	list, rest, err := parseList(s[1:], 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("%q behind the list", rest)
	}
	return list, err
}

func scalar(s string) any {
	var v any
	if json.Unmarshal([]byte(s), &v) == nil {
		return json.RawMessage(s)
	}
	return s
}

// parseList reads up to the bracket that closes the list, and returns what is
// behind it.
func parseList(s string, depth int) (list []any, rest string, err error) {
	for depth < 4 {
		s = strings.TrimLeft(s, " ")
		if s == "" {
			return nil, "", errors.New("a list without an end")
		}
		if s[0] == ']' {
			return list, s[1:], nil
		}
		times := 1
		if n, behind, ok := strings.Cut(s, "*"); ok && !strings.ContainsAny(n, " []") {
			if times, err = strconv.Atoi(n); err != nil || times < 1 || times > MaxLayers {
				return nil, "", fmt.Errorf("%q times", n)
			}
			s = behind
		}
		var items []any
		if strings.HasPrefix(s, "[") {
			if items, s, err = parseList(s[1:], depth+1); err != nil {
				return nil, "", err
			}
		} else {
			end := strings.IndexAny(s, " ]")
			if end <= 0 {
				return nil, "", fmt.Errorf("%q in a list", s)
			}
			items, s = []any{scalar(s[:end])}, s[end:]
		}
		if times*len(items)+len(list) > MaxLayers {
			return nil, "", fmt.Errorf("more than %d entries", MaxLayers)
		}
		for range times {
			list = append(list, items...)
		}
	}
	return nil, "", errors.New("lists in lists in lists")
}
