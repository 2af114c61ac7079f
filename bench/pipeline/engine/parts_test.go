package engine

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kvgate/kvgate/bench/trace"
	"github.com/kvgate/kvgate/cuda/sim"
	"github.com/kvgate/kvgate/loadgate"
	"github.com/kvgate/kvgate/loadgate/core"
	"github.com/kvgate/kvgate/memory/kv"
	"github.com/kvgate/kvgate/memory/layout"
)

// A block is shared when all ids that it overlaps, and those before them, are
// equal, and both prompts fill it.
func TestPrefixKeys(t *testing.T) {
	g := &group{tokens: 1000, pages: 1}
	keys := func(input int, ids ...uint64) (out []prefix) {
		r := &trace.Request{Input: input, HashIDs: ids}
		for i := range g.count(input) {
			if k, ok := key(3, g, i, r, prefixes(ids)); ok {
				out = append(out, k)
			}
		}
		return out
	}
	// Block 0 overlaps ids 0 and 1, block 1 ids 1 to 3, block 2 ids 3 to 5.
	a := keys(3000, 1, 2, 3, 4, 5, 6)
	require.Len(t, a, 3)
	require.Equal(t, a, keys(3000, 1, 2, 3, 4, 5, 6))
	require.Equal(t, a[:2], keys(2999, 1, 2, 3, 4, 5, 6), "its last block is not full")
	require.Equal(t, a[:2], keys(3000, 1, 2, 3, 4, 5, 7)[:2])
	require.NotEqual(t, a[2], keys(3000, 1, 2, 3, 4, 5, 7)[2])
	require.NotEqual(t, a[1], keys(3000, 1, 2, 3, 9, 5, 6)[1])
	require.Equal(t, a[0], keys(3000, 1, 2, 9, 4, 5, 6)[0])
	other := keys(3000, 8, 2, 3, 4, 5, 6)
	for i := range a {
		require.NotEqual(t, a[i], other[i], "what lies before counts")
	}
	require.Empty(t, keys(3000))
	_, ok := key(0, &group{state: true, tokens: 1000}, 0, &trace.Request{Input: 3000}, []uint64{1, 2})
	require.False(t, ok, "states are nobody else's")
}

func TestGroupArithmetic(t *testing.T) {
	g := &group{tokens: 10, window: 25}
	require.Equal(t, 0, g.first(24))
	require.Equal(t, 0, g.first(33), "the token at 33 looks back to 9")
	require.Equal(t, 1, g.first(34))
	require.Equal(t, 0, (&group{tokens: 10}).first(1000))
	require.Equal(t, []int{0, 1, 1, 2}, []int{g.count(0), g.count(1), g.count(10), g.count(11)})
	require.Equal(t, []int{10, 3, 0}, []int{g.filled(0, 13), g.filled(1, 13), g.filled(2, 13)})
}

func testLedger(zero bool) (*ledger, *cell) {
	m := &cache{arena: &layout.Arena{Plan: &layout.Plan{BlockBytes: 128, Scale: 3}, Base: 1 << 20, Blocks: 4}, pages: 2, held: 64}
	m.table.Segments = []layout.Segment{{Base: 1 << 20, Stride: 64, Page: 64}, {Base: 1<<20 + 256, Stride: 64, Page: 64}}
	m.groups = []group{{tokens: 16, pages: 2}, {state: true, pages: 2}}
	l := newLedger(m, &Config{Zero: zero})
	l.mem = make([]byte, m.size())
	return l, l.begin(kv.Tenancy{Block: 2, Generation: 1}, &m.groups[0], 0)
}

// Each byte of a page that changes is seen, and which words are there follows
// from the tokens: two to a word here.
func TestLedgerSeesEveryByte(t *testing.T) {
	l, c := testLedger(true)
	for filled := range 16 {
		require.Equal(t, (filled+1)/2, l.written(c.group, filled))
		require.True(t, l.intact(c, 1, 0, filled))
		l.append(c, 1, 0, filled)
	}
	require.True(t, l.intact(c, 1, 0, 16))
	require.False(t, l.intact(c, 1, 0, 14), "more than there should be")
	require.False(t, l.intact(c, 0, 0, 16), "the other page is empty")
	page := l.page(c, 1)
	for i := range page {
		page[i] ^= 0x40
		require.False(t, l.intact(c, 1, 0, 16), "byte %d", i)
		page[i] ^= 0x40
	}
	next := l.begin(kv.Tenancy{Block: 2, Generation: 2}, c.group, 0)
	require.False(t, l.intact(next, 1, 0, 16), "content of the tenancy before")
	bare, d := testLedger(false)
	for i := range bare.mem {
		bare.mem[i] = 0xff
	}
	require.True(t, bare.intact(d, 0, 0, 0), "without zeroing nothing is promised behind the tokens")
}

func TestLedgerTellsVersionsOfStates(t *testing.T) {
	l, _ := testLedger(true)
	s := l.begin(kv.Tenancy{Block: 3, Generation: 1}, &l.cache.groups[1], 0)
	l.append(s, 0, 4, 0)
	require.True(t, l.intact(s, 0, 5, 0))
	require.False(t, l.intact(s, 0, 4, 0))
}

