package layout

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/memory/kv"
)

type transferOracle struct {
	Case, Kind, Source, Model string
	About                     string
	Taken                     int `json:"layers_taken"`
	Whole                     int `json:"layers_of_model"`
	RemoteTaken               int `json:"remote_layers_taken"`
	Facts                     map[string]any
	Groups                    []struct {
		Kind   string
		Layers []int
	}
	Local, Remote engineOracle
	Request       struct {
		Tokens      int
		FullHit     bool `json:"full_local_hit"`
		Speculative int  `json:"speculative_blocks"`
		Groups      []struct {
			Local  []kv.Block `json:"local_table"`
			Hit    int        `json:"local_hit_blocks"`
			Remote []kv.Block `json:"remote_table"`
		}
	}
	Expected struct {
		Contacted  []int `json:"handshake_with"`
		Read       []int `json:"read_from"`
		Told       []int `json:"notify_only"`
		Readers    int   `json:"readers_per_remote_rank"`
		Exchanged  any
		Moves      [][4]uint64
		Unowned    [][4]uint64 `json:"moves_unowned"`
		Zero       [][2]uint64
		After      string       `json:"after_arrival"`
		Final      [][4]uint64  `json:"final_moves"`
		SHA256     string       `json:"sha256_after"`
		RightMoves [][4]uint64  `json:"right_moves"`
		RightFrom  string       `json:"right_moves_source"`
		RightZero  *[][2]uint64 `json:"right_zero"`
		Refused    *refusal
		Worker     *refusal `json:"worker_refused"`
	}
	Doubt any

	peers []peerOracle
}

// peerOracle is a rank of the peer.
type peerOracle struct {
	engine *engineOracle
	rank   int
}

type refusal struct {
	Code, Type, Message, At string
	InFunction              string `json:"in_function"`
}

type engineOracle struct {
	TP, Rank      int
	Layout        string
	KVDType       string `json:"kv_dtype"`
	Backend       string
	GroupTokens   []int  `json:"group_block_tokens"`
	KernelTokens  int    `json:"kernel_block_tokens"`
	ConvOrder     string `json:"conv_order"`
	StateMode     string `json:"state_mode"`
	PrefixCaching bool   `json:"prefix_caching"`
	Permute       bool
	CheckHash     *bool `json:"check_hash"`
	HMA           *bool
	NumBlocks     int    `json:"num_blocks"`
	ArenaBytes    uint64 `json:"arena_bytes"`
	Tensors       []struct {
		Group       int
		Cache       string
		Layers      []int
		Offset      uint64
		LayerStride uint64 `json:"layer_stride"`
		BlockStride uint64 `json:"block_stride"`
		PageBytes   uint64 `json:"page_bytes"`
	}
}

// The bytes of a request are, after our moves and zeroing, what they are after
// the case's; bytes of others have not changed; and the same ranks are read and
// told. A pair that vLLM refuses is refused for the same reason, or planned: then
// the bytes are checked by what they mean. So are those of the other cases, of
// long requests with KVGATE_LONG only.
func TestTransferOracles(t *testing.T) {
	oracles(t, "KVGATE_TRANSFER_ORACLES", "transfer-*.json", func(t *testing.T, data []byte) {
		var file struct {
			Note  any
			Cases []transferOracle
		}
		strictly(t, data, &file)
		require.NotEmpty(t, file.Cases)
		for i := range file.Cases {
			c := &file.Cases[i]
			t.Run(c.Case, func(t *testing.T) { c.check(t) })
		}
	})
}

// model returns the part of the model that an engine of the case has.
func (c *transferOracle) model(t *testing.T, e *engineOracle, taken int) *Model {
	m := *loadModel(t, c.Model)
	m.Depth = taken
	m.Layers = slices.DeleteFunc(slices.Clone(m.Layers), func(l Layer) bool { return l.Index >= taken })
	// The cases have the index behind the cache, as in the older segment tables.
	slices.SortStableFunc(m.Layers, func(x, y Layer) int {
		if x.Index != y.Index || x.Kind == Recurrent || y.Kind == Recurrent {
			return x.Index - y.Index
		}
		return int(x.Kind) - int(y.Kind)
	})
	if e.HMA != nil && !*e.HMA { // all layers allocate as full attention
		for i := range m.Layers {
			if m.Layers[i].Kind == SlidingWindow {
				m.Layers[i].Kind, m.Layers[i].Window = FullAttention, 0
			}
		}
	}
	return &m
}

