package layout

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/kvgate/kvgate/memory/kv"
)

// DescriptionVersion is the version of [Description] that this package writes
// and reads.
const DescriptionVersion = 1

var (
	// ErrDescription is wrapped by errors about a description that makes no
	// sense by itself.
	ErrDescription = errors.New("bad layout description")
	// ErrMismatch is what a [MismatchError] wraps.
	ErrMismatch = errors.New("layouts do not match")
)

// MismatchError names a field in which two layouts differ that has to be equal.
type MismatchError struct {
	Field        string // as in the JSON of [Description]: "order", "groups[1].block_tokens"
	Ours, Theirs string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("layout: %s: ours is %s, the peer's %s: %v", e.Field, e.Ours, e.Theirs, ErrMismatch)
}

func (e *MismatchError) Unwrap() error { return ErrMismatch }

// Description is what one rank tells another about its arena, so that they can
// find each other's blocks: [Arena.Description] makes one, encoding/json writes
// it, and [ParseDescription] reads what a peer wrote. It is plain data.
//
// Base, Blocks, Pool and Generation are the arena's own. Where all else is equal
// on both sides ([Description.Compare]) blocks are moved as they are; what may
// differ says [NewPairing].
type Description struct {
	Version int `json:"version"`

	Model    string `json:"model"`
	Revision string `json:"revision,omitempty"`

	Order             Order     `json:"order"`
	ConvOrder         ConvOrder `json:"conv_order"`
	StateMode         StateMode `json:"state_mode"`
	SpeculativeTokens int       `json:"speculative_tokens"`
	TP                int       `json:"tp"`
	Rank              int       `json:"rank"`
	PP                int       `json:"pp"`
	Stage             int       `json:"stage"`
	RealNull          bool      `json:"real_null"`
	Scale             uint32    `json:"scale"` // of [Plan.Scaled]

	BlockTokens int                `json:"block_tokens"` // of the first attention group
	BlockBytes  uint64             `json:"block_bytes"`
	Groups      []GroupDescription `json:"groups"`

	Base       uint64    `json:"base"`
	Blocks     int       `json:"blocks"`
	Pool       kv.PoolID `json:"pool"`
	Generation uint64    `json:"generation"`
}

// GroupDescription is a [Group] as told to a peer.
type GroupDescription struct {
	Kind         Kind              `json:"kind"`
	Window       int               `json:"window,omitempty"`
	BlockTokens  int               `json:"block_tokens"`
	KernelTokens int               `json:"kernel_tokens"`
	Ratio        int               `json:"ratio"`
	Pages        []PageDescription `json:"pages"`
}

// PageDescription tells of pages that follow each other in a group and are
// alike: one for each of Layers. See [Page].
type PageDescription struct {
	Layers       []int    `json:"layers"` // indices in Model.Layers
	Kind         Kind     `json:"kind"`
	Bytes        uint64   `json:"bytes"`
	Used         uint64   `json:"used"`
	Heads        int      `json:"heads,omitempty"`
	FirstHead    int      `json:"first_head,omitempty"`
	DType        DType    `json:"dtype,omitempty"`
	Compression  int      `json:"compression,omitempty"` // tokens that a vector covers, where more than one
	Regions      []Region `json:"regions,omitempty"`
	ConvRows     int      `json:"conv_rows,omitempty"`
	ConvChannels int      `json:"conv_channels,omitempty"`
	Temporal     []int    `json:"temporal,omitempty"`
	ConvDType    DType    `json:"conv_dtype,omitempty"`
	StateDType   DType    `json:"state_dtype,omitempty"`
}

