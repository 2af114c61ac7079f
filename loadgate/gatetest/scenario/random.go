package scenario

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// Random returns the text of a script of n statements or a few more, that seed
// decides. It keeps to what the gate asks of its callers (a step says which
// bytes it writes beside a holder's), and does not care whether a statement
// will be refused. A gated mode may corrupt nothing under any of them.
func Random(seed uint64, n int) string {
	g := &generator{rnd: rand.New(rand.NewPCG(seed, 2))}
	g.put("gate blocks=%d%s%s", 4+g.rnd.IntN(5), g.pick("", "", "", " clean"), g.pick("", " limit=200us"))
	for len(g.lines) < n {
		g.statement()
	}
	for _, p := range g.plans {
		g.put("give-up %s", p)
	}
	g.put("end-step")
	g.put("wait device")
	return strings.Join(g.lines, "\n")
}

type generator struct {
	rnd       *rand.Rand
	lines     []string
	names     int
	live      []*group // allocated, as far as the generator knows
	plans     []string
	writes    map[string]string // what a plan's step writes, as options
	fences    []string
	transfers []string
}

// group is a holder and its blocks, each as name.index.
type group struct {
	holder string
	blocks []string
}

func (r *group) all() string { return "(" + strings.Join(r.blocks, " ") + ")" }

func (g *generator) put(format string, args ...any) {
	g.lines = append(g.lines, fmt.Sprintf(format, args...))
}

func (g *generator) fresh(prefix string) string {
	g.names++
	return fmt.Sprintf("%s%d", prefix, g.names)
}

func (g *generator) statement() {
	if len(g.live) == 0 {
		g.request()
		return
	}
	switch k := g.rnd.IntN(100); {
	case k < 9:
		g.request()
	case k < 11:
		g.grow()
	case k < 13:
		g.slide()
	case k < 20:
		g.leave()
	case k < 38:
		g.transfer()
	case k < 50:
		g.plan()
	case k < 62:
		g.submit()
	case k < 66:
		g.put("busy %dus stream=%s", 50+g.rnd.IntN(1500), g.pick("compute", "other"))
	case k < 74:
		g.put("sleep %dus", g.rnd.IntN(300))
	case k < 80:
		g.put("end-step")
	case k < 85:
		g.put("progress")
	case k < 89 && len(g.transfers) > 0:
		g.put("wait %s", g.pick(g.transfers...))
	case k < 91 && len(g.transfers) > 0:
		g.put("cancel %s", g.pick(g.transfers...))
	case k < 93 && len(g.fences) > 0:
		g.put("wait %s", g.pick(g.fences...))
	case k < 95:
		r := g.group()
		g.put("%s %s", g.pick("zero", "reset"), g.some(r))
	case k < 98:
		g.fault()
	default:
		g.share()
	}
}

func (g *generator) pick(words ...string) string { return words[g.rnd.IntN(len(words))] }

func (g *generator) group() *group { return g.live[g.rnd.IntN(len(g.live))] }

// some names one block of a group, or all.
func (g *generator) some(r *group) string {
	if g.rnd.IntN(2) == 0 {
		return r.all()
	}
	return g.pick(r.blocks...)
}

func (g *generator) bytes() string {
	return g.pick("", " bytes=0..1024", " bytes=1024..2048", " bytes=512..1600", " bytes=0..64")
}

func (g *generator) request() {
	r := &group{holder: g.fresh("A")}
	r.blocks = g.alloc()
	g.put("hold %s %s", r.holder, r.all())
	g.zero(r.all())
	g.live = append(g.live, r)
}

func (g *generator) alloc() (blocks []string) {
	name, n := g.fresh("X"), 1+g.rnd.IntN(3)
	g.put("alloc %s %d", name, n)
	for i := range n {
		blocks = append(blocks, fmt.Sprintf("%s.%d", name, i))
	}
	return blocks
}

func (g *generator) zero(blocks string) {
	switch g.rnd.IntN(4) {
	case 0:
	case 1:
		g.put("zero %s covered", blocks)
	default:
		g.put("zero %s", blocks)
	}
}

// grow gives a request another block, as decoding does.
func (g *generator) grow() {
	r := g.group()
	more := g.alloc()
	g.put("append %s (%s)", r.holder, strings.Join(more, " "))
	g.zero("(" + strings.Join(more, " ") + ")")
	r.blocks = append(r.blocks, more...)
}

// slide lets a request's oldest block go, as a sliding window does.
func (g *generator) slide() {
	r := g.group()
	if len(r.blocks) < 2 {
		return
	}
	g.put("remove %s %s", r.holder, r.blocks[0])
	g.put("free %s", r.blocks[0])
	r.blocks = r.blocks[1:]
}

func (g *generator) leave() {
	k := g.rnd.IntN(len(g.live))
	r := g.live[k]
	g.live = append(g.live[:k], g.live[k+1:]...)
	g.put("drop %s", r.holder)
	g.put("free %s", r.all())
}

func (g *generator) transfer() {
	r, t := g.group(), g.fresh("L")
	g.transfers = append(g.transfers, t)
	if g.rnd.IntN(4) == 0 {
		g.put("store %s %s %s%s", t, r.holder, g.some(r), g.bytes())
	} else {
		g.put("load %s %s %s%s from=%s", t, r.holder, g.some(r), g.bytes(), g.pick(peerNames...))
	}
}

func (g *generator) plan() {
	p := g.fresh("P")
	var holders []string
	for _, r := range g.live {
		if g.rnd.IntN(2) == 0 {
			holders = append(holders, r.holder)
		}
	}
	if g.writes == nil {
		g.writes = map[string]string{}
	}
	extra := ""
	if g.rnd.IntN(2) == 0 {
		what, bytes := g.some(g.group()), g.bytes()
		extra = " extra=" + what + bytes
		g.writes[p] = " writes=" + what + bytes
	}
	g.put("plan %s (%s)%s", p, strings.Join(holders, " "), extra)
	g.plans = append(g.plans, p)
}

func (g *generator) submit() {
	if len(g.plans) == 0 {
		g.plan()
	}
	k := g.rnd.IntN(len(g.plans))
	p := g.plans[k]
	if g.rnd.IntN(8) == 0 {
		g.put("give-up %s", p)
	} else {
		g.put("submit %s for=%dus%s", p, 1+g.rnd.IntN(800), g.writes[p])
		g.fences = append(g.fences, p)
		if g.rnd.IntN(3) == 0 {
			return // it may have been refused: once more, later
		}
	}
	g.plans = append(g.plans[:k], g.plans[k+1:]...)
}

func (g *generator) fault() {
	switch g.rnd.IntN(8) {
	case 0:
		g.put("fail launch after=%d", g.rnd.IntN(3))
	case 1:
		g.put("fail record after=%d", g.rnd.IntN(3))
	case 2:
		g.put("disconnect %s", g.pick(peerNames...))
	default:
		g.put("fault %s at=0.5 factor=20", g.pick("fail-post", "fail-half-way", "fail-late", "slow", "slow", "slow", "hang", "disconnect"))
	}
}

// share gives blocks to a second holder, as a prefix hit does.
func (g *generator) share() {
	r := g.group()
	h := g.fresh("A")
	g.put("ref %s", r.all())
	g.put("hold %s %s", h, r.all())
	g.live = append(g.live, &group{h, slices.Clone(r.blocks)})
}
