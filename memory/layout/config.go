package layout

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

var (
	// ErrConfig is wrapped by every error about a config.json, all of which are
	// of type *[ConfigError] unless reading failed.
	ErrConfig = errors.New("bad model configuration")
	// ErrArchitecture: the model is of an architecture that is not known here.
	ErrArchitecture = errors.New("unknown architecture")
)

// ConfigError says what is wrong with which key of a configuration file.
type ConfigError struct {
	File  string
	Line  int    // of the key or of a syntax error, from 1; 0 where the key is missing
	Key   string // with its path ("text_config.num_hidden_layers"), "" for the file as such
	Value string // as in the file, cut short; "" where the key is missing
	Err   error  // what is wrong
}

func (e *ConfigError) Error() string {
	s := "layout: " + e.File
	if e.Line > 0 {
		s += ":" + strconv.Itoa(e.Line)
	}
	s += ": "
	if e.Key != "" {
		s += e.Key + ": "
	}
	if e.Value != "" {
		s += e.Value + ": "
	}
	return s + e.Err.Error()
}

// Unwrap gives [ErrConfig] and the cause.
func (e *ConfigError) Unwrap() []error { return []error{ErrConfig, e.Err} }

// maxConfig bounds the file, in bytes; published ones have some 10 KiB.
const maxConfig = 4 << 20

// LoadConfig reads the config.json at path; the model is named after its
// folder. See [ReadConfig].
func LoadConfig(path string) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	defer f.Close()
	m, err := ReadConfig(path, f)
	if err != nil {
		return nil, err
	}
	m.Name = path
	if abs, err := filepath.Abs(path); err == nil {
		m.Name = filepath.Base(filepath.Dir(abs))
	}
	return m, nil
}

// ReadConfig reads a model from a config.json in Hugging Face form. The name is
// that of the file, for messages. It looks at the keys that bear on the cache
// and ignores all others; a key that is null is missing. Layers for multi-token
// prediction are left out.
//
// A missing key that bears on the layout is an error, but for those that the
// published files of an architecture leave out: head_dim is the hidden size over
// the heads in Llama, Granite, Jamba and (if that is 128) Nemotron-H, num_key_value_heads is
// num_attention_heads in Llama and Zamba2. A file without a dtype gives a model
// of [DefaultDType], one without max_position_embeddings a MaxTokens of 0.
//
// The error is a *[ConfigError] that names file, key and value, wraps
// [ErrConfig], and [ErrArchitecture] where the architecture is not one of
// [Architectures].
func ReadConfig(name string, r io.Reader) (*Model, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("layout: %s: %w", name, err)
	}
	fail := func(err error) error { return &ConfigError{File: name, Err: err} }
	if len(data) > maxConfig {
		return nil, fail(fmt.Errorf("more than %d bytes", maxConfig))
	}
	c := &config{file: name, data: data, err: new(error)}
	if err := json.Unmarshal(data, &c.keys); err != nil {
		return nil, jsonFault(name, data, err)
	}
	if c.keys == nil {
		return nil, fail(errors.New("null, want an object"))
	}
	return c.model()
}

// jsonFault makes an error of package json, met in reading the file's object,
// one of this package.
func jsonFault(name string, data []byte, err error) error {
	var syntax *json.SyntaxError
	var other *json.UnmarshalTypeError
	switch {
	case errors.As(err, &syntax):
		return &ConfigError{File: name, Line: lineAt(data, syntax.Offset), Err: err}
	case errors.As(err, &other):
		err = fmt.Errorf("%s, want an object", other.Value)
	}
	return &ConfigError{File: name, Err: err}
}

func lineAt(data []byte, offset int64) int {
	return 1 + bytes.Count(data[:min(int(offset), len(data))], []byte("\n"))
}

