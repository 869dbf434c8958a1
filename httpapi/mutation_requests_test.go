//go:build faults

package httpapi

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// mutant is what a client sends, and the places where it pauses.
type mutant struct {
	request []byte
	cuts    []int
}

// mutationBases are the good requests of the raw corpus, pipelined ones, and those
// of accounts.
func mutationBases(t testing.TB) (bases [][]byte) {
	for _, c := range readRawCorpus(t) {
		if !c.mustRefuse() {
			bases = append(bases, c.request)
		}
	}
	for _, one := range pipelinedRequests() {
		bases = append(bases, []byte(one[1]))
	}
	for _, e := range accountGood() {
		bases = append(bases, e.bytes())
	}
	return bases
}

// newMutant makes case number of a seed: one to four requests in a row, spoilt up to four times, cut into pieces.
func newMutant(seed, number uint64, bases [][]byte, words []string) mutant {
	random := rand.New(rand.NewPCG(seed, number))
	var m mutant
	for range 1 + random.IntN(4)*random.IntN(2) {
		m.request = append(m.request, bases[random.IntN(len(bases))]...)
	}
	for range random.IntN(5) {
		m.request = mutate(random, m.request, bases, words)
	}
	switch length := len(m.request); {
	case length == 0:
	case random.IntN(8) == 0: // at every byte
		for at := 1; at < length; at++ {
			m.cuts = append(m.cuts, at)
		}
	default:
		for range random.IntN(4) {
			m.cuts = append(m.cuts, random.IntN(length))
		}
		slices.Sort(m.cuts)
	}
	return m
}
