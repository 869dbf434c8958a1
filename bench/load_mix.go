package main

import (
	"errors"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"sort"
	"strconv"
	"strings"
)

// The amounts that a mix asks for: cents from 1.00 on, each once before one comes again. amountStride has no factor in common
// with amountCount, so that counter × amountStride modulo amountCount meets every value; being about 0.618 of it, it spreads
// neighbours far apart.
const (
	amountCount  = 100_000_000_000 // up to 1,000,000,000.99: within the twelve digits of the grammar
	amountStride = 61_803_398_873
	amountLowest = 100
	// amountsOfSeed is how many amounts a seed has for itself, before those of the next seed begin.
	amountsOfSeed = 1 << 24
)

// errMix is a mix that can't be asked.
var errMix = errors.New("mix")

// mix is the asker of a weighted choice of questions, in the names of many accounts. It is used by one run at a time. Questions
// with amounts go on where they ended, so that a mix that is used again asks for new ones.
type mix struct {
	parts   []mixPart
	reach   []uint64 // for each part the sum of the weights up to it
	keys    []string // how a request ends: its Authorization, and the empty line
	counter uint64
}

// mixPart is a question, cut where something comes in.
type mixPart struct {
	target  string // GET and the path
	amounts bool
	rest    string // from the version to the last line before Authorization
}

// newMix makes the mix of questions for a host. Each request has a key of keys, drawn evenly; without keys none has one. Mixes
// of different seeds ask for different amounts.
func newMix(host string, keys []string, questions []question, seed uint64) (asker, error) {
	m := &mix{counter: seed % (amountCount / amountsOfSeed) * amountsOfSeed}
	sum := uint64(0)
	for _, q := range questions {
		if err := checkQuestion(q); err != nil {
			return nil, err
		}
		sum += uint64(q.weight)
		m.reach = append(m.reach, sum)
		m.parts = append(m.parts, mixPart{
			target: "GET " + q.path, amounts: q.amounts,
			rest: " HTTP/1.1\r\nHost: " + host + "\r\n" + q.lines,
		})
	}
	if len(m.parts) == 0 {
		return nil, fmt.Errorf("%w: no question", errMix)
	}
	for _, key := range keys {
		m.keys = append(m.keys, "Authorization: Bearer "+key+"\r\n\r\n")
	}
	if len(m.keys) == 0 {
		m.keys = []string{"\r\n"}
	}
	return m, nil
}

// checkQuestion refuses what would not be one request.
func checkQuestion(q question) error {
	switch {
	case q.weight < 1 || q.weight > 1_000_000:
		return fmt.Errorf("%w: %s has the weight %d, want 1 to 1000000", errMix, q.operation, q.weight)
	case !strings.HasPrefix(q.path, "/") || strings.ContainsAny(q.path, " \r\n"):
		return fmt.Errorf("%w: %s asks for %q, want a path without spaces", errMix, q.operation, q.path)
	case q.lines != "" && !strings.HasSuffix(q.lines, "\r\n") || strings.Contains(q.lines, "\r\n\r\n") || strings.HasPrefix(q.lines, "\r\n"):
		return fmt.Errorf("%w: %s has the lines %q, want each with its CR LF and no empty one", errMix, q.operation, q.lines)
	}
	return nil
}

// next appends a request. What it draws depends on random alone, besides the amounts.
func (m *mix) next(dst []byte, random *rand.Rand) []byte {
	part := &m.parts[0]
	if last := len(m.reach) - 1; last > 0 {
		drawn := random.Uint64N(m.reach[last])
		part = &m.parts[sort.Search(last, func(i int) bool { return drawn < m.reach[i] })]
	}
	dst = append(dst, part.target...)
	if part.amounts {
		dst = appendAmount(dst, m.counter)
		m.counter++
	}
	dst = append(dst, part.rest...)
	if len(m.keys) == 1 {
		return append(dst, m.keys[0]...)
	}
	return append(dst, m.keys[random.IntN(len(m.keys))]...)
}

// appendAmount appends the amount of a number: a different one for each number below amountCount.
func appendAmount(dst []byte, number uint64) []byte {
	high, low := bits.Mul64(number%amountCount, amountStride)
	cents := bits.Rem64(high, low, amountCount) + amountLowest
	dst = strconv.AppendUint(dst, cents/100, 10)
	return append(dst, '.', byte('0'+cents/10%10), byte('0'+cents%10))
}
