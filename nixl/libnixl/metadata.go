package libnixl

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/kvgate/kvgate/nixl"
)

// Metadata is what a blob of an agent says, as far as it is not the backends'
// own. The library trusts a blob: AddPeer reads it here first, so that one which
// is not well formed never reaches C++, and so that memory which the peer did
// not register is refused by name. What the backends put into it (addresses,
// keys) is opaque here; AddPeer reads that of UCX.
type Metadata struct {
	Agent       string
	Connections []Connection // empty in a partial blob without them
	Regions     []RemoteRegion
	sealed      bool
	blob        []byte // as the library can load it
}

// Sealed reports whether the blob carries a checksum, which those of this
// binding do: it is as it was made. An unsealed blob is known to be well formed
// only.
func (m *Metadata) Sealed() bool { return m.sealed }

// Connection is how one backend of the agent is reached.
type Connection struct {
	Backend string
	Info    []byte // the backend's own
}

// RemoteRegion is memory that the agent registered with one backend.
type RemoteRegion struct {
	Backend string
	nixl.Region
	Key []byte // the backend's own
}

// Limits of a blob. They are far above what an agent can produce.
const (
	maxBackends = 1 << 10
	maxRegions  = 1 << 26
)

// ParseMetadata reads a blob, of this binding or of any other of the library.
// The error is an [nixl.ErrInvalid] that says what is wrong.
//
// The layout is that of the library's serializer (src/utils/serdes and
// src/core of NIXL 1.5): tagged fields, each with a 64-bit length before it
// and a bar behind it.
func ParseMetadata(blob []byte) (*Metadata, error) {
	m, _, err := parseMetadata(blob)
	return m, err
}

// offsets are places in a blob: the number of connections, the first one, the
// number of sections, and the sections without regions, from where to where.
type offsets struct {
	count, connections, sections int
	empty                        [][2]int
}

func parseMetadata(blob []byte) (*Metadata, offsets, error) {
	r := fieldReader{rest: blob}
	m := &Metadata{}
	var at offsets
	r.literal("nixlSerDes|")
	m.Agent = string(r.field("Agent"))
	if m.Agent == "" || bytes.IndexByte([]byte(m.Agent), 0) >= 0 {
		r.fail("bad name of an agent")
	}
	conns := r.count("Conns", maxBackends)
	at.connections = len(blob) - len(r.rest)
	at.count = at.connections - 9 // the number and a bar
	for range conns {
		c := Connection{Backend: string(r.field("t")), Info: r.field("c")}
		if r.err != nil {
			break
		}
		if len(c.Backend) == len(sealName) {
			if !checkSeal(blob, c.Backend, len(blob)-len(r.rest)-1-len(c.Info)) {
				r.fail("the checksum does not hold")
			}
			m.sealed = true
			continue
		}
		if c.Backend == "" || len(c.Info) == 0 {
			r.fail("connection without a backend or without content")
		}
		m.Connections = append(m.Connections, c)
	}
	if r.err == nil && string(r.field("")) != "MemSection" {
		r.fail("no memory section")
	}
	sections := r.count("nixlSecElms", maxBackends)
	at.sections = len(blob) - len(r.rest) - 9
	for range sections {
		if r.err != nil {
			break
		}
		begin, had := len(blob)-len(r.rest), len(m.Regions)
		r.section(m)
		if len(m.Regions) == had {
			at.empty = append(at.empty, [2]int{begin, len(blob) - len(r.rest)})
		}
	}
	if r.err == nil && len(r.rest) > 0 && trailer(blob, r.rest) {
		m.sealed, r.rest = true, nil
	}
	if r.err == nil && len(r.rest) > 0 {
		r.fail("%d bytes behind the end", len(r.rest))
	}
	if r.err != nil {
		return nil, at, nixl.Refuse("metadata", m.Agent, nixl.ErrInvalid, "%v", r.err)
	}
	m.blob = at.filled(blob)
	return m, at, nil
}

