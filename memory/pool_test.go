package memory_test

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kvgate/kvgate/internal/testutil"
	"github.com/kvgate/kvgate/memory"
	"github.com/kvgate/kvgate/memory/kv"
)

func TestMain(m *testing.M) { os.Exit(testutil.Run(m)) }

func newPool(t testing.TB, o memory.PoolOptions) *memory.Pool {
	p, err := memory.NewPool(o)
	require.NoError(t, err)
	return p
}

func alloc(t testing.TB, p *memory.Pool, n int) []kv.Tenancy {
	ts, err := p.Alloc(n, nil)
	require.NoError(t, err)
	return ts
}

func TestPoolNullBlock(t *testing.T) {
	p := newPool(t, memory.PoolOptions{Name: "kv", Blocks: 8})
	for range 3 { // through the whole pool, three times over
		ts := alloc(t, p, 7)
		for _, x := range ts {
			require.NotEqual(t, kv.Null, x.Block)
		}
		_, err := p.Alloc(1, nil)
		require.ErrorIs(t, err, memory.ErrFull)
		require.NoError(t, p.Free(ts))
	}
	before := p.Counters()
	for gen := range kv.Generation(3) {
		null := kv.Tenancy{Block: kv.Null, Generation: gen}
		require.ErrorIs(t, p.Free([]kv.Tenancy{null}), memory.ErrNullBlock)
		require.ErrorIs(t, p.Ref([]kv.Tenancy{null}), memory.ErrNullBlock)
	}
	require.ErrorIs(t, p.Free([]kv.Tenancy{{Block: kv.Pad}}), memory.ErrNoBlock)
	require.Equal(t, before, p.Counters())

	_, err := memory.NewPool(memory.PoolOptions{Blocks: 1})
	require.ErrorIs(t, err, memory.ErrOutOfRange, "nothing but the null block")
}

func TestPoolRealNull(t *testing.T) {
	p := newPool(t, memory.PoolOptions{Name: "state", Blocks: 1, RealNull: true})
	ts := alloc(t, p, 1)
	require.Equal(t, []kv.Tenancy{{Block: 0, Generation: 1}}, ts)
	require.NoError(t, p.Free(ts))
	require.Equal(t, memory.PoolCounters{Blocks: 1, Free: 1}, p.Counters())
}

func TestPoolRefusesAndChangesNothing(t *testing.T) {
	p := newPool(t, memory.PoolOptions{Name: "kv", Blocks: 10})
	ts := alloc(t, p, 4)
	old := ts[3]
	require.NoError(t, p.Free(ts[3:]))
	good := ts[0]
	for name, c := range map[string]struct {
		list []kv.Tenancy
		want error
		says string
	}{
		"freed twice":         {[]kv.Tenancy{good, old}, memory.ErrNotAllocated, "block 4 gen 1"},
		"listed twice":        {[]kv.Tenancy{good, ts[1], good}, memory.ErrDuplicate, "block 1 gen 1"},
		"other generation":    {[]kv.Tenancy{good, {Block: 2, Generation: 7}}, memory.ErrStale, "its generation is 1"},
		"never handed out":    {[]kv.Tenancy{good, {Block: 9}}, memory.ErrNotAllocated, "block 9 gen 0"},
		"null block":          {[]kv.Tenancy{good, {Block: 0, Generation: 1}}, memory.ErrNullBlock, "block 0"},
		"padding":             {[]kv.Tenancy{good, {Block: kv.Pad}}, memory.ErrNoBlock, "block -1"},
		"behind the last":     {[]kv.Tenancy{good, {Block: 10, Generation: 1}}, memory.ErrNoBlock, "block 10"},
		"lowest possible id":  {[]kv.Tenancy{good, {Block: -1 << 31}}, memory.ErrNoBlock, "block -2147483648"},
		"highest possible id": {[]kv.Tenancy{good, {Block: 1<<31 - 1}}, memory.ErrNoBlock, "block 2147483647"},
	} {
		t.Run(name, func(t *testing.T) {
			before := p.Counters()
			for what, call := range map[string]func([]kv.Tenancy) error{"free": p.Free, "ref": p.Ref} {
				err := call(c.list)
				require.ErrorIs(t, err, c.want, what)
				require.ErrorContains(t, err, c.says)
				require.ErrorContains(t, err, `pool "kv"`)
			}
			require.Equal(t, before, p.Counters())
			require.Equal(t, 1, p.Refs(good))
		})
	}
	_, err := p.Alloc(-1, nil)
	require.ErrorIs(t, err, memory.ErrOutOfRange)
	dst := []kv.Tenancy{good}
	dst, err = p.Alloc(7, dst)
	require.ErrorIs(t, err, memory.ErrFull)
	require.Equal(t, []kv.Tenancy{good}, dst)
}

