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

// ConfigOptions says how a configuration is read.
type ConfigOptions struct {
	// As is one of [Families]: what a model of an unknown architecture is read
	// as. "gqa" is plain attention with grouped heads, "mla" latent attention,
	// the same in each layer. All keys that say the sizes have to be there, and
	// keys that speak of other caches are refused. A known architecture is read
	// as what it is. Empty: an unknown one is an error.
	As string
	// Quantization is the hf_quant_config.json that lies beside some
	// config.json, nil where there is none. It counts if config.json has no
	// quantization_config.
	Quantization io.Reader
}

// LoadConfig reads the config.json at path and the hf_quant_config.json beside
// it, if there is one; the model is named after its folder. See [ReadConfig].
func LoadConfig(path string) (*Model, error) {
	return LoadConfigWithOptions(path, ConfigOptions{})
}

// LoadConfigWithOptions is [LoadConfig] with options. Without
// ConfigOptions.Quantization it looks for the file.
func LoadConfigWithOptions(path string, o ConfigOptions) (*Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("layout: %w", err)
	}
	defer f.Close()
	if o.Quantization == nil {
		q, err := os.Open(filepath.Join(filepath.Dir(path), quantFile))
		switch {
		case err == nil:
			defer q.Close()
			o.Quantization = q
		case !errors.Is(err, os.ErrNotExist):
			return nil, fmt.Errorf("layout: %w", err)
		}
	}
	m, err := ReadConfigWithOptions(path, f, o)
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
// and ignores all others; a key that is null is missing. Numbers may be a bare
// Infinity or NaN, as Python writes them. Layers for multi-token prediction are
// left out: they are read from the draft model's own file, see [Model.WithDraft].
//
// A missing key that bears on the layout is an error, but for those that the
// published files of an architecture leave out: head_dim is the hidden size over
// the heads in Llama, Granite, Jamba and (if that is 128) Nemotron-H, num_key_value_heads is
// num_attention_heads in Llama and Zamba2, and Gemma 3 with its keys under
// text_config has 4 of 256. A file without a dtype gives a model
// of [DefaultDType], one without max_position_embeddings a MaxTokens of 0. A key
// that is not understood and would change a size is an error, too.
//
// Model.KVDType is what the checkpoint declares. The rules are those of vLLM
// 0.33.0: an entry of modelopt says fp8 or nvfp4, one of compressed-tensors fp8,
// and any other says nothing.
//
// The error is a *[ConfigError] that names file, key and value, wraps
// [ErrConfig], and [ErrArchitecture] where the architecture is not one of
// [Architectures].
func ReadConfig(name string, r io.Reader) (*Model, error) {
	return ReadConfigWithOptions(name, r, ConfigOptions{})
}

// ReadConfigWithOptions is [ReadConfig] with options.
func ReadConfigWithOptions(name string, r io.Reader, o ConfigOptions) (*Model, error) {
	if _, ok := families[o.As]; o.As != "" && !ok {
		return nil, optionFault("reading %s as %q: want one of %v", name, o.As, Families())
	}
	c, err := parseConfig(name, r)
	if err != nil {
		return nil, err
	}
	if o.Quantization != nil {
		if c.quant, err = parseConfig(filepath.Join(filepath.Dir(name), quantFile), o.Quantization); err != nil {
			return nil, err
		}
		c.quant.err = c.err
	}
	return c.model(&o)
}

const quantFile = "hf_quant_config.json"

func parseConfig(name string, r io.Reader) (*config, error) {
	source, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return nil, fmt.Errorf("layout: %s: %w", name, err)
	}
	fail := func(err error) error { return &ConfigError{File: name, Err: err} }
	if len(source) > maxConfig {
		return nil, fail(fmt.Errorf("more than %d bytes", maxConfig))
	}
	c := &config{reading: &reading{file: name, source: source, data: pythonNumbers(source)}, err: new(error)}
	if err := json.Unmarshal(c.data, &c.keys); err != nil {
		return nil, jsonFault(name, c.data, err)
	}
	if c.keys == nil {
		return nil, fail(errors.New("null, want an object"))
	}
	return c, nil
}

// pythonNumbers returns data with a bare Infinity and NaN, which JSON does not
// know, replaced by numbers of as many letters that are no integers.
func pythonNumbers(data []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(data); i++ {
		switch b := data[i]; {
		case inString && b == '\\':
			i++
		case b == '"':
			inString = !inString
		case inString || b != 'I' && b != 'N':
		default:
			for _, n := range [2][2]string{{"Infinity", "1e999999"}, {"NaN", "1e9"}} {
				if bytes.HasPrefix(data[i:], []byte(n[0])) {
					if out == nil {
						out = bytes.Clone(data)
					}
					copy(out[i:], n[1])
					i += len(n[0]) - 1
					break
				}
			}
		}
	}
	if out == nil {
		return data
	}
	return out
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

// reading is what all objects of a file share.
type reading struct {
	file   string
	source []byte
	data   []byte  // the source in strict JSON, of the same length
	quant  *config // hf_quant_config.json, nil without it
	depth  int     // the model's layers, once known
	// read has the keys that were asked for, by path, and their values.
	read map[string]json.RawMessage
}

// config is an object of the file. Its getters note the first thing that is
// wrong in *err and give a harmless value.
type config struct {
	*reading
	path  string
	keys  map[string]json.RawMessage
	outer *config // where the dtype is looked for, too
	err   *error
}

func (c *config) raw(key string) (json.RawMessage, bool) {
	v, ok := c.keys[key]
	if ok && c.read != nil {
		c.read[c.path+key] = v
	}
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
	e := &ConfigError{File: c.file, Key: c.path + key, Err: err}
	if at := offsetOf(c.data, strings.Split(e.Key, ".")); at > 0 {
		e.Line = lineAt(c.data, at)
		rest := bytes.TrimLeft(c.source[at:], " \t\r\n:")
		v = rest[:min(len(v), len(rest))]
	}
	value := strings.Join(strings.Fields(string(v)), " ")
	if len(value) > 80 {
		value = strings.ToValidUTF8(value[:80], "") + "..."
	}
	e.Value = value
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
	in := &config{reading: c.reading, path: c.path + key + ".", outer: c, err: c.err}
	c.decode(key, &in.keys, "an object")
	return in
}

// on reports whether a key is true, off whether it is false; a missing one is
// neither.
func (c *config) on(key string) bool  { return c.boolean(key, false) }
func (c *config) off(key string) bool { return !c.boolean(key, true) }

func (c *config) boolean(key string, missing bool) bool {
	v := missing
	if c.has(key) {
		c.decode(key, &v, "true or false")
	}
	return v
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
