// Package lint checks the rules that the compiler does not: who may import
// whom, what must not be called and what to use instead, and what must not
// stand in a committed file. Its test runs the rules over the whole module; a
// second test gives each rule a source that it must refuse.
package lint