// section reads the regions of one backend and one memory type.
func (r *fieldReader) section(m *Metadata) {
	backend := string(r.field("bknd"))
	if kind := r.field("nixlDList"); r.err == nil && string(kind) != "nixlSDList" {
		r.fail("list of kind %q", kind)
	}
	kind := r.field("t")
	if r.err == nil && len(kind) != 4 {
		r.fail("memory type of %d bytes", len(kind))
	}
	if r.err != nil {
		return
	}
	memory := binary.NativeEndian.Uint32(kind)
	if memory > uint32(nixl.File) {
		r.fail("memory type %d", memory)
	}
	n := r.count("n", maxRegions)
	for range n {
		b := r.field("")
		if r.err == nil && len(b) < 24 {
			r.fail("descriptor of %d bytes", len(b))
		}
		if r.err != nil {
			return
		}
		m.Regions = append(m.Regions, RemoteRegion{
			Backend: backend,
			Region: nixl.Region{Type: nixl.MemoryType(memory), Descriptor: nixl.Descriptor{
				Addr:   binary.NativeEndian.Uint64(b),
				Len:    binary.NativeEndian.Uint64(b[8:]),
				Device: binary.NativeEndian.Uint64(b[16:]),
			}},
			Key: b[24:],
		})
	}
}

// life tells two lives of one agent apart: what its backends are reached by
// (for UCX that has a random number of the worker in it) is new in each.
func (m *Metadata) life() string {
	if len(m.Connections) == 0 {
		return ""
	}
	h := sha256.New()
	for _, c := range m.Connections {
		fmt.Fprintf(h, "%d %s %d ", len(c.Backend), c.Backend, len(c.Info))
		h.Write(c.Info)
	}
	return string(h.Sum(nil))
}

// registry returns the distinct regions as a registry.
func (m *Metadata) registry() (r nixl.Registry, err error) {
	for _, x := range m.Regions {
		if err := r.Learn(x.Region); err != nil {
			return r, nixl.Refuse("metadata", m.Agent, nixl.ErrInvalid, "%v", err)
		}
	}
	return r, nil
}

// keys returns the backends' keys of each region.
func (m *Metadata) keys() map[keyOf]string {
	k := make(map[keyOf]string, len(m.Regions))
	for _, x := range m.Regions {
		k[keyOf{x.Backend, x.Region}] = string(x.Key)
	}
	return k
}

type keyOf struct {
	backend string
	region  nixl.Region
}

// fieldReader reads the fields of a blob; after the first failure all reads
// return nothing.
type fieldReader struct {
	rest []byte
	err  error
}

func (r *fieldReader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *fieldReader) literal(s string) {
	if r.err != nil {
		return
	}
	if !bytes.HasPrefix(r.rest, []byte(s)) {
		r.fail("no %q where it has to be", s)
		return
	}
	r.rest = r.rest[len(s):]
}

func (r *fieldReader) field(tag string) []byte {
	r.literal(tag)
	if r.err == nil && len(r.rest) < 8 {
		r.fail("field %q is cut off", tag)
	}
	if r.err != nil {
		return nil
	}
	n := binary.NativeEndian.Uint64(r.rest)
	if n >= uint64(len(r.rest)-8) { // the bar needs a place too
		r.fail("field %q has %d bytes, more than there are", tag, n)
		return nil
	}
	b := r.rest[8 : 8+n]
	if r.rest[8+n] != '|' {
		r.fail("field %q does not end where it says", tag)
		return nil
	}
	r.rest = r.rest[8+n+1:]
	return b
}

func (r *fieldReader) count(tag string, limit uint64) uint64 {
	b := r.field(tag)
	if r.err == nil && len(b) != 8 {
		r.fail("count %q of %d bytes", tag, len(b))
	}
	if r.err != nil {
		return 0
	}
	n := binary.NativeEndian.Uint64(b)
	if n > limit {
		r.fail("count %q is %d", tag, n)
		return 0
	}
	return n
}
