// Package layout describes where the blocks of a pool lie in memory: pools,
// groups of layers, segments of pages. It knows addresses and sizes and no
// device.
//
// A [Table] is a list of segments: block b of a segment is the Page bytes at
// Base + b*Stride, and the bytes between Page and Stride belong to someone else.
// The bytes of a block are its pages laid end to end in the order of the
// table's segments; a [kv.Range] counts in that space. Tables can be written by
// hand, or come out of a plan:
//
//	m, err := layout.LoadConfig("config.json")               // or Named, or by hand
//	p, err := layout.NewPlan(m, layout.Options{TP: 2})       // sizes and groups
//	n, err := p.Blocks(free)                                 // how many fit
//	a, err := p.Place(address, n)                            // addresses
//	t := a.Tables()                                          // as a gate's pool takes them
//
// # Models
//
// [LoadConfig] knows the architectures of [Architectures], by the rules of vLLM
// 0.33.0, in each spelling that is published; [Named] has the facts of some
// models, which [Names] lists. A [Model] says what each layer keeps, before it is
// cut over ranks; a [Plan] is one rank's part: of a tensor-parallel group
// (Options.TP) and of a pipeline (Options.PP).
//
// # What goes where
//
// All groups of a plan draw block ids from one pool, and memory is one run of
// bytes: the pages of layer i of every group lie at the same place. A block
// belongs to one group at a time, so that is sound, and it is why blocks are
// zeroed: one that held a state comes back as keys and values, and attention
// that multiplies masked values by zero makes NaN of NaN. [Plan.NeedsZeroing]
// says whether a model mixes kinds like that, [Plan.Why] says it in words.
//
// A pool of the gate takes [Arena.Tables]: every byte that a transfer may touch,
// and for each group what has to be written before a block has a new owner.
// Where the one lies in the other says [Table.Ranges].
//
// [Plan.Cover] says which blocks and bytes a range of a request's tokens touches,
// and what of these blocks it leaves; [Plan.Live] which tokens a group still needs.
//
// Ranks that move blocks between their arenas tell each other a [Description].
// [NewPairing] pairs ours with those of a peer, which may have other numbers of
// ranks and stages, block sizes and orders, and [Pairing.Moves] turns lists of
// blocks and a range of tokens into the runs of bytes of a transfer.
//
// # Pages of a reduced size
//
// A pool of a real model does not fit where the simulator runs. [Plan.Scaled]
// divides every size by an integer that divides all pages, and
// cuda.AllocOptions.CostScale makes up for it in the cost of everything that
// touches the memory. The plan keeps its groups, layers and kernel blocks, so
// the same tables, ids and numbers of segments are at work; [Plan.MaxScale]
// finds the integer. A page size chosen freely could be smaller still, but one
// allocation has one scale: with pages of two sizes costs would be right on
// average only, and not for each layer.
package layout
