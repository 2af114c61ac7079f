// Package lint checks the rules that the compiler does not: who may import
// whom, what must not be called and what to use instead, and what must not
// stand in a committed file. Its tests run the rules over the whole module; others
// give each rule a source that it must refuse.
//
// Two rules need types, and are tests alone: no exported signature names a type of
// an internal package, and what is exported has a consumer, or its reason in
// unused.txt.
package lint
