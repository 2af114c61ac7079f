package layout

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
)

// fieldsOf calls f with the path and both values of every field of two structs
// of one type, by the names that they have in JSON. Of lists of unlike lengths
// it tells the lengths alone.
func fieldsOf(x, y any, f func(path, x, y string)) {
	walkFields("", reflect.ValueOf(x).Elem(), reflect.ValueOf(y).Elem(), f)
}

func walkFields(path string, x, y reflect.Value, f func(path, x, y string)) {
	switch {
	case x.Kind() == reflect.Struct:
		for i := range x.NumField() {
			name, _ := jsonName(x.Type().Field(i))
			walkFields(strings.TrimPrefix(path+"."+name, "."), x.Field(i), y.Field(i), f)
		}
	case x.Kind() == reflect.Slice && x.Type().Elem().Kind() == reflect.Struct:
		if x.Len() != y.Len() {
			f(path, fmt.Sprintf("a list of %d", x.Len()), fmt.Sprintf("a list of %d", y.Len()))
			return
		}
		for i := range x.Len() {
			walkFields(fmt.Sprintf("%s[%d]", path, i), x.Index(i), y.Index(i), f)
		}
	case x.Kind() == reflect.String:
		f(path, fmt.Sprintf("%q", x), fmt.Sprintf("%q", y))
	default:
		f(path, fmt.Sprint(x), fmt.Sprint(y))
	}
}

// jsonName returns a field's name in JSON, and whether it may be missing there.
func jsonName(f reflect.StructField) (name string, optional bool) {
	name, flags, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name, flags == "omitempty"
}

// missing returns the path of the first field of t that JSON has to have and
// has not, or "".
func missing(path string, t reflect.Type, data json.RawMessage) string {
	switch {
	case t.Kind() == reflect.Struct:
		var fields map[string]json.RawMessage
		if json.Unmarshal(data, &fields) != nil {
			return strings.TrimPrefix(path, ".")
		}
		for i := range t.NumField() {
			name, optional := jsonName(t.Field(i))
			value, ok := fields[name]
			if !ok && optional {
				continue
			}
			if !ok || string(value) == "null" {
				return strings.TrimPrefix(path+"."+name, ".")
			}
			if m := missing(path+"."+name, t.Field(i).Type, value); m != "" {
				return m
			}
		}
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Struct:
		var entries []json.RawMessage
		if json.Unmarshal(data, &entries) != nil {
			return strings.TrimPrefix(path, ".")
		}
		for i, e := range entries {
			if m := missing(fmt.Sprintf("%s[%d]", path, i), t.Elem(), e); m != "" {
				return m
			}
		}
	}
	return ""
}

// check makes sure that arithmetic on the description can't overflow and that
// its pages and regions lie where they have to.
func (d *Description) check() error {
	fault := func(format string, args ...any) error {
		return fmt.Errorf("layout: %s: %w", fmt.Sprintf(format, args...), ErrDescription)
	}
	switch {
	case d.TP < 1 || d.TP > MaxTP || d.Rank < 0 || d.Rank >= d.TP:
		return fault("rank is %d of tp %d, want tp 1 to %d", d.Rank, d.TP, MaxTP)
	case d.PP < 1 || d.PP > MaxLayers || d.Stage < 0 || d.Stage >= d.PP:
		return fault("stage is %d of pp %d, want pp 1 to %d", d.Stage, d.PP, MaxLayers)
	case d.SpeculativeTokens < 0 || d.SpeculativeTokens > MaxSpeculativeTokens:
		return fault("speculative_tokens is %d, want 0 to %d", d.SpeculativeTokens, MaxSpeculativeTokens)
	case d.Scale < 1:
		return fault("scale is 0")
	case d.BlockTokens < 0 || d.BlockTokens > MaxTokens:
		return fault("block_tokens is %d, want 0 to %d", d.BlockTokens, MaxTokens)
	case d.Blocks < 1 || d.Blocks > MaxBlocks:
		return fault("blocks is %d, want 1 to %d", d.Blocks, MaxBlocks)
	case d.BlockBytes < 1 || d.BlockBytes > maxPage*MaxLayers:
		return fault("block_bytes is %d, want 1 to %d", d.BlockBytes, uint64(maxPage*MaxLayers))
	case d.Base == 0 || mul(d.BlockBytes, uint64(d.Blocks)) > math.MaxUint64-d.Base:
		return fault("base is %#x, for %d blocks of %d bytes", d.Base, d.Blocks, d.BlockBytes)
	case len(d.Groups) < 1 || len(d.Groups) > MaxLayers:
		return fault("groups are %d, want 1 to %d", len(d.Groups), MaxLayers)
	}
	layers := 0
	for gi := range d.Groups {
		g, at := &d.Groups[gi], fmt.Sprintf("groups[%d]", gi)
		switch {
		case g.Window < 0 || g.Window > MaxTokens:
			return fault("%s.window is %d, want 0 to %d", at, g.Window, MaxTokens)
		case g.BlockTokens < 0 || g.BlockTokens > MaxTokens:
			return fault("%s.block_tokens is %d, want 0 to %d", at, g.BlockTokens, MaxTokens)
		case g.Ratio < 1 || g.Ratio > MaxTokens || g.KernelTokens < 0 || g.KernelTokens > MaxTokens,
			g.Kind.Attention() && (g.BlockTokens == 0 || g.KernelTokens*g.Ratio != g.BlockTokens):
			return fault("%s.ratio is %d kernel blocks of %d tokens in one of %d", at, g.Ratio, g.KernelTokens, g.BlockTokens)
		}
		var bytes uint64
		for i := range g.Pages {
			pg := &g.Pages[i]
			if why := pg.check(d.Order); why != "" {
				return fault("%s.pages[%d].%s", at, i, why)
			}
			if layers += len(pg.Layers); layers > MaxLayers {
				return fault("%s.pages[%d].layers: more than %d in all", at, i, MaxLayers)
			}
			if bytes += pg.Bytes * uint64(len(pg.Layers)); bytes > d.BlockBytes {
				return fault("%s.pages[%d].bytes: more than the %d of a block", at, i, d.BlockBytes)
			}
		}
	}
	return nil
}