// What is counted: a tenancy once, at its first use or later, and the request.
func TestLedgerCounts(t *testing.T) {
	l, c := testLedger(true)
	r := &request{}
	l.use(c, 0, 0, 1, r)
	l.use(c, 1, 0, 1, r)
	l.use(c, 1, 0, 1, r)
	require.Equal(t, []int{1, 0}, []int{l.corrupted, l.later})
	require.True(t, r.corrupted)
	d := l.begin(kv.Tenancy{Block: 1, Generation: 1}, c.group, 0)
	for range 2 {
		l.use(d, 0, 0, 0, r)
		l.use(d, 1, 0, 0, r)
		l.page(d, 0)[7] = 1
	}
	require.Equal(t, []int{1, 1}, []int{l.corrupted, l.later})

	old := l.begin(kv.Tenancy{Block: 3, Generation: 1}, c.group, 0)
	l.writes(old)
	fresh := l.begin(kv.Tenancy{Block: 3, Generation: 2}, c.group, 0)
	l.writes(old)
	l.zeroes([]kv.Block{3})
	require.Zero(t, l.strays, "nothing of the new tenancy is there yet")
	l.writes(fresh)
	l.writes(old)
	l.zeroes([]kv.Block{3, 0})
	require.Equal(t, 2, l.strays)
}

// Kernels and launches meet in the order of their stream, whoever comes first.
func TestZeroingMeetsItsKernels(t *testing.T) {
	l, c := testLedger(true)
	z := &zeroing{ledger: l}
	l.writes(c)
	told := func(w core.Where, b ...kv.Block) { z.told(loadgate.LaunchInfo{Where: w, Blocks: b}) }
	saw := func(w core.Where) { z.saw(sim.Ran{Stream: streams[w], What: "zero_blocks_56"}) }
	told(core.OnIdle, 1)
	told(core.OnIdle, 2)
	saw(core.OnIdle)
	require.Zero(t, l.strays)
	require.ErrorContains(t, z.check(), "gate idle 1 launches")
	saw(core.OnIdle)
	require.Equal(t, 1, l.strays)
	saw(core.OnBusy)
	require.Error(t, z.check())
	told(core.OnBusy, 2)
	require.Equal(t, 2, l.strays)
	require.NoError(t, z.check())
	told(core.OnCompute, make([]kv.Block, idsPerKernel+1)...)
	saw(core.OnCompute)
	require.Error(t, z.check())
	saw(core.OnCompute)
	require.NoError(t, z.check())
	z.saw(sim.Ran{Stream: "kernels warm-up", What: "zero_blocks"})
	z.saw(sim.Ran{Stream: computeName, What: forwardName})
	require.NoError(t, z.check())
	require.Equal(t, 5, z.kernels)
	require.Equal(t, float64((1+1+1+idsPerKernel+1)*2*64)*float64(l.cache.scale()), z.bytes)
}

func TestMeterIdle(t *testing.T) {
	const us = time.Microsecond
	m := meter{costs: sim.Costs{LaunchLatency: 4 * us, KernelGap: us}}
	step := func(asked, begun, ended time.Duration) {
		m.asked = append(m.asked, asked)
		m.ran(sim.Ran{Stream: computeName, What: forwardName, Begun: begun, Ended: ended - 10*us})
		m.ran(sim.Ran{Stream: computeName, What: sampleName, Begun: ended - 10*us, Ended: ended})
	}
	step(0, 50*us, 100*us)
	require.Equal(t, 46*us, m.idle, "the first step waits for zeroing too")
	m.idle = 0
	step(60*us, 101*us, 200*us)
	require.Zero(t, m.idle, "back to back")
	step(160*us, 221*us, 300*us)
	require.Equal(t, 20*us, m.idle, "it could have begun at 201")
	m.blocks(280*us, true)
	m.unblocks(340 * us)
	step(345*us, 349*us, 400*us)
	require.Equal(t, 60*us, m.idle, "behind a wait of the host that outlasts the step before by 40")
	require.Equal(t, 60*us, m.blocked)
	step(500*us, 504*us, 600*us)
	require.Equal(t, 60*us, m.idle, "the host was late by itself")
	m.blocks(590*us, false)
	m.unblocks(650 * us)
	step(660*us, 664*us, 700*us)
	require.Equal(t, 60*us, m.idle, "no step waited")
	require.Equal(t, []time.Duration{100 * us, 100 * us, 100 * us, 200 * us, 100 * us}, m.stepTimes())
	m.pause()
	m.pause()
	step(900*us, 904*us, 1000*us)
	require.Len(t, m.stepTimes(), 5)
	require.InDelta(t, 0.5, m.idleShare(span{0, 100 * us}), 1e-9)
	require.Zero(t, m.idleShare(span{5, 5}))
	m.ran(sim.Ran{Stream: "gate idle", Begun: 0, Ended: time.Hour})
	require.Equal(t, 1000*us, m.lastEnd)
}

func TestPercentile(t *testing.T) {
	var d []time.Duration
	for i := 101; i > 0; i-- {
		d = append(d, time.Duration(i)*time.Millisecond)
	}
	require.Equal(t, []float64{51, 100, 0}, []float64{percentile(d, 50), percentile(d, 99), percentile(nil, 50)})
}

// Every model that the library knows can be held at a reduced size, and each
// page of it keeps what is needed to tell it apart.
func TestEveryModelIsHeld(t *testing.T) {
	for _, name := range layout.Names() {
		m, err := layout.Named(name)
		require.NoError(t, err)
		c := Config{}
		c.Plan, err = layout.NewPlan(m, layout.Options{Order: m.Order()})
		require.NoError(t, err)
		p, err := heldPlan(&c)
		require.NoError(t, err)
		a, err := p.Place(1<<30, 3)
		require.NoError(t, err)
		cache, err := newCache(&c, a)
		require.NoError(t, err, name)
		require.GreaterOrEqual(t, cache.held, uint64(reduced))
		require.LessOrEqual(t, cache.held, uint64(4*reduced), name)
		require.Equal(t, c.Plan.BlockBytes, uint64(cache.pages)*cache.held*uint64(cache.scale()), name)
	}
}