// offsetOf returns where in an object the last key of a path ends, 0 if it is
// not there. Of a key that is there twice the last counts, as for package json.
func offsetOf(data []byte, path []string) (at int64) {
	d := json.NewDecoder(bytes.NewReader(data))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return 0
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return 0
		}
		end := d.InputOffset()
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return 0
		}
		if key != path[0] {
			continue
		}
		if at = end; len(path) > 1 {
			at = offsetOf(value, path[1:])
			if at > 0 {
				at += d.InputOffset() - int64(len(value))
			}
		}
	}
	return at
}

// config is an object of the file. Its getters note the first thing that is
// wrong in *err and give a harmless value.
type config struct {
	file, path string
	data       []byte // of the file
	keys       map[string]json.RawMessage
	outer      *config // where the dtype is looked for, too
	err        *error
}

func (c *config) raw(key string) (json.RawMessage, bool) {
	v, ok := c.keys[key]
	return v, ok && string(v) != "null"
}

func (c *config) has(key string) bool {
	_, ok := c.raw(key)
	return ok
}

func (c *config) fail(key string, err error) {
	if *c.err != nil {
		return
	}
	v, _ := c.raw(key)
	value := strings.Join(strings.Fields(string(v)), " ")
	if len(value) > 80 {
		value = strings.ToValidUTF8(value[:80], "") + "..."
	}
	e := &ConfigError{File: c.file, Key: c.path + key, Value: value, Err: err}
	if at := offsetOf(c.data, strings.Split(e.Key, ".")); at > 0 {
		e.Line = lineAt(c.data, at)
	}
	*c.err = e
}

var errMissing = errors.New("missing")

// decode reads key into v and reports whether it is there.
func (c *config) decode(key string, v any, want string) bool {
	raw, ok := c.raw(key)
	if !ok {
		c.fail(key, errMissing)
		return false
	}
	if json.Unmarshal(raw, v) != nil {
		c.fail(key, errors.New("want "+want))
		return false
	}
	return true
}

// integer reads a number of least to most.
func (c *config) integer(key string, least, most int) int {
	raw, ok := c.raw(key)
	if !ok {
		c.fail(key, errMissing)
		return least
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil || n < least || n > most {
		c.fail(key, fmt.Errorf("want an integer of %d to %d", least, most))
		return least
	}
	return n
}

// dim reads a size.
func (c *config) dim(key string) int { return c.integer(key, 1, MaxDim) }

// dimOr is dim, with a value for a missing key.
func (c *config) dimOr(key string, missing int) int {
	if !c.has(key) {
		return missing
	}
	return c.dim(key)
}

// dimOf reads a size that has been spelt in several ways.
func (c *config) dimOf(keys ...string) int {
	for _, k := range keys {
		if c.has(k) {
			return c.dim(k)
		}
	}
	return c.dim(keys[0])
}

func (c *config) str(key string) (s string) {
	c.decode(key, &s, "a string")
	return s
}

func (c *config) strs(key string) (s []string) {
	c.decode(key, &s, "a list of strings")
	return s
}

func (c *config) ints(key string) (s []int) {
	c.decode(key, &s, "a list of integers")
	return s
}

// object reads a nested configuration.
func (c *config) object(key string) *config {
	in := &config{file: c.file, data: c.data, path: c.path + key + ".", outer: c, err: c.err}
	c.decode(key, &in.keys, "an object")
	return in
}

// dtypeOr reads a dtype of elements, with a value for a missing key.
func (c *config) dtypeOr(key string, missing DType) DType {
	if !c.has(key) {
		return missing
	}
	name := c.str(key)
	d, err := ParseDType(name)
	if *c.err == nil && (err != nil || d.size() == 0) {
		c.fail(key, errors.New("want a dtype such as \"bfloat16\""))
	}
	return d
}

// dtype reads the dtype of the activations, DefaultDType where no key has it.
func (c *config) dtype() DType {
	for ; c != nil; c = c.outer {
		for _, key := range []string{"dtype", "torch_dtype"} {
			if c.has(key) {
				return c.dtypeOr(key, DefaultDType)
			}
		}
	}
	return DefaultDType
}
