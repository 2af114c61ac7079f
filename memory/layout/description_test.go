package layout

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func describe(t require.TestingT, p *Plan, base uint64, blocks int) *Description {
	a, err := p.Place(base, blocks)
	require.NoError(t, err)
	return a.Description()
}

// The form in which ranks tell of themselves: a change of it is a new version.
func TestDescriptionForm(t *testing.T) {
	a, err := plan(t, byHand(), Options{Pool: 3, TP: 2, Rank: 1}).Place(1<<40, 10)
	require.NoError(t, err)
	a.Revision, a.Generation = "main", 7
	d := a.Description()
	data, err := json.MarshalIndent(d, "", " ")
	require.NoError(t, err)
	require.JSONEq(t, `{
		"version": 1, "model": "by hand", "revision": "main",
		"order": "LBNHC", "conv_order": "SD", "state_mode": "none", "speculative_tokens": 0,
		"tp": 2, "rank": 1, "pp": 1, "stage": 0, "real_null": false, "scale": 1,
		"block_tokens": 16, "block_bytes": 2048,
		"groups": [
			{"kind": "recurrent", "block_tokens": 1000, "kernel_tokens": 0, "ratio": 1, "pages": [
				{"layers": [0, 2, 4, 6], "kind": "recurrent", "bytes": 512, "used": 400,
				 "regions": [{"name": "temporal", "off": 0, "len": 400}],
				 "temporal": [2, 100], "conv_dtype": "bfloat16", "state_dtype": "bfloat16"}]},
			{"kind": "full attention", "block_tokens": 16, "kernel_tokens": 16, "ratio": 1, "pages": [
				{"layers": [1, 3, 5], "kind": "full attention", "bytes": 512, "used": 512,
				 "heads": 1, "first_head": 1, "dtype": "bfloat16"}]}],
		"base": 1099511627776, "blocks": 10, "pool": 3, "generation": 7}`, string(data))

	read, err := ParseDescription(data)
	require.NoError(t, err)
	require.Equal(t, d, read)
	read, err = ParseDescription([]byte(strings.Replace(string(data), `"version"`, `"later": {"x": [1]}, "version"`, 1)))
	require.NoError(t, err, "what is not known is ignored")
	require.Equal(t, d, read)
}

func TestDescriptionsOfModels(t *testing.T) {
	eachModel(t, func(t *testing.T, p *Plan) {
		d := describe(t, p, 1<<40, 3)
		data, err := json.Marshal(d)
		require.NoError(t, err)
		read, err := ParseDescription(data)
		require.NoError(t, err)
		require.Equal(t, d, read)
		require.NoError(t, d.Compare(describe(t, p, 1<<30, 500)), "place and number of blocks are free")
		pages := 0
		for i, g := range d.Groups {
			n := 0
			for _, pg := range g.Pages {
				n += len(pg.Layers)
			}
			require.Len(t, p.Groups[i].Pages, n)
			pages += len(g.Pages)
		}
		require.Less(t, pages, 16, "alike pages are told of once")
	})
}