// check returns what is wrong with the page, starting with the field.
func (p *PageDescription) check(o Order) string {
	switch {
	case len(p.Layers) == 0 || len(p.Layers) > MaxLayers:
		return fmt.Sprintf("layers are %d, want 1 to %d", len(p.Layers), MaxLayers)
	case slices.Min(p.Layers) < 0 || slices.Max(p.Layers) >= MaxLayers:
		return fmt.Sprintf("layers are not of 0 to %d", MaxLayers-1)
	case p.Bytes < 1 || p.Bytes > maxPage || p.Used > p.Bytes:
		return fmt.Sprintf("bytes is %d, of which %d used, want 1 to %d", p.Bytes, p.Used, uint64(maxPage))
	case p.Heads < 0 || p.Heads > MaxDim || p.FirstHead < 0 || p.FirstHead > MaxDim:
		return fmt.Sprintf("heads are %d from %d, want 0 to %d", p.Heads, p.FirstHead, MaxDim)
	case p.Compression < 0 || p.Compression > MaxDim:
		return fmt.Sprintf("compression is %d, want 0 to %d", p.Compression, MaxDim)
	case o.splitsPages() && (p.Heads < 1 || p.Bytes%uint64(p.Heads) != 0 || p.Used < p.Bytes):
		return fmt.Sprintf("heads are %d in %d bytes, which %v can't take apart", p.Heads, p.Bytes, o)
	case len(p.Regions) > 16 || len(p.Temporal) > 8:
		return fmt.Sprintf("regions are %d, of %d dimensions, want at most 16 and 8", len(p.Regions), len(p.Temporal))
	case p.ConvRows < 0 || p.ConvRows > 2*MaxDim || p.ConvChannels < 0 || uint64(p.ConvChannels) > maxPage:
		return fmt.Sprintf("conv_rows is %d, of %d channels", p.ConvRows, p.ConvChannels)
	}
	var end uint64
	for i, r := range p.Regions {
		if r.Off != end || r.Len > p.Used-end {
			return fmt.Sprintf("regions[%d] is %d bytes at %d, behind %d, of %d used", i, r.Len, r.Off, end, p.Used)
		}
		end += r.Len
	}
	for i, n := range p.Temporal {
		if n < 1 || n > MaxDim {
			return fmt.Sprintf("temporal[%d] is %d, want 1 to %d", i, n, MaxDim)
		}
	}
	return ""
}

// Names of enumerations in text, as their String methods give them.

func (o Order) MarshalText() ([]byte, error)     { return []byte(o.String()), nil }
func (k Kind) MarshalText() ([]byte, error)      { return []byte(k.String()), nil }
func (d DType) MarshalText() ([]byte, error)     { return []byte(d.String()), nil }
func (m StateMode) MarshalText() ([]byte, error) { return []byte(m.String()), nil }
func (o ConvOrder) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

func (o *Order) UnmarshalText(text []byte) (err error) {
	*o, err = ParseOrder(string(text))
	return err
}

func (d *DType) UnmarshalText(text []byte) (err error) {
	*d, err = ParseDType(string(text))
	return err
}

func (m *StateMode) UnmarshalText(text []byte) (err error) {
	*m, err = ParseStateMode(string(text))
	return err
}

func (k *Kind) UnmarshalText(text []byte) error {
	i := slices.Index(kindNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("layout: unknown kind %q: %w", text, ErrModel)
	}
	*k = Kind(i)
	return nil
}

func (o ConvOrder) String() string {
	if o == ConvSD {
		return "SD"
	}
	return "DS"
}

func (o *ConvOrder) UnmarshalText(text []byte) error {
	for *o = ConvSD; *o <= ConvDS; *o++ {
		if o.String() == string(text) {
			return nil
		}
	}
	return optionFault("unknown order of a convolution state %q, want SD or DS", text)
}
