// Graph is an engine whose steps are one CUDA graph. It was captured before the
// request had a block, and reads the request's block table on the device, which
// each step brings up to date ahead of the graph.
//
//	go run ./examples/graph
//
// The device is a GPU where there is one, else simulated. The graph's kernel stands
// for attention: it sums up what is in the blocks that the table names.
package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/kvgate/kvgate/cuda"
	"github.com/kvgate/kvgate/cuda/auto"
	"github.com/kvgate/kvgate/kernels"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

func main() {
	dev, err := auto.Open(os.Stderr, auto.Options{})
	if err == nil {
		err = errors.Join(run(context.Background(), os.Stdout, dev), dev.Close())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "graph:", err)
		os.Exit(1)
	}
}

// engine is what the steps need.
type engine struct {
	dev   cuda.Device
	gate  *loadgate.Gate
	set   *kernels.Set
	pages *kernels.Table // where blocks lie, for the kernel
	sums  *memory.Buffer // a word for each place of the block table
	graph cuda.GraphExec
	table loadgate.BlockTable
}

func run(ctx context.Context, w io.Writer, dev cuda.Device) (err error) {
	g, ok := dev.(cuda.Grapher)
	if !ok {
		return fmt.Errorf("graphs: %w", cuda.ErrNotSupported)
	}
	model := &layout.Model{Name: "two layers", MaxTokens: 1024, Layers: []layout.Layer{
		{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 64, ValueDim: 64},
		{Kind: layout.FullAttention, KVHeads: 2, KeyDim: 64, ValueDim: 64}}}
	plan, err := layout.NewPlan(model, layout.Options{})
	if err != nil {
		return err
	}
	e := &engine{dev: dev}
	if e.gate, err = loadgate.Open(dev, loadgate.Options{Plan: plan, Memory: 1 << 20,
		Tables: loadgate.TableOptions{Requests: 4, Tokens: 1024}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.gate.Close(ctx)) }()
	if e.table, err = e.gate.Table(0); err != nil {
		return err
	}
	if e.set, err = kernels.Load(dev); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.set.Close()) }()
	if e.pages, err = kernels.NewTable(dev, e.gate.Arena().Tables().Transfer); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.pages.Close()) }()
	if e.sums, err = memory.NewBuffer(dev, uint64(8*e.table.Len), cuda.AllocOptions{Name: "sums"}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.sums.Close()) }()
	r, err := e.gate.NewRequest()
	if err != nil {
		return err
	}
	if err := e.capture(g, r.Row()); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.DestroyGraphExec(e.graph)) }()
	for tokens := 40; tokens <= 160; tokens += 40 {
		n, err := e.step(ctx, r, tokens)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "%d tokens: the graph found %d blocks in the table, and the right content in each\n", tokens, n)
	}
	return r.Close()
}

// capture makes the graph: one kernel over the row of a block table, whatever is in
// it when the graph runs.
func (e *engine) capture(g cuda.Grapher, row int) error {
	s := e.gate.Compute().Handle()
	if err := g.BeginCapture(s, cuda.CaptureRelaxed); err != nil {
		return err
	}
	var b cuda.Batch
	ids := kernels.List{IDs: e.table.Addr + cuda.DevicePtr(4*row*e.table.Len), Max: e.table.Len}
	err := e.set.ChecksumBlocksAt(&b, s, e.pages, ids, e.sums.Ptr())
	if err == nil {
		err = e.dev.Submit(&b)
	}
	graph, end := g.EndCapture(s)
	if err = errors.Join(err, end); err != nil {
		return err
	}
	if e.graph, err = g.Instantiate(graph); err != nil {
		return errors.Join(err, g.DestroyGraph(graph))
	}
	return g.DestroyGraph(graph)
}

// step appends 40 tokens, and compares what the graph found with what is there. It
// returns the number of blocks.
func (e *engine) step(ctx context.Context, r loadgate.Request, tokens int) (int, error) {
	if err := r.Grow(tokens); err != nil {
		return 0, err
	}
	step, err := e.gate.NewStep([]loadgate.Use{{Request: r, Tokens: 40}})
	if err != nil {
		return 0, err
	}
	blocks, err := r.AppendBlocks(nil, 0)
	if err != nil {
		return 0, err
	}
	if err := step.Begin(); err != nil { // zeroing, waits, the block table
		return 0, err
	}
	var b cuda.Batch
	e.write(&b, blocks[len(blocks)-1], byte(tokens))
	b.LaunchGraph(e.gate.Compute().Handle(), e.graph)
	if err := e.dev.Submit(&b); err != nil {
		return 0, errors.Join(err, step.Abandon())
	}
	out, err := step.End()
	if err != nil {
		return 0, err
	}
	if err := errors.Join(e.gate.Wait(ctx, out), r.Settle(40)); err != nil {
		return 0, err
	}
	return len(blocks), e.check(blocks)
}

// write stands for the step's new keys and values.
func (e *engine) write(b *cuda.Batch, block kv.Block, v byte) {
	for _, s := range e.pages.Layout().Segments {
		b.Fill8(e.gate.Compute().Handle(), cuda.DevicePtr(s.Address(block)), v, s.Page)
	}
}

func (e *engine) check(blocks []kv.Block) error {
	sums := make([]byte, 8*e.table.Len)
	if err := e.sums.Read(sums, 0); err != nil {
		return err
	}
	for i := range e.table.Len {
		want := uint64(0) // of the null block
		if i < len(blocks) {
			var pages [][]byte
			for _, s := range e.pages.Layout().Segments {
				p := make([]byte, s.Page)
				if err := e.dev.Read(p, cuda.DevicePtr(s.Address(blocks[i]))); err != nil {
					return err
				}
				pages = append(pages, p)
			}
			want = kernels.Checksum(pages...)
		}
		if have := binary.LittleEndian.Uint64(sums[8*i:]); have != want {
			return fmt.Errorf("place %d of the block table: the graph's sum is %#x, want %#x", i, have, want)
		}
	}
	return nil
}