// Whatever differs between two plans is named, and what is named differs.
func TestMismatchesAreNamed(t *testing.T) {
	base := func() (*Model, Options) { return byHand(), Options{TP: 2, BlockTokens: 32} }
	for name, c := range map[string]struct {
		change func(m *Model, o *Options)
		want   []MismatchError // the first fields
	}{
		"nothing":     {func(*Model, *Options) {}, nil},
		"pool":        {func(_ *Model, o *Options) { o.Pool = 9 }, nil},
		"model":       {func(m *Model, _ *Options) { m.Name = "other" }, []MismatchError{{"model", `"by hand"`, `"other"`}}},
		"order":       {func(_ *Model, o *Options) { o.Order = LBHNC }, []MismatchError{{"order", "LBNHC", "LBHNC"}}},
		"conv order":  {func(_ *Model, o *Options) { o.ConvOrder = ConvDS }, []MismatchError{{"conv_order", "SD", "DS"}}},
		"rank":        {func(_ *Model, o *Options) { o.Rank = 1 }, []MismatchError{{"rank", "0", "1"}, {"groups[1].pages[0].first_head", "0", "1"}}},
		"speculation": {func(_ *Model, o *Options) { o.SpeculativeTokens = 1 }, []MismatchError{{"speculative_tokens", "0", "1"}}},
		"null block":  {func(_ *Model, o *Options) { o.RealNull = true }, []MismatchError{{"real_null", "false", "true"}}},
		"state mode": {func(_ *Model, o *Options) { o.StateMode = StateAlign },
			[]MismatchError{{"state_mode", "none", "align"}, {"groups[0].block_tokens", "1000", "32"}}},
		"kernel blocks": {func(_ *Model, o *Options) { o.Kernel = KernelBlocks{Exact: []int{16}} },
			[]MismatchError{{"groups[1].kernel_tokens", "32", "16"}, {"groups[1].ratio", "1", "2"}}},
		"kv dtype": {func(_ *Model, o *Options) { o.KVDType = Float16 },
			[]MismatchError{{"groups[1].pages[0].dtype", "bfloat16", "float16"}}},
		"block size": {func(_ *Model, o *Options) { o.BlockTokens = 64 }, []MismatchError{{"block_tokens", "32", "64"}, {"block_bytes", "4096", "8192"}}},
		"a layer more": {func(m *Model, _ *Options) { m.Layers = append(m.Layers, full(2, 8)) },
			[]MismatchError{{"groups[1].pages[0].layers", "[1 3 5]", "[1 3 5 7]"}}},
		"another kind": {func(m *Model, _ *Options) { m.Layers[0] = state(4, 90) }, []MismatchError{{"block_bytes", "4096", "1024"}, {"groups", "a list of 2", "a list of 7"}}},
	} {
		t.Run(name, func(t *testing.T) {
			m, o := base()
			ours := describe(t, plan(t, m, o), 1<<40, 3)
			c.change(m, &o)
			p, err := NewPlan(m, o)
			require.NoError(t, err)
			err = ours.Compare(describe(t, p, 1<<41, 4))
			if len(c.want) == 0 {
				require.NoError(t, err)
				return
			}
			require.ErrorIs(t, err, ErrMismatch)
			joined := err.(interface{ Unwrap() []error }).Unwrap()
			for i := range c.want {
				require.Equal(t, &c.want[i], joined[i])
				require.ErrorContains(t, err, c.want[i].Field+": ours is "+c.want[i].Ours+", the peer's "+c.want[i].Theirs)
			}
		})
	}
	ours := describe(t, plan(t, byHand(), Options{}), 1<<40, 3)
	theirs := *ours
	theirs.Revision, theirs.Scale, theirs.PP = "main", 2, 2
	var first *MismatchError
	require.ErrorAs(t, ours.Compare(&theirs), &first)
	require.Equal(t, &MismatchError{"revision", `""`, `"main"`}, first)
}