func TestPoolGenerations(t *testing.T) {
	p := newPool(t, memory.PoolOptions{Blocks: 2})
	first := alloc(t, p, 1)
	require.NoError(t, p.Free(first))
	second := alloc(t, p, 1)
	require.Equal(t, first[0].Block, second[0].Block)
	require.NotEqual(t, first[0].Generation, second[0].Generation)
	require.ErrorIs(t, p.Free(first), memory.ErrStale)
	require.Zero(t, p.Refs(first[0]))
	require.Equal(t, 1, p.Refs(second[0]))
	require.Zero(t, p.Refs(kv.Tenancy{Block: kv.Pad}))
}

func TestPoolGrow(t *testing.T) {
	p := newPool(t, memory.PoolOptions{Blocks: 5})
	ts := alloc(t, p, 3)
	require.NoError(t, p.Free(ts[:2]))
	require.NoError(t, p.Grow(2))
	require.Equal(t, memory.PoolCounters{Blocks: 7, Free: 5, Used: 1, Null: 1, Refs: 1}, p.Counters())
	var ids []kv.Block
	for _, x := range alloc(t, p, 5) {
		ids = append(ids, x.Block)
	}
	require.Equal(t, []kv.Block{4, 1, 2, 5, 6}, ids, "oldest free block first")
	require.ErrorIs(t, p.Grow(-1), memory.ErrOutOfRange)
	require.ErrorIs(t, p.Grow(1<<31-1), memory.ErrOutOfRange)
}

// lender is a reclaimer that gives back what the test lets it.
type lender struct {
	held   []kv.Tenancy
	ready  []kv.Tenancy
	refuse error
}

func (l *lender) Retire(ts []kv.Tenancy) error {
	if l.refuse != nil {
		return l.refuse
	}
	l.held = append(l.held, ts...)
	return nil
}

func (l *lender) Reusable(dst []kv.Tenancy) []kv.Tenancy {
	dst = append(dst, l.ready...)
	l.ready = nil
	return dst
}

func TestPoolReclaimer(t *testing.T) {
	l := &lender{}
	p := newPool(t, memory.PoolOptions{Name: "kv", Blocks: 4, Reclaimer: l})
	ts := alloc(t, p, 3)
	require.NoError(t, p.Ref(ts[:1]))

	l.refuse = errors.New("gate is closed")
	before := p.Counters()
	require.ErrorIs(t, p.Free(ts), l.refuse)
	require.Equal(t, before, p.Counters(), "they stay allocated")
	l.refuse = nil

	require.NoError(t, p.Free(ts))
	require.Equal(t, ts[1:], l.held, "the one with another reference stays")
	require.Equal(t, memory.PoolCounters{Blocks: 4, Used: 1, Retired: 2, Null: 1, Refs: 1}, p.Counters())
	require.ErrorIs(t, p.Free(ts[1:2]), memory.ErrNotAllocated, "retired")
	_, err := p.Alloc(1, nil)
	require.ErrorIs(t, err, memory.ErrFull)

	l.ready = []kv.Tenancy{ts[2]}
	got := alloc(t, p, 1)
	require.Equal(t, []kv.Tenancy{{Block: ts[2].Block, Generation: 2}}, got)

	for name, bad := range map[string]kv.Tenancy{
		"twice":            ts[2],
		"used":             ts[0],
		"other generation": {Block: ts[1].Block, Generation: 9},
		"no block":         {Block: 77, Generation: 1},
		"padding":          {Block: kv.Pad},
	} {
		l.ready = []kv.Tenancy{bad}
		_, err := p.Collect()
		require.ErrorIs(t, err, memory.ErrReclaimer, name)
	}
	l.ready = []kv.Tenancy{{Block: 77}, ts[1]}
	n, err := p.Collect()
	require.ErrorIs(t, err, memory.ErrReclaimer)
	require.Equal(t, 1, n, "the good one is free all the same")
}

// twin is the plain second pool: maps and a list.
type twin struct {
	refs    map[kv.Block]int
	gen     map[kv.Block]kv.Generation
	free    []kv.Block
	retired []kv.Tenancy
}