func (c *transferOracle) arena(t *testing.T, e *engineOracle, rank, taken int, base uint64) (*Arena, error) {
	m := c.model(t, e, taken)
	o := Options{TP: e.TP, Rank: rank, SpeculativeTokens: c.Request.Speculative}
	var err error
	o.Order, err = ParseOrder(e.Layout)
	require.NoError(t, err)
	o.KVDType, err = ParseDType(e.KVDType)
	require.NoError(t, err)
	if e.StateMode != "" {
		o.StateMode, err = ParseStateMode(e.StateMode)
		require.NoError(t, err)
	}
	if e.ConvOrder == "DS" {
		o.ConvOrder = ConvDS
	}
	hybrid := false
	for i := range m.Layers {
		hybrid = hybrid || m.Layers[i].Kind == Recurrent
	}
	manager := slices.Min(e.GroupTokens)
	o.Kernel = KernelBlocks{Exact: []int{e.KernelTokens}}
	if hybrid && e.KernelTokens == manager {
		o.Kernel = FlashAttention()
	}
	o.BlockTokens = manager
	o.MaxTokens = slices.Max(e.GroupTokens)
	p, err := NewPlan(m, o)
	if err != nil {
		return nil, err
	}
	return p.Place(base, e.NumBlocks)
}

// checkGeometry holds an arena against the tensors of the case.
func (e *engineOracle) checkGeometry(t *testing.T, a *Arena) {
	require.Equal(t, e.ArenaBytes, a.Plan.Size(a.Blocks))
	for g, n := range e.GroupTokens {
		require.Equal(t, n, a.Plan.Groups[g].BlockTokens, "group %d", g)
	}
	type key struct {
		group, layer int
		index        bool
	}
	places := map[key]Segment{}
	for _, x := range e.Tensors {
		for p, layer := range x.Layers {
			places[key{x.Group, layer, x.Cache == "index"}] = Segment{x.Offset + uint64(p)*x.LayerStride, x.BlockStride, x.PageBytes}
		}
	}
	n := 0
	for g := range a.Plan.Groups {
		for i := range a.Plan.Groups[g].Pages {
			l := &a.Plan.Model.Layers[a.Plan.Groups[g].Pages[i].Layer]
			s := a.Page(g, i)
			s.Base -= a.Base
			require.Equal(t, places[key{g, l.Index, l.Kind == SparseIndex}], s, "group %d layer %d", g, l.Index)
			n++
		}
	}
	require.Len(t, places, n)
}

const localBase = 1 << 36

func remoteBase(rank int) uint64 { return uint64(rank+1) << 40 }

func (c *transferOracle) check(t *testing.T) {
	local, err := c.arena(t, &c.Local, c.Local.Rank, c.Taken, localBase)
	require.NoError(t, err)
	c.Local.checkGeometry(t, local)
	taken := c.Taken
	if c.RemoteTaken > 0 {
		taken = c.RemoteTaken
	}
	var peers []*Description
	c.peers = nil
	for rank := range c.Remote.TP {
		c.peers = append(c.peers, peerOracle{&c.Remote, rank})
		remote, err := c.arena(t, &c.Remote, rank, taken, remoteBase(rank))
		if err != nil {
			require.NotNil(t, c.Expected.Refused, "%v", err)
			require.ErrorIs(t, err, ErrOptions)
			t.Logf("refused as %s by vLLM, here: %v", c.Expected.Refused.Code, err)
			return
		}
		c.Remote.checkGeometry(t, remote)
		peers = append(peers, remote.Description())
	}
	pairing, err := NewPairing(local, peers...)
	if r := c.Expected.Refused; r != nil {
		if err != nil {
			var mismatch *MismatchError
			require.ErrorAs(t, err, &mismatch)
			t.Logf("refused as %s by vLLM, here: %v", r.Code, err)
			return
		}
		t.Logf("refused as %s by vLLM, planned here", r.Code)
		c.meaning(t, local, pairing)
		return
	}
	require.NoError(t, err)
	if c.Expected.Worker != nil || c.Expected.RightMoves != nil || c.Taken*c.Request.Tokens < 5000 || os.Getenv("KVGATE_LONG") != "" {
		c.meaning(t, local, pairing)
	}
	if c.Expected.Worker != nil {
		t.Logf("refused as %s by vLLM's worker, planned here", c.Expected.Worker.Code)
		return
	}
	c.checkBytes(t, local, pairing)
}