func TestBadDescriptions(t *testing.T) {
	good, err := json.Marshal(describe(t, plan(t, byHand(), Options{}), 1<<40, 10))
	require.NoError(t, err)
	_, err = ParseDescription(good)
	require.NoError(t, err)
	for want, change := range map[string][2]string{
		"version is missing":                       {`"version":1`, `"ver":1`},
		"version is missing or less than 1":        {`"version":1`, `"version":0`},
		"invalid character":                        {`"version":1`, `"version":1,,`},
		"cannot unmarshal":                         {`"version":1`, `"version":"1"`},
		"order is missing":                         {`"order":"LBNHC"`, `"Order":"LBNHC"`},
		"model is missing":                         {`"model":"by hand"`, `"model":null`},
		"groups[1].kind is missing":                {`{"kind":"full attention","block_tokens"`, `{"block_tokens"`},
		"groups[0].pages[0].regions[0].len":        {`,"len":800`, ``},
		`unknown order "NHC"`:                      {`"LBNHC"`, `"NHC"`},
		`unknown kind "fuzzy attention"`:           {`"full attention"`, `"fuzzy attention"`},
		`unknown dtype "bfloat17"`:                 {`"dtype":"bfloat16"`, `"dtype":"bfloat17"`},
		`unknown state mode "all"`:                 {`"state_mode":"none"`, `"state_mode":"all"`},
		`convolution state "XS"`:                   {`"conv_order":"SD"`, `"conv_order":"XS"`},
		"rank is 3 of tp 1":                        {`"rank":0`, `"rank":3`},
		"rank is 0 of tp -1":                       {`"tp":1`, `"tp":-1`},
		"stage is -1 of pp 1":                      {`"stage":0`, `"stage":-1`},
		"speculative_tokens is -1":                 {`"speculative_tokens":0`, `"speculative_tokens":-1`},
		"scale is 0":                               {`"scale":1`, `"scale":0`},
		"blocks is 0":                              {`"blocks":10`, `"blocks":0`},
		"block_bytes is 0":                         {`"block_bytes":4096`, `"block_bytes":0`},
		"block_tokens is -1, want":                 {`"block_tokens":16,"block_bytes"`, `"block_tokens":-1,"block_bytes"`},
		"base is 0x0":                              {`"base":1099511627776`, `"base":0`},
		"base is 0xffffffffffffff9c":               {`"base":1099511627776`, `"base":18446744073709551516`},
		"groups are 0":                             {`"groups":[`, `"groups":[],"old":[`},
		"groups[1].ratio is 3 kernel blocks of 16": {`"kernel_tokens":16,"ratio":1`, `"kernel_tokens":16,"ratio":3`},
		"groups[1].window is -5":                   {`"kind":"full attention","block_tokens"`, `"kind":"full attention","window":-5,"block_tokens"`},
		"groups[0].pages[0].layers are 0":          {`[0,2,4,6]`, `[]`},
		"layers are not of 0 to 4095":              {`[0,2,4,6]`, `[0,2,4,4096]`},
		"bytes is 0, of which 0 used":              {`"bytes":1024,"used":800`, `"bytes":0,"used":0`},
		"bytes is 1024, of which 1025 used":        {`"used":800`, `"used":1025`},
		"bytes: more than the 4096 of a block":     {`"bytes":1024,"used":800`, `"bytes":1025,"used":800`},
		"heads are -1":                             {`"heads":2`, `"heads":-1`},
		"regions[0] is 801 bytes at 0":             {`"len":800`, `"len":801`},
		"regions[0] is 800 bytes at 4, behind 0":   {`"off":0`, `"off":4`},
		"temporal[0] is 0":                         {`"temporal":[4,100]`, `"temporal":[0,100]`},
		"which BHLNC can't take apart":             {`"LBNHC"`, `"BHLNC"`},
		"conv_rows is -2":                          {`"temporal":[4,100]`, `"temporal":[4,100],"conv_rows":-2`},
	} {
		t.Run(want, func(t *testing.T) {
			bad := strings.Replace(string(good), change[0], change[1], 1)
			require.NotEqual(t, string(good), bad, "the change is one")
			d, err := ParseDescription([]byte(bad))
			require.ErrorIs(t, err, ErrDescription)
			require.ErrorContains(t, err, want)
			require.Nil(t, d)
		})
	}
	for _, garbage := range []string{"", "null", "[]", "7", "{", `{"version":1}`, strings.Repeat(" ", maxDescription+1)} {
		_, err := ParseDescription([]byte(garbage))
		require.ErrorIs(t, err, ErrDescription, "%.20q", garbage)
	}
	var mismatch *MismatchError
	_, err = ParseDescription([]byte(`{"version":2,"new":"form"}`))
	require.ErrorAs(t, err, &mismatch)
	require.Equal(t, &MismatchError{"version", "1", "2"}, mismatch)
}

func TestDescriptionOfAnyPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, o := drawModel(t)
		p, err := NewPlan(m, o)
		if err != nil {
			return
		}
		d := describe(t, p, 1<<30, 4)
		data, err := json.Marshal(d)
		require.NoError(t, err)
		read, err := ParseDescription(data)
		require.NoError(t, err)
		require.Equal(t, d, read)
	})
}

func FuzzParseDescription(f *testing.F) {
	for _, o := range []Options{{}, {Order: BLHNC, ConvOrder: ConvDS, StateMode: StateAlign}, {TP: 2, Rank: 1, Kernel: FlashInfer(), BlockTokens: 64}} {
		p, err := NewPlan(byHand(), o)
		require.NoError(f, err)
		data, err := json.Marshal(describe(f, p, 1<<40, 10))
		require.NoError(f, err)
		f.Add(data)
	}
	f.Add([]byte(`{"version":2}`))
	f.Add([]byte(`{"version":1,"groups":[{}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		d, err := ParseDescription(data)
		if err != nil {
			require.Nil(t, d)
			require.True(t, errors.Is(err, ErrDescription) || errors.Is(err, ErrMismatch), err)
			return
		}
		require.NoError(t, d.Compare(d))
		again, err := json.Marshal(d)
		require.NoError(t, err)
		read, err := ParseDescription(again)
		require.NoError(t, err)
		require.NoError(t, d.Compare(read))
	})
}