// Description describes the arena.
func (a *Arena) Description() *Description {
	p, o := a.Plan, &a.Plan.Options
	d := &Description{Version: DescriptionVersion, Model: p.Model.Name, Order: o.Order, ConvOrder: o.ConvOrder,
		StateMode: o.StateMode, SpeculativeTokens: o.SpeculativeTokens, TP: o.TP, Rank: o.Rank, PP: o.PP, Stage: o.Stage,
		RealNull: o.RealNull, Scale: p.Scale, BlockTokens: p.BlockTokens, BlockBytes: p.BlockBytes,
		Base: a.Base, Blocks: a.Blocks, Pool: o.Pool, Revision: a.Revision, Generation: a.Generation}
	for i := range p.Groups {
		d.Groups = append(d.Groups, p.describe(&p.Groups[i]))
	}
	return d
}

func (p *Plan) describe(g *Group) GroupDescription {
	d := GroupDescription{Kind: g.Kind, Window: g.Window, BlockTokens: g.BlockTokens, KernelTokens: g.KernelTokens,
		Ratio: g.Ratio, Pages: []PageDescription{}}
	for i := range g.Pages {
		pg := &g.Pages[i]
		page := PageDescription{Kind: p.Model.Layers[pg.Layer].Kind, Bytes: pg.Bytes, Used: pg.Used, Heads: pg.Heads,
			FirstHead: pg.FirstHead, DType: pg.DType, Regions: slices.Clone(pg.Regions), ConvRows: pg.ConvRows,
			ConvChannels: pg.ConvChannels, Temporal: slices.Clone(pg.Temporal), ConvDType: pg.ConvDType, StateDType: pg.StateDType}
		if pg.perState > 1 {
			page.Compression = int(pg.perState)
		}
		if n := len(d.Pages); n > 0 && d.Pages[n-1].alike(&page) {
			d.Pages[n-1].Layers = append(d.Pages[n-1].Layers, pg.Layer)
			continue
		}
		page.Layers = []int{pg.Layer}
		d.Pages = append(d.Pages, page)
	}
	return d
}

func (p *PageDescription) alike(o *PageDescription) bool {
	equal := true
	fieldsOf(p, o, func(name, x, y string) { equal = equal && (name == "layers" || x == y) })
	return equal
}

// maxDescription bounds the JSON of a description, in bytes: ten times that of
// the largest model that [NewPlan] takes.
const maxDescription = 1 << 24

// ParseDescription reads what a peer wrote. Fields that it does not know are
// ignored. Another version is a [MismatchError]; what makes no sense is an error
// that wraps [ErrDescription] and names the field.
func ParseDescription(data []byte) (*Description, error) {
	if len(data) > maxDescription {
		return nil, fmt.Errorf("layout: a description of %d bytes, want at most %d: %w", len(data), maxDescription, ErrDescription)
	}
	var head struct{ Version *int }
	if err := json.Unmarshal(data, &head); err != nil {
		return nil, fmt.Errorf("layout: %v: %w", err, ErrDescription)
	}
	if head.Version == nil || *head.Version < 1 {
		return nil, fmt.Errorf("layout: version is missing or less than 1: %w", ErrDescription)
	}
	if *head.Version != DescriptionVersion {
		return nil, &MismatchError{"version", fmt.Sprint(DescriptionVersion), fmt.Sprint(*head.Version)}
	}
	var d Description
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("layout: %v: %w", err, ErrDescription)
	}
	if field := missing("", reflect.TypeFor[Description](), data); field != "" {
		return nil, fmt.Errorf("layout: %s is missing: %w", field, ErrDescription)
	}
	if err := d.check(); err != nil {
		return nil, err
	}
	return &d, nil
}

// Compare checks that blocks of the peer's arena mean the same as those of ours,
// byte by byte. The error joins a *[MismatchError] for each field that differs,
// in the order of the fields.
func (d *Description) Compare(peer *Description) error {
	var all []error
	fieldsOf(d, peer, func(name, ours, theirs string) {
		switch name {
		case "base", "blocks", "pool", "generation":
			return
		}
		if ours != theirs {
			all = append(all, &MismatchError{name, ours, theirs})
		}
	})
	return errors.Join(all...)
}