func (w *twin) check(ts []kv.Tenancy) bool {
	seen := map[kv.Block]bool{}
	for _, t := range ts {
		if w.refs[t.Block] == 0 || w.gen[t.Block] != t.Generation || seen[t.Block] {
			return false
		}
		seen[t.Block] = true
	}
	return true
}

func TestPoolTwin(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		blocks := rapid.IntRange(2, 12).Draw(t, "blocks")
		realNull := rapid.Bool().Draw(t, "realNull")
		l := &lender{}
		o := memory.PoolOptions{Blocks: blocks, RealNull: realNull}
		if rapid.Bool().Draw(t, "reclaimer") {
			o.Reclaimer = l
		}
		p, err := memory.NewPool(o)
		require.NoError(t, err)
		w := &twin{refs: map[kv.Block]int{}, gen: map[kv.Block]kv.Generation{}}
		for b := range blocks {
			if b > 0 || realNull {
				w.free = append(w.free, kv.Block(b))
			}
		}
		var known []kv.Tenancy // everything ever handed out, live or not
		list := func() []kv.Tenancy {
			var ts []kv.Tenancy
			for range rapid.IntRange(0, 3).Draw(t, "len") {
				if len(known) > 0 && rapid.IntRange(0, 9).Draw(t, "wild") > 0 {
					// The newest more often: older ones are mostly stale.
					back := rapid.IntRange(1, min(len(known), 6)).Draw(t, "back")
					ts = append(ts, known[len(known)-back])
				} else {
					ts = append(ts, kv.Tenancy{
						Block:      kv.Block(rapid.IntRange(-1, blocks).Draw(t, "block")),
						Generation: kv.Generation(rapid.IntRange(0, 3).Draw(t, "gen"))})
				}
			}
			return ts
		}
		for range rapid.IntRange(1, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 4).Draw(t, "what") {
			case 0, 1:
				n := rapid.IntRange(0, 4).Draw(t, "n")
				for _, r := range l.ready {
					w.free = append(w.free, r.Block)
				}
				got, err := p.Alloc(n, nil)
				if n > len(w.free) {
					require.ErrorIs(t, err, memory.ErrFull)
					break
				}
				require.NoError(t, err)
				var want []kv.Tenancy
				for _, b := range w.free[:n] {
					w.gen[b]++
					w.refs[b] = 1
					want = append(want, kv.Tenancy{Block: b, Generation: w.gen[b]})
				}
				w.free = w.free[n:]
				require.Equal(t, want, got)
				known = append(known, got...)
			case 2:
				ts := list()
				err := p.Ref(ts)
				require.Equal(t, w.check(ts), err == nil, "%v: %v", ts, err)
				if err == nil {
					for _, x := range ts {
						w.refs[x.Block]++
					}
				}
			case 3:
				ts := list()
				err := p.Free(ts)
				require.Equal(t, w.check(ts), err == nil, "%v: %v", ts, err)
				if err == nil {
					for _, x := range ts {
						if w.refs[x.Block]--; w.refs[x.Block] > 0 {
							continue
						}
						if o.Reclaimer == nil {
							w.free = append(w.free, x.Block)
						} else {
							w.retired = append(w.retired, x)
						}
					}
				}
			case 4:
				if len(w.retired) > 0 {
					require.ElementsMatch(t, w.retired, l.held)
					i := rapid.IntRange(0, len(w.retired)-1).Draw(t, "back")
					x := w.retired[i]
					w.retired = slices.Delete(w.retired, i, i+1)
					l.held = slices.DeleteFunc(l.held, func(y kv.Tenancy) bool { return x == y })
					l.ready = append(l.ready, x)
				}
			}
			c := p.Counters()
			require.Equal(t, c.Blocks, c.Free+c.Used+c.Retired+c.Null)
			used, refs := 0, 0
			for b, n := range w.refs {
				if n > 0 {
					used++
				}
				refs += n
				require.Equal(t, n, p.Refs(kv.Tenancy{Block: b, Generation: w.gen[b]}))
			}
			require.Equal(t, used, c.Used)
			require.Equal(t, refs, c.Refs)
		}
	})
}

func BenchmarkPool(b *testing.B) {
	for _, n := range []int{1, 1000} {
		b.Run(fmt.Sprintf("alloc-free-%d", n), func(b *testing.B) {
			p := newPool(b, memory.PoolOptions{Blocks: 100_000})
			var ts []kv.Tenancy
			b.ReportAllocs()
			for b.Loop() {
				var err error
				if ts, err = p.Alloc(n, ts[:0]); err != nil {
					b.Fatal(err)
				}
				if err := p.Free(ts); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