// loaded returns, by group, our blocks that the case loads, negative where there
// is none, and the tokens from the first of them on.
func (c *transferOracle) loaded(p *Plan, g int) (blocks []kv.Block, tokens TokenRange) {
	r := &c.Request.Groups[g]
	blocks = slices.Clone(r.Local)
	tokens = TokenRange{0, c.Request.Tokens}
	if p.Groups[g].Kind != Recurrent {
		tokens.From = min(r.Hit*p.Groups[g].BlockTokens, tokens.To)
		for i := range min(r.Hit, len(blocks)) {
			blocks[i] = kv.Pad
		}
	}
	return blocks, tokens
}

// moves returns what we move: each group has its own tokens that are cached.
func (c *transferOracle) moves(t require.TestingT, local *Arena, pairing *Pairing, only int) [][]Move {
	all := make([][]Move, len(c.peers))
	if c.Request.FullHit {
		return all
	}
	for g := range c.Request.Groups {
		blocks, tokens := c.loaded(local.Plan, g)
		if tokens.From == tokens.To || only >= 0 && g != only {
			continue
		}
		tr := &Transfer{Tokens: tokens, Groups: make([]GroupBlocks, len(c.Request.Groups))}
		for i := range tr.Groups {
			tr.Groups[i].Skip = i != g
		}
		tr.Groups[g] = GroupBlocks{Local: blocks, Remote: c.Request.Groups[g].Remote}
		var m Moves
		require.NoError(t, pairing.Moves(&m, tr))
		for rank := range m.Peers {
			all[rank] = append(all[rank], m.Peers[rank]...)
		}
	}
	return all
}

// period is after how many bytes a rank's arena repeats.
const period = 256 * 251

// pattern is what the cases have in a rank's arena, twice a period: byte o is
// ((o*131 + (o>>8)*17 + rank*29 + 7) mod 251) + 1.
var pattern = func() func(rank uint64) []byte {
	made := map[uint64][]byte{}
	return func(rank uint64) []byte {
		if made[rank] == nil {
			b := make([]byte, 2*period)
			for o := range uint64(len(b)) {
				b[o] = byte((o*131+(o>>8)*17+rank*29+7)%251 + 1)
			}
			made[rank] = b
		}
		return made[rank]
	}
}()

// fill writes what the cases have in a rank's arena from an offset on.
func fill(dst []byte, rank, offset uint64) {
	for len(dst) > 0 {
		n := copy(dst, pattern(rank)[offset%period:])
		dst, offset = dst[n:], offset+uint64(n)
	}
}

func (c *transferOracle) checkBytes(t *testing.T, local *Arena, pairing *Pairing) {
	want, zero := c.after(t, local)
	got := filled(local.Plan.Size(local.Blocks))
	p := local.Plan
	fills := local.Tables().Groups
	owned := map[kv.Block]bool{}
	each := func(g int, f func(b kv.Block, i int)) {
		blocks, tokens := c.loaded(p, g)
		for i, b := range blocks {
			if p.Groups[g].Kind == Recurrent {
				if last := len(blocks) - 1 - c.Request.Speculative; i == last {
					f(b, i)
				}
			} else if b > 0 && i*p.Groups[g].BlockTokens < tokens.To {
				f(b, i)
			}
		}
	}
	for g := range p.Groups {
		each(g, func(b kv.Block, _ int) {
			owned[b] = true
			if !c.Request.FullHit && p.Groups[g].Kind != Recurrent {
				for _, s := range fills[g].Fill.Segments {
					clear(got[s.Address(b)-localBase:][:s.Page])
				}
			}
		})
	}
	read := map[int]bool{}
	for rank, list := range c.moves(t, local, pairing, -1) {
		for _, m := range list {
			read[rank] = true
			fill(got[m.Local-localBase:][:m.Len], uint64(rank), m.Remote-remoteBase(rank))
		}
	}

	// The request's tokens and states.
	transfer := local.Tables().Transfer
	var cover Cover
	for g := range p.Groups {
		if c.Request.FullHit {
			break
		}
		_, tokens := c.loaded(p, g)
		if tokens.From == tokens.To {
			continue
		}
		require.NoError(t, p.Cover(&cover, g, tokens))
		whole, err := transfer.Ranges(fills[g].Fill)
		require.NoError(t, err)
		each(g, func(b kv.Block, i int) {
			ranges := whole
			for _, part := range cover.Parts {
				if part.Index == i {
					ranges = part.Bytes
				}
			}
			for _, r := range ranges {
				eachRun(&transfer, b, r, func(at, n uint64) {
					at -= localBase
					require.True(t, bytes.Equal(want[at:at+n], got[at:at+n]), "group %d block %d: %d bytes at %d", g, b, n, at)
				})
			}
		})
	}
	for _, z := range zero {
		require.True(t, bytes.Equal(make([]byte, z[1]), got[z[0]:z[0]+z[1]]), "%d bytes at %d are to be zero", z[1], z[0])
	}
	// Nobody else's.
	for _, s := range transfer.Segments {
		old := filled(s.Page)
		for b := range kv.Block(local.Blocks) {
			if !owned[b] {
				at := s.Address(b) - localBase
				require.True(t, bytes.Equal(old, got[at:at+s.Page]), "block %d, which is not the request's", b)
			}
		}
	}
	c.checkRanks(t, pairing, read)
}

