package vtime

import "math/rand/v2"

// Chooser decides what comes next where the rules leave it open: which of
// several events of one instant, which of several actors that may go on. It is
// asked only when n is at least 2, with the machine locked, and returns one of
// 0..n-1.
type Chooser interface {
	Choose(what string, n int) int
}

// bySeed returns a chooser that draws evenly, by seed.
func bySeed(seed uint64) Chooser {
	return &seeded{rand.New(rand.NewPCG(seed, 0x63686f6f7365))}
}

type seeded struct{ r *rand.Rand }

func (s *seeded) Choose(_ string, n int) int { return s.r.IntN(n) }

// Script is a chooser that answers from a list, then with 0, and keeps what it
// was asked: an explorer varies Taken and runs again.
type Script struct {
	// Answers are taken in turn, each modulo the number of choices.
	Answers []uint
	// Taken is what was asked and answered.
	Taken []Choice
}

// Choice is one answer of a [Script].
type Choice struct {
	What   string
	Of     int
	Answer int
}

// Choose implements [Chooser].
func (s *Script) Choose(what string, n int) int {
	k := 0
	if i := len(s.Taken); i < len(s.Answers) {
		k = int(s.Answers[i] % uint(n))
	}
	s.Taken = append(s.Taken, Choice{what, n, k})
	return k
}