func (c *transferOracle) checkRanks(t *testing.T, pairing *Pairing, read map[int]bool) {
	from, told := pairing.Sources()
	if len(read) == 0 {
		from, told = nil, append(from, told...)
	}
	slices.Sort(told)
	require.ElementsMatch(t, c.Expected.Read, from)
	require.ElementsMatch(t, c.Expected.Told, told)
	require.Len(t, read, len(from))
	for _, rank := range from {
		require.True(t, read[rank])
	}
}

func filled(n uint64) []byte {
	return bytes.Repeat([]byte{0xa5}, int(n))
}

func hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// eachRun calls f with the addresses of bytes of a block.
func eachRun(table *Table, b kv.Block, r kv.Range, f func(at, n uint64)) {
	var off uint64
	for _, s := range table.Segments {
		from, to := max(r.Off, off), min(r.End(), off+s.Page)
		if from < to {
			f(s.Address(b)+from-off, to-from)
		}
		off += s.Page
	}
}

// after returns our arena after the case's own moves, or what is right where
// vLLM is wrong, and what has to be zero in it.
func (c *transferOracle) after(t *testing.T, local *Arena) ([]byte, [][2]uint64) {
	e := &c.Expected
	moves, zero, after := e.Moves, e.Zero, e.After
	switch {
	case e.RightMoves != nil:
		moves = e.RightMoves
		if e.RightZero != nil {
			zero = *e.RightZero
		}
	case e.Final != nil:
		moves, after = e.Final, ""
	}
	arena := filled(local.Plan.Size(local.Blocks))
	for _, m := range moves {
		fill(arena[m[2]:][:m[3]], m[0], m[1])
	}
	if after != "" {
		c.rearrange(t, local, arena, after)
	}
	for _, z := range zero {
		clear(arena[z[0] : z[0]+z[1]])
	}
	if e.SHA256 != "" && e.RightMoves == nil {
		require.Equal(t, e.SHA256, hash(arena), "the case itself")
	}
	return arena, zero
}

// rearrange puts the bytes of the loaded blocks into our order.
func (c *transferOracle) rearrange(t *testing.T, local *Arena, arena []byte, after string) {
	p := local.Plan
	for g := range p.Groups {
		gr := &p.Groups[g]
		if gr.Kind == Recurrent {
			continue
		}
		blocks, tokens := c.loaded(p, g)
		for i := range gr.Pages {
			pg, s := &gr.Pages[i], local.Page(g, i)
			heads, n := pg.Heads, gr.BlockTokens
			content := int(pg.Used) / n / heads
			sub := n
			if strings.Contains(after, "join_sub_blocks") {
				sub = c.Remote.KernelTokens
			}
			for k, b := range blocks {
				if b <= 0 || k*n >= tokens.To {
					continue
				}
				page := arena[s.Address(b)-localBase:][:pg.Used]
				old := slices.Clone(page)
				for h := range heads {
					for at := range n {
						from := ((at/sub*heads+h)*sub + at%sub) * content
						to := (h*n + at) * content
						if strings.Contains(after, "to_token_major") {
							to = (at*heads + h) * content
						}
						copy(page[to:to+content], old[from:from+content])
					}
				}
			}
		}
	}
}
